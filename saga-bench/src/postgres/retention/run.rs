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
use crate::line::Line;
use crate::postgres::work::Work;
use crate::postgres::{saga, server};

const BENCH: &str = "retention";
/// The contenders' names in JSON.
const BARE: &str = "bare statements";
const PURGE: &str = "purge";
const SAGA: &str = "saga";
const SAGA_BESIDE_PURGE: &str = "saga, beside a purge";

const IN_FLIGHT: u32 = 64;
/// How many sagas a second are purged beside the load, where the purger keeps up.
const BESIDE_PER_S: usize = 1_000;
/// A batch that takes longer than its period delays the next one.
const BESIDE_PER_S_MIN: f64 = 950.0;
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
        target.print(BENCH, options.json);
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
    if options.json {
        for line in lines([&bare, &purged, &alone, &beside, &rate]) {
            println!("{line}");
        }
    } else {
        print_table(&[&bare, &purged, &rate]);
        print_table(&[&alone, &beside]);
    }
    Ok(vec![
        Target::at_least("sagas purged a second, alone", 8_000.0, purged.median()),
        Target::at_least("sagas purged a second, beside W", BESIDE_PER_S_MIN, rate.median()),
        Target::at_least("W beside a purge / W", 0.95, beside.ratio_to(&alone)),
        Target::at_most("size after ten periods / after one", 1.2, growth),
        Target::at_most("bytes of a full saga of W", 2_000.0, bytes.full),
        Target::at_most("bytes of a tombstone", 400.0, bytes.tombstone),
    ])
}

fn lines([bare, purged, alone, beside, rate]: [&Figures; 5]) -> [Line; 4] {
    let purge = |subject| Line::of(BENCH, "purge", 1, subject);
    let load = |subject| Line::of(BENCH, "W", IN_FLIGHT, subject);
    let to_bare = (BARE.to_owned(), purged.ratio_to(bare));
    let to_alone = (SAGA.to_owned(), beside.ratio_to(alone));
    let beside = load(SAGA_BESIDE_PURGE).number("steps_per_s", beside.median(), 0).ratios([to_alone]);
    [
        purge(BARE).number("sagas_per_s", bare.median(), 0).ratios([]),
        purge(PURGE).number("sagas_per_s", purged.median(), 0).ratios([to_bare]),
        load(SAGA).number("steps_per_s", alone.median(), 0).ratios([]),
        beside.number("purged_per_s", rate.median(), 0),
    ]
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
        let done = saga::run(&url, Work::Orders, first..first + options.sagas, IN_FLIGHT).await?;
        ended.store(true, Ordering::Relaxed);
        let purged_per_s = match purging {
            Some(task) => {
                let (count, took) = task.await??;
                f64::from(count) / took.as_secs_f64()
            }
            None => 0.0,
        };
        Ok((f64::from(done.steps) / done.took.as_secs_f64(), purged_per_s))
    }
}

/// Purges so many sagas a second until the load has ended; answers how many it purged, and in which time.
async fn purge_steadily(url: String, ended: Arc<AtomicBool>) -> Result<(u32, Duration)> {
    let purger = Purger::new(&url).await?;
    let done = in_periods(BATCH_EVERY, &ended, || purger.batch(BATCH_BESIDE)).await?;
    purger.close().await?;
    Ok(done)
}

/// Does one batch in each period until `ended`; answers how many sagas the batches took, and how long the periods were.
async fn in_periods<B>(every: Duration, ended: &AtomicBool, mut batch: impl FnMut() -> B) -> Result<(u32, Duration)>
where
    B: Future<Output = Result<usize>>,
{
    // The watch starts first, so that it never shows less than the periods took.
    let watch = Stopwatch::started();
    let mut ticks = tokio::time::interval(every);
    ticks.tick().await;
    let mut count = 0;
    loop {
        count += u32::try_from(batch().await?)?;
        // The period of the last batch counts whole, as that of each one before it does.
        ticks.tick().await;
        if ended.load(Ordering::Relaxed) {
            return Ok((count, watch.elapsed()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn each_batch_counts_for_a_whole_period() {
        let every = Duration::from_millis(40);
        let ended = AtomicBool::new(false);
        let mut batches = 0;
        let batch = || {
            batches += 1;
            ended.store(batches == 3, Ordering::Relaxed);
            ready(anyhow::Ok(500))
        };
        let (count, took) = in_periods(every, &ended, batch).await.unwrap();
        assert_eq!(count, 1_500);
        assert!(took >= 3 * every, "three batches in {took:?}");
    }

    #[test]
    fn each_figure_has_a_line_of_json() {
        let figures = |value| {
            let mut figures = Figures::of_sagas("");
            figures.values.push(value);
            figures
        };
        let [bare, purged, alone, beside, rate] = [100.0, 50.0, 10.0, 8.0, 7.0].map(figures);
        let lines = lines([&bare, &purged, &alone, &beside, &rate]).map(|line| line.to_string());
        let wanted = [
            r#"{"bench":"retention","work":"purge","in_flight":1,"subject":"bare statements","sagas_per_s":100.0,"ratios":{}}"#,
            r#"{"bench":"retention","work":"purge","in_flight":1,"subject":"purge","sagas_per_s":50.0,"ratios":{"bare statements":0.5}}"#,
            r#"{"bench":"retention","work":"W","in_flight":64,"subject":"saga","steps_per_s":10.0,"ratios":{}}"#,
            r#"{"bench":"retention","work":"W","in_flight":64,"subject":"saga, beside a purge","steps_per_s":8.0,"ratios":{"saga":0.8},"purged_per_s":7.0}"#,
        ];
        assert_eq!(lines, wanted);
    }
}
