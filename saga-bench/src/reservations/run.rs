//! The contenders in rounds.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use saga_postgres::sqlx::{self, PgPool};
use saga_reservations::{Reservations as _, ResourceName, SqlReservations};

use super::contender::{Contender, pool};
use super::duplicates;
use super::over_redis::OverRedis;
use super::work::{OPERATIONS_PER_REQUEST, Spread, drive};
use crate::figures::{Figures, Target, print_table};
use crate::line::Line;
use crate::postgres::{pgbench_rate, server};
use crate::rounds::Options;

const BENCH: &str = "reservations";
const MANY: Spread = Spread(1_000);
const HOT: Spread = Spread(1);
const CAPACITY: u64 = 1 << 40;

const MANY_RATIO: f64 = 1.2;
const HOT_RATIO: f64 = 3.0;
const GRPC_RATIO: f64 = 0.5;
const DUPLICATES_RATIO: f64 = 2.0;
const REDIS_RATIO: f64 = 0.5;

/// Runs all contenders. It answers false if a target was required and not reached.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run_all(options))
}

/// What each contender reached.
struct Reached {
    /// pgbench, one transaction each, the crate, and over gRPC: on many resources.
    many: [Figures; 4],
    /// pgbench, one transaction each, and the crate: on one resource.
    hot: [Figures; 3],
    /// Unique violations, and refused duplicates.
    duplicates: [Figures; 2],
    /// Bare scripts, and requests that are held in Redis.
    redis: [Figures; 2],
}

impl Reached {
    fn new() -> Self {
        let of = Figures::of_operations;
        Self {
            many: [
                of("pgbench, one UPDATE a commit, 1,000 rows"),
                of("one transaction each, 1,000 resources"),
                of("saga-reservations, 1,000 resources"),
                of("the same over gRPC"),
            ],
            hot: [
                of("pgbench, one UPDATE a commit, one row"),
                of("one transaction each, one resource"),
                of("saga-reservations, one resource"),
            ],
            duplicates: [of("violations of a unique index"), of("refused as DUPLICATE")],
            redis: [of("bare EVALSHA"), of("requests held in Redis, 1,000 resources")],
        }
    }

    fn targets(&self) -> [Target; 5] {
        let [many_pgbench, _, many, grpc] = &self.many;
        let [hot_pgbench, _, hot] = &self.hot;
        let [violated, refused] = &self.duplicates;
        let [bare, held] = &self.redis;
        [
            Target::at_least("1,000 resources, beside pgbench", MANY_RATIO, many.ratio_to(many_pgbench)),
            Target::at_least("one resource, beside pgbench", HOT_RATIO, hot.ratio_to(hot_pgbench)),
            Target::at_least("over gRPC, beside in process", GRPC_RATIO, grpc.ratio_to(many)),
            Target::at_least("duplicates, beside a unique index", DUPLICATES_RATIO, refused.ratio_to(violated)),
            Target::at_least("held in Redis, beside EVALSHA", REDIS_RATIO, held.ratio_to(bare)),
        ]
    }

    fn print(&self, in_flight: u32, is_json: bool) {
        if !is_json {
            let all: Vec<&Figures> =
                self.many.iter().chain(&self.hot).chain(&self.duplicates).chain(&self.redis).collect();
            print_table(&all);
            let [_, one_each, many, _] = &self.many;
            let [_, hot_one_each, hot] = &self.hot;
            println!(
                "\nbeside one transaction each: {:.1} times on 1,000 resources, {:.1} times on one\n",
                many.ratio_to(one_each),
                hot.ratio_to(hot_one_each)
            );
            return;
        }
        let works =
            [("many", &self.many[..]), ("hot", &self.hot), ("duplicates", &self.duplicates), ("redis", &self.redis)];
        for (work, figures) in works {
            for contender in figures {
                let ratio = (contender.name != figures[0].name)
                    .then(|| (figures[0].name.clone(), contender.ratio_to(&figures[0])));
                let line = Line::of(BENCH, work, in_flight, &contender.name);
                println!("{}", line.number("operations_per_s", contender.median(), 0).ratios(ratio));
            }
        }
    }
}

async fn run_all(options: &Options) -> Result<bool> {
    let server = server::start().await?;
    let url = server.create_database("reservations").await?;
    let (in_process, store) = Contender::in_process(&url).await?;
    let contenders = [Contender::one_each(&url).await?, in_process, Contender::over_grpc(store.clone()).await?];
    let rows = pool(&url).await?;
    prepare(&store, &rows).await?;
    duplicates::prepare(&contenders[1], &rows).await?;
    let over_redis = OverRedis::start(store.clone(), MANY).await?;
    let Options { requests, in_flight, rounds, json, .. } = *options;
    if !json {
        println!(
            "Units are held and confirmed on PostgreSQL, durable; {requests} requests a round, {in_flight} in flight, \
             {rounds} rounds, interleaved\n"
        );
    }
    let mut reached = Reached::new();
    let folder = tempfile::tempdir()?;
    let calls = requests * OPERATIONS_PER_REQUEST;
    for round in 0..rounds {
        reached.many[0].values.push(update(&url, folder.path(), MANY, calls, in_flight)?);
        reached.hot[0].values.push(update(&url, folder.path(), HOT, calls, in_flight)?);
        for (number, contender) in contenders.iter().enumerate() {
            let prefix = format!("many-{round}-{number}");
            let took = drive(contender, MANY, &prefix, requests, in_flight).await?;
            reached.many[number + 1].values.push(rate(calls, took));
        }
        for (number, contender) in contenders.iter().take(2).enumerate() {
            let prefix = format!("hot-{round}-{number}");
            let took = drive(contender, HOT, &prefix, requests, in_flight).await?;
            reached.hot[number + 1].values.push(rate(calls, took));
        }
        let took = duplicates::violated(&rows, calls, in_flight).await?;
        reached.duplicates[0].values.push(rate(calls, took));
        let took = duplicates::refused(&contenders[1], &format!("twice-{round}"), calls, in_flight).await?;
        reached.duplicates[1].values.push(rate(calls, took));
        let took = over_redis.run_bare(&format!("bare-{round}"), calls, in_flight).await?;
        reached.redis[0].values.push(rate(calls, took));
        let took = over_redis.reserve(MANY, &format!("redis-{round}"), calls, in_flight).await?;
        reached.redis[1].values.push(rate(calls, took));
    }
    reached.print(in_flight, json);
    verify(&store, rounds * requests).await?;
    let targets = reached.targets();
    for target in &targets {
        target.print(BENCH, json);
    }
    Ok(!options.require || targets.iter().all(Target::is_reached))
}

async fn prepare(store: &SqlReservations, rows: &PgPool) -> Result<()> {
    let create = "CREATE TABLE bench_rows (id BIGINT PRIMARY KEY, held BIGINT NOT NULL)";
    sqlx::query(create).execute(rows).await?;
    let fill = "INSERT INTO bench_rows SELECT id, 0 FROM generate_series(0, $1 - 1) AS id";
    sqlx::query(fill).bind(i64::from(MANY.0)).execute(rows).await?;
    for number in 0..MANY.0 {
        store.set_capacity(&ResourceName::new(MANY.resource(number))?, CAPACITY).await?;
    }
    Ok(())
}

/// pgbench: one UPDATE a transaction.
fn update(url: &str, folder: &Path, spread: Spread, calls: u32, clients: u32) -> Result<f64> {
    let last = spread.0 - 1;
    let script = format!("\\set id random(0, {last})\nUPDATE bench_rows SET held = held + 1 WHERE id = :id;\n");
    pgbench_rate(url, folder, &script, clients, calls.div_ceil(clients))
}

/// Every unit that was asked for is confirmed.
async fn verify(store: &SqlReservations, requests: u32) -> Result<()> {
    let (mut confirmed, mut held) = (0, 0);
    for number in 0..MANY.0 {
        if let Some(found) = store.resource(&ResourceName::new(MANY.resource(number))?).await? {
            (confirmed, held) = (confirmed + found.confirmed, held + found.held);
        }
    }
    // Three contenders on many resources, and two on one.
    let expected = u64::from(requests) * 5;
    ensure!((confirmed, held) == (expected, 0), "{confirmed} units are confirmed and {held} held, of {expected}");
    Ok(())
}

fn rate(calls: u32, took: Duration) -> f64 {
    f64::from(calls) / took.as_secs_f64()
}
