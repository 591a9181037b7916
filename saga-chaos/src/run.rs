use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::try_join_all;
use order_rig::outside::LateCalls;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::inject::{CALLS, Count, Counts, Injector, Locks, copy_everything};
use crate::judge::{Evidence, Judged, judge, with_a_charge_too_many};
use crate::orders::OrderBook;
use crate::plan::{MEMBER_SILENCE, Plan, Role, Shape};
use crate::report::Report;
use crate::watch::{NotAtRest, Watched, Watcher, look_for_rest, wait_for_rest};
use crate::world::{
    Carrier, ClockShift, Diary, Happened, Outside, Programs, Replica, ReplicaKey, Servers, Setting, Times, Transport,
    Waves, prepare_shop,
};

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The plan follows from it, and so do the orders and what befalls calls.
    pub seed: u64,
    /// For how long there are faults.
    pub length: Duration,
    /// Whose servers.
    pub servers: Where,
    /// What carries the messages; shared servers have RabbitMQ only.
    pub transport: Transport,
    /// What becomes of calls that land after their undo.
    pub late_calls: LateCalls,
    /// Under how many of a thousand keys calls outside are held.
    pub held_per_mille: u32,
    /// How many orders there are at least whose payment is held past its undo.
    pub held_past_undo: usize,
    /// Whether each fault is printed as it comes.
    pub is_shown: bool,
    /// The programs that are run.
    pub programs: Programs,
}

/// Whose servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// Servers of their own, which are killed as well.
    Own,
    /// Those whose addresses are in the environment; only replicas are killed.
    Shared,
}

/// Short, so that much happens in a minute.
const TIMES: Times =
    Times { lease: MEMBER_SILENCE, reply_timeout: Duration::from_secs(3), concurrency: 8, calls: CALLS };
/// How long everything may take to come to rest.
const REST_LIMIT: Duration = Duration::from_mins(4);
/// How long it may take until orders flow.
const FLOW_LIMIT: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs orders while things go wrong, waits for rest, and judges the result.
///
/// # Errors
///
/// When it could not be done. What is wrong with the orders is in the report.
pub async fn run(options: Options) -> anyhow::Result<Report> {
    let shape = match (options.servers, options.transport) {
        (Where::Shared, _) => Shape::ReplicasOnly,
        (Where::Own, Transport::RabbitMq) => Shape::Everything,
        (Where::Own, Transport::Kafka) => Shape::OnKafka,
        (Where::Own, Transport::Sqs) => Shape::OnSqs,
    };
    let plan = Plan::of(options.seed, options.length, shape);
    let folder = tempfile::Builder::new().prefix("saga-chaos-").tempdir().context("cannot make a folder")?;
    let diary = Arc::new(Diary::open(folder.path(), options.is_shown)?);
    diary.say(format_args!("the folder is {}", folder.path().display()));
    diary.say(&plan);
    let world = World::start(options, folder, diary).await?;
    let result = world.run(&plan).await;
    match result {
        Ok(report) => Ok(report),
        Err(error) => {
            let folder = world.keep().await;
            Err(error.context(format!("everything is in {}", folder.display())))
        }
    }
}

struct World {
    options: Options,
    folder: TempDir,
    diary: Arc<Diary>,
    servers: Arc<Servers>,
    outside: Outside,
    replicas: Arc<Vec<Replica>>,
    waves: Arc<Waves>,
    counts: Arc<Counts>,
}

impl World {
    async fn start(options: Options, folder: TempDir, diary: Arc<Diary>) -> anyhow::Result<Self> {
        let path = folder.path();
        let shift = ClockShift::proven(&options.programs.chaos).await?;
        let servers = Arc::new(match options.servers {
            Where::Own => Servers::start(options.transport).await?,
            Where::Shared => Servers::shared().await?,
        });
        diary.say("the servers run");
        let orders = &servers.database(Role::Orders).url;
        prepare_shop(orders).await?;
        let Options { seed, held_per_mille, late_calls, programs, .. } = &options;
        let outside = Outside::start(programs, path, orders, *seed, *held_per_mille, *late_calls).await?;
        let book = OrderBook::new(*seed, path, *held_per_mille, options.held_past_undo);
        let products = book.write_products()?;
        let waves = Arc::new(Waves::of(book));
        let setting = |key: ReplicaKey| Setting {
            folder: path.to_path_buf(),
            programs: programs.clone(),
            store: servers.database(key.role).proxied.clone(),
            transport: servers.carrier.transport(),
            environment: servers.carrier.environment(),
            outside: outside.proxy.url().to_owned(),
            times: TIMES,
            products: products.clone(),
            waves: Arc::clone(&waves),
            diary: Arc::clone(&diary),
            shift: shift.clone(),
        };
        let mut replicas = Vec::new();
        for key in ReplicaKey::all() {
            replicas.push(Replica::new(key, setting(key)).await?);
        }
        let replicas = Arc::new(replicas);
        Ok(Self { servers, outside, replicas, waves, counts: Arc::default(), options, folder, diary })
    }

    async fn run(&self, plan: &Plan) -> anyhow::Result<Report> {
        let watcher = Arc::new(Watcher::new(&self.servers.database(Role::Orders).url, &self.diary));
        let mut tasks = JoinSet::new();
        if let Carrier::RabbitMq(rabbitmq) = &self.servers.carrier {
            let copies = copy_everything(rabbitmq.url.clone(), Arc::clone(&self.counts), Arc::clone(&self.diary));
            tasks.spawn(async move {
                copies.await;
                Ok(())
            });
        }
        let watching = Arc::clone(&watcher);
        tasks.spawn(async move {
            watching.watch().await;
            Ok(())
        });
        let faults = async {
            self.wait_for_flow(&watcher).await?;
            self.diary.say("orders flow, the faults begin");
            self.injector().execute(plan).await?;
            self.diary.enter(0, Happened::FaultsEnded);
            self.diary.say("the faults are over");
            self.waves.close();
            self.settle().await
        };
        let mut not_at_rest = self.with_replicas(&mut tasks, faults).await?;
        tasks.shutdown().await;
        // What the broker still held came in between the last look and their end, or began something.
        let begin = Instant::now();
        while not_at_rest.is_empty() && !self.look_for_rest().await?.is_empty() && begin.elapsed() < REST_LIMIT {
            self.diary.say("something came late, so the replicas go on");
            not_at_rest = self.with_replicas(&mut tasks, self.settle()).await?;
        }
        self.judge(plan, &not_at_rest, &watcher.watched()).await
    }

    fn injector(&self) -> Injector<'_> {
        Injector {
            servers: &self.servers,
            replicas: &self.replicas,
            outside: &self.outside.proxy,
            waves: &self.waves,
            counts: &self.counts,
            diary: &self.diary,
            locks: Locks::default(),
        }
    }

    /// Does `work` while the replicas run and all `tasks` go on; then the replicas end.
    async fn with_replicas<T>(
        &self,
        tasks: &mut JoinSet<anyhow::Result<()>>,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let mut supervisors = JoinSet::new();
        for replica in self.replicas.iter() {
            let replica = replica.clone();
            supervisors.spawn(async move { replica.supervise().await });
        }
        // None of them ends by itself, so the first that does has failed.
        let done = tokio::select! {
            done = work => done?,
            Some(failed) = supervisors.join_next() => return Err(ended_early(failed)),
            Some(failed) = tasks.join_next() => return Err(ended_early(failed)),
        };
        supervisors.shutdown().await;
        // All at once: each lets its last request for messages end, which over SQS takes up to twenty seconds.
        try_join_all(self.replicas.iter().map(Replica::end)).await?;
        self.diary.say("the replicas have ended");
        Ok(done)
    }

    /// The first orders must have ended before anything breaks.
    async fn wait_for_flow(&self, watcher: &Watcher) -> anyhow::Result<()> {
        let flowing = async {
            while watcher.watched().ended.len() < 10 {
                sleep(LOOK_EVERY).await;
            }
        };
        timeout(FLOW_LIMIT, flowing).await.context("no orders came to their end, before anything was broken")
    }

    /// What is under way comes to rest.
    async fn settle(&self) -> anyhow::Result<Vec<NotAtRest>> {
        let begin = Instant::now();
        let databases = self.servers.databases();
        let found = wait_for_rest(databases, &self.outside.book, &self.waves, REST_LIMIT).await?;
        let verdict = if found.is_empty() { "everything is at rest" } else { "not everything is at rest" };
        self.diary.say(format_args!("{verdict} after {:.1} s", begin.elapsed().as_secs_f64()));
        Ok(found)
    }

    async fn look_for_rest(&self) -> anyhow::Result<Vec<NotAtRest>> {
        look_for_rest(self.servers.databases(), &self.outside.book, &self.waves).await
    }

    async fn judge(&self, plan: &Plan, not_at_rest: &[NotAtRest], watched: &Watched) -> anyhow::Result<Report> {
        let counted = |count| self.counts.of(count);
        let cuts = [Count::CutsInCommits, Count::CutsInPublishes, Count::CutsInAcknowledgements];
        let cuts: u64 = cuts.into_iter().map(counted).sum();
        let restarts = counted(Count::PostgresRestarts) + counted(Count::BrokerRestarts);
        let full = counted(Count::FullTables);
        let keys = self.waves.keys();
        let diary = self.diary.lines();
        let evidence = Evidence {
            programs: &self.options.programs,
            folder: self.folder.path(),
            databases: self.servers.databases(),
            book: &self.outside.book,
            keys: &keys,
            diary: &diary,
            // Each may have cost every replica what it had under way.
            repeats: (cuts + restarts + full) as u32 * 6,
        };
        let judged = judge(&evidence).await?;
        let faults_seconds = plan.length.as_secs();
        let transport = self.options.transport;
        let mut report = Report { seed: plan.seed, transport, faults_seconds, ..Report::default() };
        self.count(&mut report, &judged, watched, keys.len()).await;
        report.remainder = judged.remainder.landed.len() as u64;
        let reported: std::collections::BTreeSet<_> =
            judged.violations.iter().filter_map(|(key, _)| key.clone()).collect();
        report.reported = reported.into_iter().collect();
        report.problems = self.problems(&judged, not_at_rest);
        report.planted = self.planted(&evidence).await?;
        if report.planted.len() < 2 {
            report.problems.push(format!("of a charge too many the judgement found only {:?}", report.planted));
        }
        if !report.is_green() {
            let ledgers = serde_json::to_string(&judged.ledgers)?;
            std::fs::write(self.folder.path().join("ledgers.json"), ledgers)?;
            self.dump_databases().await;
            report.folder = Some(self.keep().await);
        }
        Ok(report)
    }
}

impl World {
    fn problems(&self, judged: &Judged, not_at_rest: &[NotAtRest]) -> Vec<String> {
        let mut problems: Vec<String> = not_at_rest.iter().map(ToString::to_string).collect();
        problems.extend(judged.verify_failed.clone());
        if judged.letters > 0 {
            problems.push(format!("{} dead letters are open", judged.letters));
        }
        if judged.stuck + judged.others > 0 {
            problems.push(format!("{} orders are stuck, {} have not ended", judged.stuck, judged.others));
        }
        let named = |(key, violation): &(Option<String>, _)| format!("{}: {violation}", key.as_deref().unwrap_or("-"));
        problems.extend(judged.beside_remainder.iter().map(named));
        // The checker and the audit report all of the remainder, and nothing else.
        let orders = judged.remainder.orders();
        for (key, violation) in &judged.violations {
            if !key.as_deref().is_some_and(|key| orders.contains(key)) {
                problems.push(format!("beside the remainder: {}", named(&(key.clone(), violation.clone()))));
            }
        }
        for (subject, wrong) in &judged.findings {
            if !orders.contains(subject.as_str()) {
                problems.push(format!("verify: {subject}: {wrong}"));
            }
        }
        for (order, step) in judged.remainder.landed.keys() {
            let is_reported = |(key, violation): &(Option<String>, saga_testkit::checker::Violation)| {
                key.as_deref() == Some(order) && violation.about.contains(step.as_str())
            };
            if !judged.violations.iter().any(is_reported) {
                problems.push(format!("{order}:{step} landed after its undo, and the checker does not report it"));
            }
        }
        if self.options.late_calls == LateCalls::Refused && !judged.remainder.landed.is_empty() {
            problems.push(format!("{} calls landed after their undo, though it bars them", orders.len()));
        }
        problems.dedup();
        problems
    }

    /// What is found when the book outside has a charge too many: the checker and the audit must each find it.
    async fn planted(&self, evidence: &Evidence<'_>) -> anyhow::Result<Vec<String>> {
        let book = with_a_charge_too_many(&self.outside.book)?;
        let judged = judge(&Evidence { book: &book, ..*evidence }).await?;
        let checker = judged.beside_remainder.iter().map(|(_, violation)| violation.to_string()).next();
        let twice = judged.findings.iter().find(|(_, wrong)| wrong.contains("charged 2 times"));
        Ok(checker.into_iter().chain(twice.map(|(subject, wrong)| format!("verify: {subject}: {wrong}"))).collect())
    }

    async fn count(&self, report: &mut Report, judged: &Judged, watched: &Watched, orders: usize) {
        let mut ended_badly = 0;
        for replica in self.replicas.iter() {
            ended_badly += replica.ended_badly().await;
        }
        let counted = |count| self.counts.of(count);
        report.count("replicas killed", counted(Count::Kills));
        report.count("restarts of PostgreSQL", counted(Count::PostgresRestarts));
        report.count("restarts of the broker", counted(Count::BrokerRestarts));
        report.count("cuts in commits", counted(Count::CutsInCommits));
        report.count("cuts in publishes", counted(Count::CutsInPublishes));
        report.count("cuts in acknowledgements", counted(Count::CutsInAcknowledgements));
        report.count("cuts whose bytes never came", counted(Count::CutsOutOfReach));
        report.count("replicas stopped past their lease", counted(Count::Stops));
        report.count("clocks shifted", counted(Count::ClockShifts));
        report.count("queues deleted", counted(Count::QueuesDeleted));
        report.count("memory alarms", counted(Count::MemoryAlarms));
        report.count("overloads", counted(Count::Overloads));
        report.count("most calls that waited in an overload", counted(Count::OverloadDepth));
        report.count("partitions shorter than a membership", counted(Count::PartitionsShort));
        report.count("partitions longer than a membership", counted(Count::PartitionsLong));
        report.count("standard errors closed", counted(Count::StderrsClosed));
        report.count("full disks under tables", counted(Count::FullTables));
        report.count("full disks under the broker", counted(Count::FullBrokerDisks));
        report.count("full disks under a log", counted(Count::FullLogs));
        report.count("full disks left out for want of privileges", counted(Count::FullDisksLeftOut));
        report.count("full queues", counted(Count::FullQueues));
        report.count("faults that nothing ran into", counted(Count::Unmet));
        report.count("most messages refused by a full queue", counted(Count::Refused));
        report.count("replicas that ended and were started again", ended_badly);
        report.count("orders", orders as u64);
        report.count("orders completed", judged.completed as u64);
        report.count("orders compensated", judged.compensated as u64);
        report.count("orders stuck", judged.stuck as u64);
        report.count("messages received once", judged.received);
        report.count("duplicates sent", counted(Count::Copies));
        report.count("calls outside that were retries", judged.retries);
        report.count("calls outside that were held", judged.held);
        report.count("effects behind their undo", judged.remainder.landed.len() as u64);
        let entries: usize = judged.ledgers.iter().map(|ledger| ledger.entries.len()).sum();
        report.count("facts in the ledgers", entries as u64);
        report.count("longest standstill, s", watched.standstill.as_secs());
    }

    /// The servers end with this program; what was in them is kept beside the rest.
    async fn dump_databases(&self) {
        for database in self.servers.databases() {
            let name = format!("{}.sql", database.role.name());
            let Ok(programs) = saga_servers::postgres_programs() else { continue };
            let mut command = std::process::Command::new(programs.join("pg_dump"));
            command.arg("-f").arg(self.folder.path().join(name)).arg(&database.url);
            if let Err(error) = crate::world::finish(command).await {
                self.diary.say(format_args!("the database of {} is not kept: {error}", database.role.name()));
            }
        }
    }

    /// Keeps the folder when this value is gone, with what the servers said.
    async fn keep(&self) -> PathBuf {
        if let Some(own) = &self.servers.own {
            let logs = [("postgres", own.postgres.lock().await.log()), ("broker", own.broker.lock().await.log())];
            for (server, log) in logs {
                let path = self.folder.path().join(format!("{server}.log"));
                let kept = log.map_err(anyhow::Error::from).and_then(|log| Ok(std::fs::write(path, log)?));
                if let Err(error) = kept {
                    self.diary.say(format_args!("the log of {server} is not kept: {error}"));
                }
            }
        }
        let kept = self.folder.path().with_extension("kept");
        match std::fs::rename(self.folder.path(), &kept) {
            Ok(()) => kept,
            Err(_) => self.folder.path().to_path_buf(),
        }
    }
}

fn ended_early(failed: Result<anyhow::Result<()>, tokio::task::JoinError>) -> anyhow::Error {
    match failed {
        Ok(Ok(())) => anyhow::anyhow!("a task that should go on for ever has ended"),
        Ok(Err(error)) => error,
        Err(error) => error.into(),
    }
}
