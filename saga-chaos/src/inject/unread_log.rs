use std::time::Duration;

use anyhow::Context as _;
use sqlx::{Connection as _, PgConnection};
use tokio::time::{sleep, timeout};

use super::injector::LOOK_EVERY;
use super::{Count, Injector};
use crate::plan::Role;
use crate::world::{LogState, Replica};

/// More orders than are under way at a time, so that some of them are begun, sent and answered by the replica alone.
const ORDERS: i64 = 40;
/// How long they may take, with whatever else is broken meanwhile.
const PATIENCE: Duration = Duration::from_mins(4);

impl Injector<'_> {
    /// A replica finds its standard error closed while it runs, and goes on working.
    pub(super) async fn close_stderr(&self, replica: &Replica) -> anyhow::Result<bool> {
        let closing = async {
            replica.close_log().await;
            Ok(())
        };
        let is_alone = self.works_alone(replica, closing).await?;
        if is_alone {
            self.counts.add(Count::StderrsClosed);
            self.diary.say(format_args!("{} worked on with its standard error closed", replica.key.name()));
        }
        Ok(is_alone)
    }

    /// A replica cannot write its log, and works for so long at least.
    pub(super) async fn fill_log(&self, replica: &Replica, time: Duration) -> anyhow::Result<bool> {
        let filling = async {
            replica.restart_with_log(LogState::Full).await?;
            sleep(time).await;
            Ok(())
        };
        let is_alone = self.works_alone(replica, filling).await?;
        if is_alone {
            self.counts.add(Count::FullLogs);
            self.diary.say(format_args!("{} worked on with its log on a full disk", replica.key.name()));
        }
        Ok(is_alone)
    }

    /// Breaks the log of a replica, and proves that it works all the same: the other one of its service is stopped
    /// meanwhile. Then its log is whole again. False where one of them did not run.
    async fn works_alone(
        &self,
        replica: &Replica,
        breaking: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<bool> {
        let _both = self.locks.both_replicas.lock().await;
        let _busy = replica.busy.lock().await;
        let key = replica.key;
        let other = self.replica(key.role, 1 - key.nth)?;
        if !replica.hold().await {
            self.diary.say(format_args!("the log of {} stays as it is: it does not run", key.name()));
            return Ok(false);
        }
        let is_alone = other.stop().await?;
        if is_alone {
            breaking.await?;
            timeout(PATIENCE, self.wait_for_orders()).await.with_context(|| {
                format!("{} does not work: {ORDERS} orders did not end in {} s", key.name(), PATIENCE.as_secs())
            })?;
            replica.restart_with_log(LogState::Open).await?;
            other.go_on().await?;
        } else {
            self.diary.say(format_args!("the log of {} stays as it is: {} does not run", key.name(), other.key.name()));
        }
        replica.release().await;
        Ok(is_alone)
    }

    /// Every order passes each of the services, unless it is rejected before.
    async fn wait_for_orders(&self) {
        let mut first = None;
        loop {
            if let Ok(ended) = self.orders_ended().await
                && ended >= *first.get_or_insert(ended) + ORDERS
            {
                return;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn orders_ended(&self) -> sqlx::Result<i64> {
        let mut conn = PgConnection::connect(&self.servers.database(Role::Orders).url).await?;
        let ended = "SELECT count(*) FROM saga.progress WHERE ended_at IS NOT NULL";
        let ended = sqlx::query_scalar(ended).fetch_one(&mut conn).await?;
        conn.close().await?;
        Ok(ended)
    }
}
