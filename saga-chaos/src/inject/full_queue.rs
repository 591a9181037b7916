use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::json;
use sqlx::{Connection as _, PgConnection};
use tokio::time::{sleep, timeout};

use super::injector::{BROKER_PATIENCE, LOOK_EVERY};
use super::{Count, Injector};
use crate::plan::Role;
use crate::world::Replica;

const POLICY: &str = "chaos-limit";
/// Fewer than there are orders under way at a time.
const MESSAGES_MAX: u32 = 3;
/// How long it may take until a message is refused.
const PATIENCE: Duration = Duration::from_mins(2);

impl Injector<'_> {
    /// A service is away and its queue takes few messages, so that those who send to it are refused. False where none was.
    pub(super) async fn fill_queue(&self, role: Role, time: Duration) -> anyhow::Result<bool> {
        let _both = self.locks.both_replicas.lock().await;
        // Held to the end, so that no other fault kills the broker or deletes the queue meanwhile.
        let _broker = self.own()?.broker.lock().await;
        let rabbitmq = self.servers.carrier.rabbitmq()?;
        let policy = format!("policies/{}/{POLICY}", rabbitmq.vhost);
        self.limit(role, &policy).await?;
        let mut away: Vec<&Replica> = Vec::new();
        for replica in self.replicas.iter().filter(|replica| replica.key.role == role) {
            if replica.send_away().await? {
                away.push(replica);
            } else {
                self.diary.say(format_args!("{} is not sent away: it does not run", replica.key.name()));
            }
        }
        let refused = timeout(PATIENCE, async {
            loop {
                let refused = self.refused_messages().await;
                if refused > 0 {
                    break;
                }
                sleep(LOOK_EVERY).await;
            }
            sleep(time).await;
            self.refused_messages().await
        });
        let refused = refused.await;
        let lifted = rabbitmq.management.delete(&policy).await;
        for replica in away {
            replica.call_back().await;
        }
        lifted.context("the limit of the queue stays")?;
        let Ok(refused) = refused else {
            self.diary.say(format_args!("{} is back: its queue refused no message", role.name()));
            return Ok(false);
        };
        self.counts.add(Count::FullQueues);
        self.counts.raise(Count::Refused, refused);
        self.diary.say(format_args!("{} is back, and its queue has no limit; {refused} were refused", role.name()));
        Ok(true)
    }

    async fn limit(&self, role: Role, policy: &str) -> anyhow::Result<()> {
        let queue = format!("saga.service:{}", role.name());
        let pattern = format!("^{}$", queue.replace('.', "\\."));
        // What becomes of messages beyond it, `reject-publish`, is an argument of the queue.
        let limit = json!({ "pattern": pattern, "definition": { "max-length": MESSAGES_MAX }, "apply-to": "queues" });
        let rabbitmq = self.servers.carrier.rabbitmq()?;
        let path = format!("queues/{}/{queue}", rabbitmq.vhost);
        let limited = timeout(BROKER_PATIENCE, async {
            while rabbitmq.management.put(policy, &limit).await.is_err() {
                sleep(LOOK_EVERY).await;
            }
            loop {
                let found = rabbitmq.management.get(&path).await.unwrap_or_default();
                if found["policy"] == POLICY {
                    return found;
                }
                sleep(LOOK_EVERY).await;
            }
        });
        let found = limited.await.context("the queue got no limit")?;
        let overflow = &found["arguments"]["x-overflow"];
        ensure!(overflow == "reject-publish", "a full queue drops messages: {overflow}");
        Ok(())
    }

    /// The messages of the orders that wait because a queue refused them; none where the database is away.
    async fn refused_messages(&self) -> u64 {
        let refused = "SELECT count(*) FROM saga.parked WHERE error LIKE '%queue is full%'";
        let counted = async {
            let mut conn = PgConnection::connect(&self.servers.database(Role::Orders).url).await?;
            let count: i64 = sqlx::query_scalar(refused).fetch_one(&mut conn).await?;
            conn.close().await?;
            Ok::<_, sqlx::Error>(count.unsigned_abs())
        };
        counted.await.unwrap_or_default()
    }
}
