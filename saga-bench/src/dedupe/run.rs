//! The contenders in rounds.

use anyhow::Result;
use redis::Client;
use redis::aio::MultiplexedConnection;
use saga_redis::{MemoryEpochs, RedisLocks, RedisOptions};
use saga_servers::RedisServer;

use super::batch::Batches;
use super::hybrid::{AGE, Route};
use super::lookups::Lookups;
use super::pairs::Pairs;
use crate::figures::{Figures, Target, print_table};
use crate::http::on;
use crate::line::Line;
use crate::postgres::server;
use crate::rounds::Options;

const BENCH: &str = "dedupe";
/// The shares of duplicates, in percent.
const SHARES: [u32; 4] = [0, 1, 10, 50];
/// What Redis first has to bring with half of the requests duplicates, to be built.
const HYBRID_RATIO: f64 = 1.3;
const PAIR_RATIO: f64 = 0.7;
/// Lookups and batches a round.
const LOOKUPS: u32 = 1_000;
const BATCHES: u32 = 100;

/// Runs all contenders. It answers false if a target was required and not reached.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run_all(options))
}

async fn run_all(options: &Options) -> Result<bool> {
    let mut targets = Box::pin(keys(options)).await?;
    targets.extend(Box::pin(locks(options)).await?);
    for target in &targets {
        target.print(BENCH, options.json);
    }
    Ok(!options.require || targets.iter().all(Target::is_reached))
}

/// Requests with a key, and batches of received messages.
async fn keys(options: &Options) -> Result<Vec<Target>> {
    let Options { requests, in_flight, rounds, json, .. } = *options;
    let server = server::start().await?;
    let database = server.create_database("payments").await?;
    // What Redis knows is only a copy, so it need not survive anything.
    let cache = RedisServer::start_with(&[("appendonly", "no")]).await?;
    let mut redis = connect(&cache).await?;
    let processes = [on(&database).await?, on(&database).await?];
    let alone =
        |redis: Option<&MultiplexedConnection>| Route { processes: vec![processes[0].clone()], redis: redis.cloned() };
    let both = |redis: Option<&MultiplexedConnection>| Route { processes: processes.to_vec(), redis: redis.cloned() };
    let routes = [
        ("one process, the database", alone(None)),
        ("one process, Redis first", alone(Some(&redis))),
        ("two processes, the database", both(None)),
        ("two processes, Redis first", both(Some(&redis))),
    ];
    let mut throughput: Vec<[Figures; 4]> = Vec::new();
    for share in SHARES {
        throughput.push(std::array::from_fn(|nth| Figures::of_requests(format!("{}, {share} %", routes[nth].0))));
    }
    let (mut lookups, mut batches) = (Lookups::new(), Batches::new());
    let mut next = 0;
    for _ in 0..rounds {
        for (share, figures) in SHARES.into_iter().zip(&mut throughput) {
            for (figures, (_, route)) in figures.iter_mut().zip(&routes) {
                let took = route.drive(next, requests, share, in_flight).await?;
                figures.values.push(f64::from(requests) / took.as_secs_f64());
                next += AGE + requests;
            }
        }
        lookups.measure(&mut redis, processes.clone(), next..next + LOOKUPS).await?;
        next += LOOKUPS;
        batches.measure(&mut redis, &database, BATCHES).await?;
    }
    print_keys(json, in_flight, &throughput, &lookups, &batches);
    let [alone, hybrid_alone, both, hybrid_both] = &throughput[SHARES.len() - 1];
    let name = |processes: &str| format!("Redis first at 50 %, {processes}");
    Ok(vec![
        Target::at_least(name("one process"), HYBRID_RATIO, hybrid_alone.ratio_to(alone)),
        Target::at_least(name("two processes"), HYBRID_RATIO, hybrid_both.ratio_to(both)),
    ])
}

fn print_keys(json: bool, in_flight: u32, throughput: &[[Figures; 4]], lookups: &Lookups, batches: &Batches) {
    let break_even = [
        ("one process", lookups.redis.median() / lookups.same_process.median()),
        ("two processes", lookups.redis.median() / lookups.other_process.median()),
        ("256 ids", batches.break_even()),
    ];
    if json {
        for (share, [alone, hybrid_alone, both, hybrid_both]) in SHARES.into_iter().zip(throughput) {
            for (subject, figures, beside) in [
                ("database-1", alone, alone),
                ("redis-1", hybrid_alone, alone),
                ("database-2", both, both),
                ("redis-2", hybrid_both, both),
            ] {
                let line = Line::of(BENCH, &format!("duplicates-{share}"), in_flight, subject);
                let line = line.number("requests_per_s", figures.median(), 0);
                println!("{}", line.ratios([("database".to_owned(), figures.ratio_to(beside))]));
            }
        }
        for figures in lookups.all().into_iter().chain(batches.all()) {
            println!("{}", Line::of(BENCH, &figures.name, 1, "cost").number("us", figures.median(), 1));
        }
        for (subject, share) in break_even {
            println!("{}", Line::of(BENCH, "break-even", 1, subject).number("share", share, 3));
        }
        return;
    }
    println!(
        "A payment by POST on PostgreSQL, durable, and Redis in front of it; {in_flight} in flight, interleaved\n"
    );
    for figures in throughput {
        let [alone, hybrid_alone, both, hybrid_both] = figures;
        print_table(&[alone, hybrid_alone, both, hybrid_both]);
        let ratios = (hybrid_alone.ratio_to(alone), hybrid_both.ratio_to(both));
        println!("{:<44} {:>12.2}x one process, {:.2}x two\n", "Redis first, beside the database", ratios.0, ratios.1);
    }
    print_table(&lookups.all());
    println!();
    print_table(&batches.all());
    println!();
    for (subject, share) in break_even {
        let name = format!("Redis pays from this share on, {subject}");
        println!("{name:<44} {:>11.0} %", share * 100.0);
    }
    println!();
}

/// Locks that are acquired and released.
async fn locks(options: &Options) -> Result<Vec<Target>> {
    let Options { requests, in_flight, rounds, json, .. } = *options;
    let server = RedisServer::start().await?;
    let bare = Pairs::Bare(connect(&server).await?);
    let service = RedisLocks::connect(RedisOptions::new(server.url()), MemoryEpochs::default()).await?;
    let service = Pairs::Locks(service);
    let mut targets = Vec::new();
    let mut first = 0;
    for (in_flight, pairs) in [(1, requests / 4), (in_flight, requests)] {
        let of = |name: &str| Figures::of_pairs(format!("{name}, {in_flight} in flight"));
        let mut figures = [of("two bare EVALSHA"), of("acquire and release")];
        // The slots get their epochs, and Redis the scripts.
        for pairs in [&bare, &service] {
            pairs.drive(first..first + 500, in_flight).await?;
        }
        first += 500;
        for _ in 0..rounds {
            for (figures, contender) in figures.iter_mut().zip([&bare, &service]) {
                let took = contender.drive(first..first + pairs, in_flight).await?;
                figures.values.push(f64::from(pairs) / took.as_secs_f64());
            }
            first += pairs;
        }
        let [bare, service] = &figures;
        if json {
            for (subject, figures) in [("bare", bare), ("locks", service)] {
                let line = Line::of(BENCH, "lock-pair", in_flight, subject).number("pairs_per_s", figures.median(), 0);
                println!("{}", line.ratios([("bare".to_owned(), figures.ratio_to(bare))]));
            }
        } else {
            print_table(&[bare, service]);
            println!();
        }
        let name = format!("a lock, beside two bare EVALSHA, {in_flight} in flight");
        targets.push(Target::at_least(name, PAIR_RATIO, service.ratio_to(bare)));
    }
    Ok(targets)
}

async fn connect(server: &RedisServer) -> Result<MultiplexedConnection> {
    Ok(Client::open(server.url())?.get_multiplexed_async_connection().await?)
}
