//! Sagas purged a second, beside bare statements that delete the same rows, and W with and without a purge beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use saga_servers::PostgresServer;

use super::database::{self, BATCH, Due, Purger};
use super::size;
use crate::clock::Stopwatch;
use crate::figures::{Figures, Target, print_table};
use crate::postgres::work::Work;
use crate::postgres::{saga, server};

/// How many sagas a second are purged beside the load.
const BESIDE_PER_S: usize = 1_000;
/// How often a batch begins. The maintenance task also takes few large batches: it doubles them from 200 sagas until one takes 25 ms.
const BATCH_EVERY: Duration = Duration::from_millis(500);
const BATCH_BESIDE: usize = BESIDE_PER_S / 2;

/// How the benchmark is run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Finished sagas that are purged in a round.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(10_000..))]
    finished: u32,
    /// Sagas of W that run in a round.
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1_000..))]
    sagas: u32,
    /// Rounds. Each contender runs once a round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// One JSON object a figure instead of a table.
    #[arg(long)]
    json: bool,
    /// Ends with an error if a target is not reached.
    #[arg(long)]
    require: bool,
}

/// Runs all parts. It answers false if a target was required and not reached.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let executor = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let targets = executor.block_on(run_all(options))?;
    for target in &targets {
        target.print("retention", options.json);
    }
    Ok(!options.require || targets.iter().all(Target::is_reached))
}

async fn run_all(options: &Options) -> Result<Vec<Target>> {
    let server = server::start().await?;
    let mut bench = Bench { server, databases: 0 };
    let mut bare = Figures::of_sagas("bare statements that delete the same rows");
    let mut purged = Figures::of_sagas("purge");
    let mut alone = Figures::of_steps("W at 64");
    let mut beside = Figures::of_steps("W at 64, beside a purge");
    let mut rate = Figures::of_sagas("the purge beside W");
    for round in 0..options.rounds {
        bare.values.push(bench.bare(options).await?);
        purged.values.push(bench.purge(options).await?);
        // The second of the two may find a warmer machine.
        for purges in [round % 2 == 1, round % 2 == 0] {
            let (steps_per_s, purged_per_s) = bench.load(options, purges).await?;
            if purges {
                beside.values.push(steps_per_s);
                rate.values.push(purged_per_s);
            } else {
                alone.values.push(steps_per_s);
            }
        }
    }
    let bytes = size::of_one(&bench.fresh().await?, options.finished).await?;
    let growth = size::growth(&bench.fresh().await?).await?;
    if !options.json {
        print_table(&[&bare, &purged, &rate]);
        print_table(&[&alone, &beside]);
    }
    Ok(vec![
        Target::at_least("sagas purged a second, alone", 8_000.0, purged.median()),
        Target::at_least("sagas purged a second, beside W", 950.0, rate.median()),
        Target::at_least("W beside a purge / W", 0.95, beside.ratio_to(&alone)),
        Target::at_most("size after ten periods / after one", 1.2, growth),
        Target::at_most("bytes of a full saga of W", 2_000.0, bytes.full),
        Target::at_most("bytes of a tombstone", 400.0, bytes.tombstone),
    ])
}

struct Bench {
    server: PostgresServer,
    databases: u32,
}

impl Bench {
    async fn fresh(&mut self) -> Result<String> {
        self.databases += 1;
        Ok(self.server.create_database(&format!("retention_{}", self.databases)).await?)
    }

    async fn due(&mut self, options: &Options) -> Result<String> {
        let url = self.fresh().await?;
        database::fill(&url, options.finished).await?;
        database::make_due(&url, options.finished, Due::Deletion).await?;
        Ok(url)
    }

    /// The floor: three statements a batch, without any check.
    async fn bare(&mut self, options: &Options) -> Result<f64> {
        let url = self.due(options).await?;
        let watch = Stopwatch::started();
        let sql = format!(
            "DO $$ DECLARE v_ids bigint[]; BEGIN LOOP \
             v_ids := ARRAY(SELECT id FROM saga.progress WHERE expires_at <= clock_timestamp() ORDER BY expires_at, id LIMIT {BATCH}); \
             EXIT WHEN cardinality(v_ids) = 0; \
             DELETE FROM saga.records r USING saga.sagas s WHERE s.id = ANY (v_ids) AND r.tenant = s.tenant AND r.key = s.key; \
             DELETE FROM saga.progress WHERE id = ANY (v_ids); \
             DELETE FROM saga.sagas WHERE id = ANY (v_ids); \
             COMMIT; END LOOP; END $$"
        );
        database::execute(&url, &sql).await?;
        let took = watch.elapsed();
        ensure!(database::number(&url, "SELECT count(*) FROM saga.sagas").await? == 0, "the floor left sagas");
        Ok(f64::from(options.finished) / took.as_secs_f64())
    }

    async fn purge(&mut self, options: &Options) -> Result<f64> {
        let url = self.due(options).await?;
        let purger = Purger::new(&url).await?;
        let watch = Stopwatch::started();
        let count = purger.all().await?;
        let took = watch.elapsed();
        purger.close().await?;
        ensure!(count == options.finished as usize, "{count} sagas of {} were purged", options.finished);
        Ok(f64::from(options.finished) / took.as_secs_f64())
    }

    /// W among sagas that are due, and how many of them were purged a second meanwhile.
    async fn load(&mut self, options: &Options, purges: bool) -> Result<(f64, f64)> {
        let url = self.due(options).await?;
        let ended = Arc::new(AtomicBool::new(false));
        let purging = purges.then(|| tokio::spawn(purge_steadily(url.clone(), Arc::clone(&ended))));
        let first = options.finished;
        let done = saga::run(&url, Work::Orders, first..first + options.sagas, 64).await?;
        ended.store(true, Ordering::Relaxed);
        let count = match purging {
            Some(task) => task.await??,
            None => 0,
        };
        let took = done.took.as_secs_f64();
        Ok((f64::from(done.steps) / took, f64::from(count) / took))
    }
}

/// Purges so many sagas a second until the load has ended.
async fn purge_steadily(url: String, ended: Arc<AtomicBool>) -> Result<u32> {
    let purger = Purger::new(&url).await?;
    let mut ticks = tokio::time::interval(BATCH_EVERY);
    let mut count = 0;
    while !ended.load(Ordering::Relaxed) {
        ticks.tick().await;
        count += u32::try_from(purger.batch(BATCH_BESIDE).await?)?;
    }
    purger.close().await?;
    Ok(count)
}
