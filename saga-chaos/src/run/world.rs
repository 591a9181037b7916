//! Runs orders while things go wrong, waits for rest, and judges the result.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::try_join_all;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::options::{Options, Where};
use crate::inject::{CALLS, Count, Counts, DeadLetters, Injector, Locks, copy_everything};
use crate::judge::{Evidence, judge};
use crate::orders::OrderBook;
use crate::plan::{MEMBER_SILENCE, Plan, PlannedLetter, RetentionTimes, Role, Shape};
use crate::report::Report;
use crate::watch::{NotAtRest, Watched, Watcher, come_to_rest, look_for_rest, wait_for_rest};
use crate::world::{
    Carrier, ClockShift, Diary, Happened, Outside, Replica, ReplicaKey, Servers, Setting, Times, Transport, Waves,
    prepare_purges, prepare_shop,
};

/// Short, so that much happens in a minute.
const TIMES: Times = Times {
    lease: MEMBER_SILENCE,
    reply_timeout: Duration::from_secs(3),
    concurrency: 8,
    calls: CALLS,
    retention: None,
};
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
    let times = Times { retention: options.purges.then(|| RetentionTimes::of(&plan)), ..TIMES };
    let world = World::start(options, folder, diary, times).await?;
    let result = world.run(&plan).await;
    match result {
        Ok(report) => Ok(report),
        Err(error) => {
            let folder = world.keep().await;
            Err(error.context(format!("everything is in {}", folder.display())))
        }
    }
}

pub(super) struct World {
    pub(super) options: Options,
    pub(super) folder: TempDir,
    pub(super) diary: Arc<Diary>,
    pub(super) servers: Arc<Servers>,
    pub(super) outside: Outside,
    pub(super) replicas: Arc<Vec<Replica>>,
    pub(super) waves: Arc<Waves>,
    pub(super) counts: Arc<Counts>,
    /// In a run that purges.
    dead_letters: Option<DeadLetters>,
    times: Times,
}

impl World {
    async fn start(options: Options, folder: TempDir, diary: Arc<Diary>, times: Times) -> anyhow::Result<Self> {
        let path = folder.path();
        let shift = ClockShift::proven(&options.programs.chaos).await?;
        let servers = Arc::new(match options.servers {
            Where::Own => Servers::start(options.transport).await?,
            Where::Shared => Servers::shared().await?,
        });
        diary.say("the servers run");
        let orders = &servers.database(Role::Orders).url;
        prepare_shop(orders).await?;
        if let Some(retention) = times.retention {
            for database in servers.databases() {
                prepare_purges(&database.url).await?;
            }
            diary.say(format_args!("what has ended is purged: {retention:?}"));
        }
        let Options { seed, held_per_mille, late_calls, programs, .. } = &options;
        let outside = Outside::start(programs, path, orders, *seed, *held_per_mille, *late_calls).await?;
        let book = OrderBook::new(*seed, path, *held_per_mille, options.held_past_undo);
        let products = book.write_products()?;
        let waves = Arc::new(Waves::of(book, times.retention));
        let setting = |key: ReplicaKey| Setting {
            folder: path.to_path_buf(),
            programs: programs.clone(),
            store: servers.database(key.role).proxied.clone(),
            transport: servers.carrier.transport(),
            environment: servers.carrier.environment(),
            outside: outside.proxy.url().to_owned(),
            times,
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
        let counts = Arc::default();
        let dead_letters = times.retention.map(|_| DeadLetters::new(servers.databases(), &counts, &diary));
        let dead_letters = dead_letters.transpose()?;
        Ok(Self { options, folder, diary, servers, outside, replicas, waves, counts, dead_letters, times })
    }

    async fn run(&self, plan: &Plan) -> anyhow::Result<Report> {
        let watcher = Arc::new(Watcher::new(&self.servers.database(Role::Orders).url, &self.diary, &self.waves));
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
            let injector = self.injector();
            tokio::try_join!(Box::pin(injector.execute(plan)), Box::pin(self.send_letters(plan)))?;
            self.diary.enter(0, Happened::FaultsEnded);
            self.diary.say("the faults are over");
            self.waves.close();
            self.settle().await
        };
        let mut not_at_rest = self.with_replicas(&mut tasks, faults).await?;
        tasks.shutdown().await;
        // What the broker still held came in between the last look and their end, or began something.
        if not_at_rest.is_empty() {
            let go_on = async || {
                self.diary.say("something came late, so the replicas go on");
                self.with_replicas(&mut tasks, self.settle()).await
            };
            not_at_rest = come_to_rest(REST_LIMIT, async || self.look_for_rest().await, go_on).await?;
        }
        self.judge(plan, &not_at_rest, &watcher.watched()).await
    }

    async fn send_letters(&self, plan: &Plan) -> anyhow::Result<()> {
        match &self.dead_letters {
            Some(dead_letters) => dead_letters.send(&PlannedLetter::of(plan)).await,
            None => Ok(()),
        }
    }

    /// The operator is there for as long as the replicas run.
    async fn decide_letters(&self) -> anyhow::Result<()> {
        match &self.dead_letters {
            Some(dead_letters) => dead_letters.decide().await,
            None => std::future::pending().await,
        }
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
            failed = Box::pin(self.decide_letters()) => return Err(ended_early(Ok(failed))),
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
        let found = wait_for_rest(databases, &self.outside.book, &self.waves, self.rest_limit()).await?;
        let verdict = if found.is_empty() { "everything is at rest" } else { "not everything is at rest" };
        self.diary.say(format_args!("{verdict} after {:.1} s", begin.elapsed().as_secs_f64()));
        Ok(found)
    }

    /// What has ended is purged in its time, and hosts hear of it in theirs.
    fn rest_limit(&self) -> Duration {
        REST_LIMIT + self.times.retention.map_or(Duration::ZERO, |times| times.keys * 2)
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
            purges: self.options.purges,
        };
        let judged = judge(&evidence).await?;
        let faults_seconds = plan.length.as_secs();
        let transport = self.options.transport;
        let purges = self.options.purges;
        let mut report = Report { seed: plan.seed, transport, purges, faults_seconds, ..Report::default() };
        self.count(&mut report, &judged, watched, keys.len()).await;
        report.remainder = judged.remainder.landed.len() as u64;
        let reported: std::collections::BTreeSet<_> =
            judged.violations.iter().filter_map(|(key, _)| key.clone()).collect();
        report.reported = reported.into_iter().collect();
        report.problems = self.problems(plan, &judged, not_at_rest);
        report.planted = self.planted(&evidence).await?;
        if report.planted.len() < 2 + usize::from(purges) {
            report.problems.push(format!("of what was planted the judgement found only {:?}", report.planted));
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

fn ended_early(failed: Result<anyhow::Result<()>, tokio::task::JoinError>) -> anyhow::Error {
    match failed {
        Ok(Ok(())) => anyhow::anyhow!("a task that should go on for ever has ended"),
        Ok(Err(error)) => error,
        Err(error) => error.into(),
    }
}
