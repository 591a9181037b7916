use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use saga_servers::{FaultProxy, RabbitMqServer};
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{Count, Counts};
use crate::plan::{CutAt, Disk, Fault, Plan, Role, Server};
use crate::world::{Diary, Happened, Own, Replica, ReplicaKey, Servers, Waves};

/// How often a fault is tried that nothing runs into.
const ATTEMPTS_MAX: usize = 3;
/// How long an armed cut waits for the bytes that it is about.
const CUT_PATIENCE: Duration = Duration::from_secs(12);
/// How long a fault waits for a broker that is down.
pub(super) const BROKER_PATIENCE: Duration = Duration::from_mins(5);
/// How long a broker that came back is left alone, so that it is of use whatever the machine has to do.
const BROKER_IN_USE: Duration = Duration::from_secs(10);
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Carries a plan out.
#[derive(Debug)]
pub(crate) struct Injector<'a> {
    pub(crate) servers: &'a Servers,
    pub(crate) replicas: &'a [Replica],
    /// In front of the services outside.
    pub(crate) outside: &'a FaultProxy,
    pub(crate) waves: &'a Waves,
    pub(crate) counts: &'a Counts,
    pub(crate) diary: &'a Diary,
    pub(crate) locks: Locks,
}

/// One cut at a time for each proxy: a second one would take the place of the first.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    postgres: Mutex<()>,
    broker: Mutex<()>,
    /// Held by what takes both replicas of a service for itself.
    pub(super) both_replicas: Mutex<()>,
    pub(super) overload: Mutex<()>,
    /// Set while the broker is down.
    broker_is_down: watch::Sender<bool>,
}

impl Injector<'_> {
    /// Does everything at its time, and returns when the last of it is over.
    pub(crate) async fn execute(&self, plan: &Plan) -> anyhow::Result<()> {
        let begin = Instant::now();
        let mut under_way = FuturesUnordered::new();
        let mut faults = plan.faults.iter().peekable();
        loop {
            let next = faults.peek().map_or(plan.length, |planned| planned.at);
            tokio::select! {
                () = sleep_until(begin + next) => match faults.next() {
                    Some(planned) => under_way.push(self.inflict_named(planned.fault)),
                    None => break,
                },
                Some(done) = under_way.next() => done?,
            }
        }
        while let Some(done) = under_way.next().await {
            done?;
        }
        Ok(())
    }

    /// Again, where nothing ran into it: a machine under load may have been busy with something else.
    async fn inflict_named(&self, fault: Fault) -> anyhow::Result<()> {
        for _ in 0..ATTEMPTS_MAX {
            if self.inflict(fault).await.with_context(|| format!("could not do this: {fault}"))? {
                return Ok(());
            }
            self.diary.say(format_args!("nothing ran into this: {fault}"));
        }
        self.counts.add(Count::Unmet);
        Ok(())
    }

    /// False where nothing ran into it.
    async fn inflict(&self, fault: Fault) -> anyhow::Result<bool> {
        if !matches!(fault, Fault::Cut(_)) {
            self.diary.say(fault);
        }
        match fault {
            Fault::Kill(role, nth) => {
                if !self.replica(role, nth)?.kill().await? {
                    return Ok(false);
                }
                self.counts.add(Count::Kills);
            }
            Fault::Clock(role, nth, minutes) => {
                let replica = self.replica(role, nth)?;
                if !replica.kill_and_shift(minutes).await? {
                    return Ok(false);
                }
                self.counts.add(Count::Kills);
                self.counts.add(Count::ClockShifts);
                if !replica.is_clock_right().await {
                    bail!("the library that shifts clocks is not loaded in {}", replica.key.name());
                }
            }
            Fault::Stop(role, nth, time) => {
                if !self.replica(role, nth)?.pause(time).await? {
                    return Ok(false);
                }
                self.counts.add(Count::Stops);
                self.diary.say(format_args!("{} goes on", ReplicaKey { role, nth }.name()));
            }
            Fault::KillServer(server) => self.kill_server(server).await?,
            Fault::Cut(at) => self.cut(at).await?,
            Fault::DeleteQueue(role) => self.delete_queue(role).await?,
            Fault::MemoryAlarm(time) => self.memory_alarm(time).await?,
            Fault::Overload(time) => return self.overload(time).await,
            Fault::Partition(role, nth, time, heal) => self.partition(self.replica(role, nth)?, time, heal).await,
            Fault::CloseStderr(role, nth) => return self.close_stderr(self.replica(role, nth)?).await,
            Fault::FullDisk(Disk::Tables, time) => return self.fill_tables(time).await,
            Fault::FullDisk(Disk::Broker, time) => self.fill_broker_disk(time).await?,
            Fault::FullDisk(Disk::Log(role, nth), time) => return self.fill_log(self.replica(role, nth)?, time).await,
            Fault::FullQueue(role, time) => return self.fill_queue(role, time).await,
        }
        Ok(true)
    }

    pub(super) fn own(&self) -> anyhow::Result<&Own> {
        self.servers.own.as_ref().context("the servers are not ours")
    }

    pub(super) fn replica(&self, role: Role, nth: usize) -> anyhow::Result<&Replica> {
        let found = self.replicas.iter().find(|replica| replica.key == ReplicaKey { role, nth });
        found.with_context(|| format!("there is no replica {nth} of {}", role.name()))
    }

    async fn kill_server(&self, server: Server) -> anyhow::Result<()> {
        let own = self.own()?;
        match server {
            Server::Postgres => {
                let mut postgres = own.postgres.lock().await;
                postgres.kill().await?;
                self.diary.enter(0, Happened::Killed);
                postgres.restart().await?;
                self.counts.add(Count::PostgresRestarts);
                self.diary.say("PostgreSQL is back");
            }
            Server::Broker => {
                let mut broker = own.broker.lock().await;
                self.locks.broker_is_down.send_replace(true);
                broker.kill_and_restart(|| self.diary.enter(0, Happened::Killed)).await?;
                self.locks.broker_is_down.send_replace(false);
                self.counts.add(Count::BrokerRestarts);
                self.diary.say("the broker is back");
                sleep(BROKER_IN_USE).await;
            }
        }
        Ok(())
    }

    /// Waits until the bytes come by. When they never do, for instance because no process sends anything, it is given
    /// up.
    async fn cut(&self, at: CutAt) -> anyhow::Result<()> {
        let (proxy, lock) = match at.server() {
            Server::Postgres => (&self.servers.postgres_proxy, &self.locks.postgres),
            Server::Broker => (&self.servers.carrier.rabbitmq()?.proxy, &self.locks.broker),
        };
        let _one_at_a_time = lock.lock().await;
        if at.server() == Server::Broker {
            let mut is_down = self.locks.broker_is_down.subscribe();
            // The sender lives as long as this value.
            let _ = is_down.wait_for(|is_down| !is_down).await;
        }
        let before = proxy.counts().cuts;
        proxy.cut(at.cut());
        let done = timeout(CUT_PATIENCE, async {
            while proxy.counts().cuts == before {
                sleep(LOOK_EVERY).await;
            }
        });
        let count = match (done.await, at) {
            (Err(_), _) => {
                proxy.disarm();
                Count::CutsOutOfReach
            }
            (Ok(()), CutAt::Commit(_) | CutAt::CommitAnswer(_)) => Count::CutsInCommits,
            (Ok(()), CutAt::Publish(_) | CutAt::Confirm(_)) => Count::CutsInPublishes,
            (Ok(()), CutAt::Acknowledgement(_)) => Count::CutsInAcknowledgements,
        };
        self.counts.add(count);
        let came = if count == Count::CutsOutOfReach { ": it never came by" } else { "" };
        self.diary.say(format_args!("{}{came}", Fault::Cut(at)));
        Ok(())
    }

    /// What is in the queue is lost with it, and the consumers are told that they are cancelled. They declare it again.
    async fn delete_queue(&self, role: Role) -> anyhow::Result<()> {
        // Held until the new queue has settled, so that no other fault kills the broker meanwhile: it would come back with
        // a queue without a leader, and answer everybody who asks for it with an error of its own until it is deleted.
        let _broker = match &self.servers.own {
            Some(own) => Some(own.broker.lock().await),
            None => None,
        };
        let rabbitmq = self.servers.carrier.rabbitmq()?;
        let path = format!("queues/{}/saga.service:{}", rabbitmq.vhost, role.name());
        let deleted = timeout(BROKER_PATIENCE, async {
            // A broker that is on its way back has neither the interface nor the queue yet.
            while rabbitmq.management.delete(&path).await.is_err() {
                sleep(LOOK_EVERY).await;
            }
        });
        deleted.await.context("the queue could not be deleted")?;
        self.counts.add(Count::QueuesDeleted);
        let declared = timeout(BROKER_PATIENCE, async {
            while rabbitmq.management.get(&path).await.is_err() {
                sleep(LOOK_EVERY).await;
            }
        });
        declared.await.context("no replica declared the queue again")?;
        sleep(RabbitMqServer::QUEUE_SETTLING_TIME).await;
        Ok(())
    }

    async fn memory_alarm(&self, time: Duration) -> anyhow::Result<()> {
        let own = self.own()?;
        // Held to the end, so that no other fault kills the broker meanwhile: it comes back without an alarm.
        let broker = own.broker.lock().await;
        let rabbitmq = broker.rabbitmq()?;
        rabbitmq.control(&["set_vm_memory_high_watermark", "0.00001"]).await?;
        self.diary.say("the broker has too little memory");
        // The broker sleeps, so that asking it takes no call of its own.
        let ask = format!("Alarms = rabbit_alarm:get_alarms(), timer:sleep({}), Alarms.", time.as_millis());
        let alarms = rabbitmq.control(&["eval", &ask]).await?;
        rabbitmq.control(&["set_vm_memory_high_watermark", "absolute", "512MB"]).await?;
        ensure!(alarms.contains("memory"), "the broker raised no alarm for its memory, but {alarms}");
        self.counts.add(Count::MemoryAlarms);
        self.diary.say("the broker has memory again");
        Ok(())
    }
}
