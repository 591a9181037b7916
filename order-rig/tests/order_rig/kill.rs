//! Killed at any moment and run again, the program goes on until every order has ended, and the books agree.

use std::{process::Command, time::Duration};

use saga_testkit::sim::Random;

use crate::support::{OutsideProcess, PRODUCTS, REAL, REAL_ORDERS, Ran, Shop, number, seed_from_env, until_or_ended};
use tokio::time::Instant;

const RUNS: u64 = 30;
const SIDE_BY_SIDE: u64 = 3;
/// How many of the real orders each run has.
const ORDERS: usize = 240;
/// What the program holds as long as nothing else is said. Most of a lease is far more than a slow machine needs to begin.
const LEASE: Duration = Duration::from_mins(1);

/// How one run went.
struct Killed {
    /// Orders that had ended when it was killed.
    at: u64,
    /// Whether it was still running then.
    in_time: bool,
    /// How long after the restart the first order ended.
    at_work_after: Duration,
}

#[test]
fn killed_at_any_moment_and_run_again_every_order_ends() {
    let seed = seed_from_env("ORDER_RIG_KILL_SEED");
    // Most of a run is waiting for slow answers, so that some of them fit side by side.
    let runs: Vec<Killed> = std::thread::scope(|scope| {
        let side_by_side: Vec<_> = (0..SIDE_BY_SIDE)
            .map(|first| {
                scope.spawn(move || {
                    (first..RUNS).step_by(SIDE_BY_SIDE as usize).map(|run| kill_once(run, seed)).collect::<Vec<_>>()
                })
            })
            .collect();
        side_by_side.into_iter().flat_map(|runs| runs.join().expect("each run says itself what went wrong")).collect()
    });

    let in_time = runs.iter().filter(|run| run.in_time).count();
    println!(
        "{in_time} of {RUNS} were killed while they ran, after {:?} orders",
        runs.iter().map(|run| run.at).collect::<Vec<_>>()
    );
    assert!(in_time as u64 >= RUNS * 4 / 5, "too few were killed while they ran");

    let mut waits: Vec<_> = runs.iter().filter(|run| run.in_time).map(|run| run.at_work_after).collect();
    waits.sort();
    let (median, longest) = (waits[waits.len() / 2], waits[waits.len() - 1]);
    println!("at work again after {median:?} (median), {longest:?} (longest)");
    assert!(median < LEASE / 2, "at work again only after {median:?}, as if it had waited for the leases of the dead");
}

fn kill_once(run: u64, seed: u64) -> Killed {
    let mut random = Random::new(seed.wrapping_add(run));
    let shop = Shop::new();
    let outside = OutsideProcess::start(&shop, &[]);
    let orders = shop.some_orders(ORDERS);
    let args = ["run", "--json", "--orders", &orders, "--products", PRODUCTS, "--outside", &outside.url];

    // Every fifth is killed while it starts up, the others at a random point of their work.
    let mut child = shop.command(&args).spawn().expect("the program starts");
    if run.is_multiple_of(5) {
        let (began, moment) = (Instant::now(), Duration::from_millis(random.below(80)));
        until_or_ended(&mut child, || began.elapsed() >= moment);
    } else {
        let moment = random.below(ORDERS as u64 * 9 / 10);
        until_or_ended(&mut child, || shop.ended() > moment);
    }
    let in_time = child.try_wait().expect("a child").is_none();
    // An error says that it is gone already.
    let _ = child.kill();
    child.wait().expect("it ends");

    let at = shop.ended();
    let again = Instant::now();
    let mut child = shop.command(&args).spawn().expect("the program starts");
    until_or_ended(&mut child, || shop.ended() > at);
    let at_work_after = again.elapsed();
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 0, "run {run}, killed at {at}: {ran}");
    let said = ran.json();
    assert_eq!(number(&said, "completed") + number(&said, "compensated"), ORDERS as u64, "run {run}: {said}");
    let audit = shop.verify();
    assert_eq!(number(&audit, "orders"), ORDERS as u64, "run {run}: {audit}");
    Killed { at, in_time, at_work_after }
}

#[test]
fn interrupted_it_ends_what_it_began_and_says_how_to_go_on() {
    let shop = Shop::new();
    let mut child = shop.command(&[&REAL[..], &["--concurrency", "4"]].concat()).spawn().expect("the program starts");
    until_or_ended(&mut child, || shop.ended() > 50);
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(interrupted.success(), "it ended too early");
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 130, "{ran}");
    assert!(ran.err.contains("go on with: order-rig run --json --orders "), "{ran}");
    let said = ran.json();
    assert!(number(&said, "started") < REAL_ORDERS, "it was not interrupted: {said}");

    let ran = shop.run(&REAL);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(number(&ran.json(), "completed") + number(&ran.json(), "compensated"), REAL_ORDERS, "{ran}");
    shop.verify();
}
