//! Killed again and again while it archives and purges, the program loses no order, and starts none again.

use std::{collections::BTreeMap, process::Child, time::Duration};

use order_rig::{
    archive::ArchivedSaga,
    place::{Place as _, PostgresPlace, SqlitePlace},
};
use saga_testkit::sim::Random;
use tokio::time::Instant;

use crate::support::{ORDERS, OutsideProcess, PRODUCTS, Ran, Shop, blocking, number, seed_from_env};

/// So many of the real orders are run at first.
const FIRST: usize = 100;
/// So many more in each run, since the program purges while it has something to do.
const MORE: usize = 8;
/// So many others in each run behind the kills.
const OTHERS: usize = 100;
/// So often the real orders are repeated as others.
const LAPS: usize = 40;
/// As long as the lease, and three times the time limit of the slowest step.
const FULL: Duration = Duration::from_secs(10);
/// An order is started again only before its key is forgotten.
const KEYS: Duration = Duration::from_mins(2);
const STARTS: Duration = Duration::from_secs(110);
/// How long it is killed.
const KILLS: Duration = Duration::from_secs(20);
const PURGED_WITHIN: Duration = Duration::from_mins(10);
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[test]
fn g13_killed_while_it_purges_from_a_file_it_archives_each_order_and_starts_none_again() {
    kill_while_it_purges(&Shop::new(), "SELECT count(*) FROM saga_sagas");
}

#[test]
fn g13_killed_while_it_purges_from_postgres_it_archives_each_order_and_starts_none_again() {
    kill_while_it_purges(&Shop::on_postgres(), "SELECT count(*) FROM saga.sagas");
}

/// `count_sagas` counts the sagas in the store.
fn kill_while_it_purges(shop: &Shop, count_sagas: &'static str) {
    let mut random = Random::new(seed_from_env("ORDER_RIG_PURGE_SEED"));
    let (mut orders, begun) = (FIRST, Instant::now());
    let outside = OutsideProcess::start(shop, &[]);
    let start = |orders: &[String], left: Duration| spawn(shop, &outside, orders, left);
    let all = lines();

    let mut kills = 0;
    while begun.elapsed() < KILLS {
        orders += MORE;
        let mut child = start(&all[..orders], STARTS.saturating_sub(begun.elapsed()));
        let (spawned, moment) = (Instant::now(), Duration::from_millis(50 + random.below(250)));
        while spawned.elapsed() < moment && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        kills += u32::from(child.try_wait().expect("a child").is_none());
        // An error says that it is gone already.
        let _ = child.kill();
        child.wait().expect("it ends");
        // More runs a second would only use up more orders.
        std::thread::sleep(LOOK_EVERY.saturating_sub(spawned.elapsed()));
    }
    println!("killed {kills} times");
    assert!(kills >= 5, "too few were killed while they ran");

    let run = |orders: &[String]| {
        Ran::of(start(orders, STARTS.saturating_sub(begun.elapsed())).wait_with_output().expect("it ends"))
    };
    let ran = run(&all[..orders]);
    assert_eq!(ran.code != 0, retry_those_out_of_attempts(shop) > 0, "{ran}");
    let meets_tombstone = |orders: &[String]| {
        let ran = run(orders);
        assert_eq!(ran.code, 0, "{ran}");
        number(&ran.json(), "tombstones") > 0
    };
    // The orders that ended last have to become old.
    while !meets_tombstone(&all[..orders]) {
        assert!(begun.elapsed() < STARTS, "no start met a tombstone");
        orders += 1;
        std::thread::sleep(LOOK_EVERY);
    }
    let audit = shop.verify();
    assert_eq!(number(&audit, "orders"), orders as u64, "{audit}");

    // It gets other orders, until no more than these are left. It lives for as long as they take, and purges meanwhile.
    let (known, left) = (orders, || shop.rows::<usize>(count_sagas).map(|rows| rows[0]));
    while left().is_none_or(|left| left > orders - known) {
        assert!(begun.elapsed() < PURGED_WITHIN, "{:?} sagas are left", left());
        let ran = Ran::of(start(&all[orders..orders + OTHERS], STARTS).wait_with_output().expect("it ends"));
        assert_eq!(ran.code, 0, "{ran}");
        orders += OTHERS;
        std::thread::sleep(LOOK_EVERY * 4);
    }
    let audit = shop.verify();
    assert_eq!(number(&audit, "orders"), orders as u64, "{audit}");
    let archived = each_was_archived_as_one(shop);
    assert!(archived >= known, "only {archived} of {known} orders were archived");
}

/// An order that was under way whenever the program was killed is out of attempts, and an operator retries it. Gives how many
/// there are.
fn retry_those_out_of_attempts(shop: &Shop) -> usize {
    let stuck = shop.listed("stuck");
    for key in &stuck {
        let shown = shop.run(&["show", key]);
        assert!(shown.out.contains("its process ended during each of its 5 attempts"), "{shown}");
        let retried = shop.run(&["retry", key, "--reason", "the processes were killed"]);
        assert_eq!(retried.code, 0, "{retried}");
    }
    println!("{} were out of attempts: {stuck:?}", stuck.len());
    stuck.len()
}

fn spawn(shop: &Shop, outside: &OutsideProcess, orders: &[String], left: Duration) -> Child {
    let orders = shop.write("orders.jsonl", orders.join("\n"));
    let millis = |time: Duration| format!("{}ms", time.as_millis());
    let (full, keys, left, orders) = (millis(FULL), millis(KEYS), millis(left), orders.display().to_string());
    let args = ["run", "--json", "--orders", &orders, "--products", PRODUCTS, "--outside", &outside.url];
    let times = ["--lease", "500ms", "--keep", &full, "--keep-keys", &keys, "--start-within", &left];
    shop.command(&[&args[..], &times].concat()).spawn().expect("the program starts")
}

/// Each order was archived as one saga, and with the same content each time. Gives how many there are.
fn each_was_archived_as_one(shop: &Shop) -> usize {
    let archived = blocking(async {
        match shop.url() {
            None => SqlitePlace(shop.path("order-rig.db")).archived().await,
            Some(url) => PostgresPlace::parse(url).expect("a URL").archived().await,
        }
    });
    let mut by_key: BTreeMap<String, ArchivedSaga> = BTreeMap::new();
    for saga in archived.expect("it can be read") {
        let known = by_key.entry(saga.key.clone()).or_insert_with(|| saga.clone());
        assert_eq!(*known, saga);
    }
    by_key.len()
}

/// The real orders, and then the same ones again and again, as other orders.
fn lines() -> Vec<String> {
    let real = std::fs::read_to_string(ORDERS).expect("the orders");
    let lap = |lap: usize| {
        let renamed = move |line: &str| match lap {
            0 => line.to_owned(),
            _ => line.replacen("\"order_id\": \"", &format!("\"order_id\": \"{lap}-"), 1),
        };
        real.lines().map(renamed).collect::<Vec<_>>()
    };
    (0..LAPS).flat_map(lap).collect()
}
