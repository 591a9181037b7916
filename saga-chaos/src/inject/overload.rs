use std::time::Duration;

use saga_servers::Traffic;
use sqlx::{Connection as _, PgConnection};
use tokio::time::{Instant, sleep, timeout};

use super::injector::LOOK_EVERY;
use super::{Count, Injector};
use crate::plan::{REPLICAS, Role};

/// How many calls a replica has under way at a time.
pub(crate) const CALLS: usize = 8;
/// How much longer calls take in an overload; with the slowest answer it is less than their callers wait.
const SLOWER: Duration = Duration::from_millis(700);
/// How long it may take until calls wait: the orders come in a process of their own.
const PATIENCE: Duration = Duration::from_mins(2);
/// What waits is worth the name when it is twice what can be called at a time.
const DEPTH_MIN: u64 = 2 * (CALLS * REPLICAS) as u64;

impl Injector<'_> {
    /// Calls take long, and so many orders come at once that they need twice the calls that can be made in that time.
    pub(super) async fn overload(&self, time: Duration) -> anyhow::Result<bool> {
        let _one_at_a_time = self.locks.overload.lock().await;
        let orders = orders_for(time);
        self.outside.set_traffic(Traffic::SlowAnswers(SLOWER));
        self.waves.rush(orders);
        let deepest = timeout(PATIENCE, self.wait_for_depth()).await;
        let begin = Instant::now();
        let mut most = deepest.as_ref().copied().unwrap_or_default();
        while deepest.is_ok() && begin.elapsed() < time {
            most = most.max(self.calls_waiting().await);
            sleep(LOOK_EVERY).await;
        }
        self.outside.set_traffic(Traffic::Flows);
        self.counts.raise(Count::OverloadDepth, most);
        if deepest.is_ok() {
            self.counts.add(Count::Overloads);
            self.diary.say(format_args!("the overload by {orders} orders is over, {most} calls waited"));
        } else {
            self.diary.say(format_args!("{orders} orders at once were no overload"));
        }
        Ok(deepest.is_ok())
    }

    async fn wait_for_depth(&self) -> u64 {
        loop {
            let waiting = self.calls_waiting().await;
            if waiting >= DEPTH_MIN {
                return waiting;
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// The calls that are to be made; none where the database is away.
    async fn calls_waiting(&self) -> u64 {
        let counted = async {
            let mut conn = PgConnection::connect(&self.servers.database(Role::Payments).url).await?;
            let count: i64 = sqlx::query_scalar("SELECT count(*) FROM saga.work").fetch_one(&mut conn).await?;
            conn.close().await?;
            Ok::<_, sqlx::Error>(count.unsigned_abs())
        };
        counted.await.unwrap_or_default()
    }
}

/// Twice as many as the replicas of a service can make calls for in that time.
fn orders_for(time: Duration) -> u64 {
    let calls_each = time.as_millis().div_ceil(SLOWER.as_millis());
    2 * (CALLS * REPLICAS) as u64 * calls_each as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overload_is_twice_what_the_lines_can_do() {
        // 16 lines make 20 calls of 700 ms each in 14 s.
        assert_eq!(orders_for(Duration::from_secs(14)), 2 * 16 * 20);
    }
}
