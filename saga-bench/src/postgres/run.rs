//! The contenders in rounds, in new databases of one server, and their results.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use saga_postgres::PostgresStore;
use saga_servers::PostgresServer;
use sqlx::{AssertSqlSafe, Executor as _, PgConnection};

use super::measure::{Done, Reading, Sample, admin, settled};
use super::options::Options;
use super::report::{Cell, Report};
use super::wire::Wire;
use super::work::{Spec, Subject, Work};
use super::workload;
use super::{alone, finished, floor, plan, saga, server, waiting};
use crate::clock::Stopwatch;
use crate::peers::{Job, Programs};

/// Sagas of the runs that count round trips: the second has so many more than the first, and the difference counts.
const COUNTED_SAGAS: u32 = 1_200;
/// A database that is filled once, for all rounds.
const FULL: &str = "full_tables";
const WAITING: &str = "waiting";

/// Runs all contenders. It answers false if a target was required and not reached.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let executor = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = executor.block_on(run_all(options))?;
    report.print(options.json);
    Ok(!options.require || report.is_reached())
}

async fn run_all(options: &Options) -> Result<Report> {
    let watch = Stopwatch::started();
    let peers = if options.peers { Programs::build()? } else { Programs::default() };
    let server = server::start().await?;
    if !options.json {
        println!("{}\n", server::describe(&server).await?);
    }
    let mut bench = Bench { admin: admin(&server).await?, server, peers, databases: 0 };
    let specs = plan::specs(options, &bench.peers.names(&[])?.into_iter().map(str::to_owned).collect::<Vec<_>>());
    let mut report = Report { cells: specs.into_iter().map(Cell::new).collect() };
    let is_full = |spec: &Spec| matches!(spec.work, Work::Finished | Work::Waiting);
    for is_full_turn in [false, true] {
        for round in 0..options.rounds {
            for cell in report.cells.iter_mut().filter(|cell| is_full(&cell.spec) == is_full_turn) {
                bench.sample(cell, round, options).await?;
            }
        }
    }
    if !options.no_round_trips {
        for cell in report.cells.iter_mut().filter(|cell| !is_full(&cell.spec)) {
            if let Some(counted) = bench.round_trips(&cell.spec).await? {
                cell.round_trips_per_step = Some(counted);
            }
        }
    }
    eprintln!("{:.0} s in all", watch.elapsed().as_secs_f64());
    Ok(report)
}

struct Bench {
    server: PostgresServer,
    admin: PgConnection,
    peers: Programs,
    databases: u32,
}

impl Bench {
    /// One run of a contender in one round.
    async fn sample(&mut self, cell: &mut Cell, round: u32, options: &Options) -> Result<()> {
        let spec = cell.spec.clone();
        let sample = match (spec.work, &spec.subject) {
            (Work::Finished, Subject::SagaAmongFinished) => self.among_finished(&spec, round, options).await,
            (Work::Waiting, _) => self.among_waiting(&spec, round, options).await,
            _ => self.in_fresh_database(&spec, spec.sagas(options.sagas)).await,
        };
        match sample.with_context(|| spec.to_string()) {
            Ok(sample) => {
                eprintln!("round {}: {spec}: {:.0} steps/s", round + 1, sample.steps_per_s);
                cell.samples.push(Sample { round, ..sample });
            }
            // What others do with their works is shown and counted, and does not end the run.
            Err(error) if matches!(spec.subject, Subject::Peer(_)) => {
                eprintln!("round {}: {error:#}", round + 1);
                cell.failed += 1;
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn in_fresh_database(&mut self, spec: &Spec, sagas: u32) -> Result<Sample> {
        self.databases += 1;
        let name = format!("bench_{}", self.databases);
        let url = self.server.create_database(&name).await?;
        self.prepare(&url, spec, sagas).await?;
        let before = self.reading(&name).await?;
        let (done, peer_cpu) = self.let_run(&url, spec, sagas).await?;
        let mut sample = self.reading(&name).await?.sample(before, done);
        if let Some(seconds) = peer_cpu {
            // The process of a peer also starts and ends, which it does not count.
            let client = seconds * 1e3 / f64::from(sample.done.steps);
            sample.cpu_ms_per_step += client - sample.client_cpu_ms_per_step;
            sample.client_cpu_ms_per_step = client;
        }
        self.verify(&url, spec, sagas, sample.done.steps).await?;
        self.drop_database(&name).await?;
        Ok(sample)
    }

    async fn among_finished(&mut self, spec: &Spec, round: u32, options: &Options) -> Result<Sample> {
        let url = self.server.url_of(FULL);
        if round == 0 {
            let watch = Stopwatch::started();
            self.server.create_database(FULL).await?;
            workload::create(&url).await?;
            finished::fill(&url, options.finished).await?;
            workload::clear(&url).await?;
            eprintln!("filled with {} finished sagas in {:.0} s", options.finished, watch.elapsed().as_secs_f64());
        }
        let sagas = spec.sagas(options.sagas);
        let first = options.finished + round * sagas;
        let before = self.reading(FULL).await?;
        let done = saga::run(&url, spec.work, first..first + sagas, spec.in_flight).await?;
        let sample = self.reading(FULL).await?.sample(before, done);
        workload::verify(&url, spec.work, (round + 1) * sagas).await?;
        if round + 1 == options.rounds {
            self.drop_database(FULL).await?;
        }
        Ok(sample)
    }

    async fn among_waiting(&mut self, spec: &Spec, round: u32, options: &Options) -> Result<Sample> {
        let url = self.server.url_of(WAITING);
        if round == 0 {
            let watch = Stopwatch::started();
            self.server.create_database(WAITING).await?;
            workload::create(&url).await?;
            waiting::fill(&url, options.waiting).await?;
            eprintln!("filled with {} sagas that wait in {:.0} s", options.waiting, watch.elapsed().as_secs_f64());
        }
        // Each round takes some of them, and there must be as many.
        let sagas = spec.sagas(options.sagas).min(options.waiting / options.rounds);
        let before = self.reading(WAITING).await?;
        let (done, peak_mb) = waiting::run(&url, sagas).await?;
        let sample = Sample { peak_mb: Some(peak_mb), ..self.reading(WAITING).await?.sample(before, done) };
        workload::verify_some(&url, (round + 1) * sagas * workload::STEPS_PER_SAGA).await?;
        if round + 1 == options.rounds {
            self.drop_database(WAITING).await?;
        }
        Ok(sample)
    }

    /// Makes the tables, so that what is measured is the work alone.
    async fn prepare(&self, url: &str, spec: &Spec, sagas: u32) -> Result<()> {
        match &spec.subject {
            Subject::Peer(_) => return Ok(()),
            Subject::Saga | Subject::SagaAmongFinished => PostgresStore::connect(url).await?.close().await,
            Subject::F1 | Subject::F4 | Subject::F5 => floor::create(url, sagas.max(alone::SAGAS)).await?,
        }
        workload::create(url).await
    }

    async fn let_run(&self, url: &str, spec: &Spec, sagas: u32) -> Result<(Done, Option<f64>)> {
        let (Spec { work, in_flight, .. }, folder) = (spec, self.server.folder());
        let done = match &spec.subject {
            Subject::Peer(name) => {
                let job = Job { subject: name, work: &work.to_string(), in_flight: *in_flight, sagas };
                let told = self.peers.run(url, job).await.with_context(|| name.clone())?;
                let done = Done::new(told.steps, Duration::from_secs_f64(told.seconds));
                let (done, cpu) = (Done { is_volatile: !told.durable, ..done }, told.client_cpu_seconds);
                return Ok((done, Some(cpu)));
            }
            subject if *work == Work::Alone => alone::run(url, folder, subject).await?,
            Subject::F1 => floor::run_pgbench(url, folder, *work, sagas, *in_flight).await?,
            Subject::F4 => floor::run_one_statement(url, sagas, *in_flight).await?,
            Subject::F5 => floor::run_unnest(url, sagas).await?,
            Subject::Saga | Subject::SagaAmongFinished => saga::run(url, *work, 0..sagas, *in_flight).await?,
        };
        Ok((done, None))
    }

    async fn verify(&self, url: &str, spec: &Spec, sagas: u32, steps: u32) -> Result<()> {
        let sagas = if spec.work == Work::Alone { alone::SAGAS } else { sagas };
        match &spec.subject {
            Subject::Peer(_) => Ok(()),
            Subject::Saga | Subject::SagaAmongFinished => workload::verify(url, spec.work, sagas).await,
            Subject::F1 | Subject::F4 | Subject::F5 => floor::verify(url, spec.work, steps).await,
        }
    }

    /// How often a step needs an answer of the server before it goes on: of a run, less those of a shorter one.
    async fn round_trips(&mut self, spec: &Spec) -> Result<Option<f64>> {
        if spec.work == Work::Alone || matches!(spec.subject, Subject::Peer(_)) {
            return Ok(None);
        }
        let mut counted = Vec::new();
        for sagas in [COUNTED_SAGAS, 2 * COUNTED_SAGAS] {
            self.databases += 1;
            let name = format!("bench_{}", self.databases);
            let direct = self.server.create_database(&name).await?;
            self.prepare(&direct, spec, sagas).await?;
            let wire = Wire::before(self.server.port()).await?;
            let url = wire.url(&direct, self.server.port());
            if url == direct {
                bail!("the address {direct} has no port to put a proxy in front of");
            }
            let (done, _) = self.let_run(&url, spec, sagas).await?;
            counted.push((done.steps, wire.round_trips()));
            settled(&mut self.admin, &name).await?;
            self.drop_database(&name).await?;
        }
        let ((few, less), (many, more)) = (counted[0], counted[1]);
        #[expect(clippy::cast_precision_loss, reason = "a run counts far below 2^52")]
        let trips = (more as f64 - less as f64) / f64::from(many - few);
        Ok(Some(trips))
    }

    async fn reading(&mut self, database: &str) -> Result<Reading> {
        settled(&mut self.admin, database).await?;
        self.admin.execute("CHECKPOINT").await?;
        Reading::of(&self.server, &mut self.admin, database).await
    }

    async fn drop_database(&mut self, name: &str) -> Result<()> {
        self.admin.execute(sqlx::raw_sql(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)")))).await?;
        Ok(())
    }
}
