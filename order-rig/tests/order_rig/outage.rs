//! What is away for a while is waited for, what was lost is started again, and what cannot go on says so.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use crate::support::{
    ORDERS, OutsideProcess, PRODUCTS, REAL, REAL_ORDERS, Ran, Services, Shop, blocking, number, until,
};
use saga_servers::PostgresServer;
use saga_sql::SqlConn as _;
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};

/// A server of this test's own, which it may stop, and the URL of a database in it.
fn own_server() -> (PostgresServer, String) {
    blocking(async {
        let server = PostgresServer::start().await.expect("a server");
        let url = server.create_database("shop").await.expect("a database");
        (server, url)
    })
}

fn restart(server: &mut PostgresServer) {
    blocking(async {
        server.kill().await.expect("it is killed");
        server.restart().await.expect("it starts again");
    });
}

/// How many orders have ended in a database that this test made; none while it is away.
fn ended(url: &str) -> usize {
    let count = "SELECT count(*) FROM saga.progress WHERE ended_at IS NOT NULL";
    let rows = blocking(async { PgConnection::connect(url).await.ok()?.query::<usize>(count, &[]).await.ok() });
    rows.map_or(0, |rows| rows[0])
}

/// How many orders wait for their charges, if there are so many in all and each waits for that or has ended; none before the
/// program has made the shop. An order before its charge may still be rejected.
fn waiting(shop: &Shop, all: usize) -> Option<usize> {
    let counts = "SELECT (SELECT count(*) FROM saga.work WHERE step = 'charge-card'), \
         (SELECT count(*) FROM saga.progress WHERE ended_at IS NOT NULL)";
    let (charged, ended) = shop.rows::<(usize, usize)>(counts)?[0];
    (charged > 0 && charged + ended == all).then_some(charged)
}

#[test]
fn g8_a_run_goes_on_by_itself_when_its_database_was_killed_and_started_again() {
    let (mut server, url) = own_server();
    let shop = Shop::new();
    let outside = OutsideProcess::start(&shop, &["--store", &url]);
    let args = [&REAL[..], &["--store", &url, "--outside", &outside.url, "--concurrency", "8"]].concat();
    let mut child = shop.command(&args).spawn().expect("the program starts");
    for least in [20, 150] {
        until(&mut child, || ended(&url) >= least);
        restart(&mut server);
    }
    // One that had ended, with nothing done for it outside, is lost as well.
    let lose = "CREATE TEMP TABLE lost AS SELECT order_id FROM orders WHERE reason LIKE 'out of stock%' LIMIT 1;
        DELETE FROM saga.progress WHERE id IN (SELECT id FROM saga.sagas JOIN lost ON key = order_id);
        DELETE FROM saga.sagas WHERE key IN (SELECT order_id FROM lost);
        DELETE FROM saga.records WHERE key IN (SELECT order_id FROM lost);
        DELETE FROM orders WHERE order_id IN (SELECT order_id FROM lost)";
    blocking(saga_servers::psql(&url, lose)).expect("it is lost");
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 0, "{ran}");
    println!("{ran}");
    let said = ran.json();
    assert_eq!(number(&said, "started") + number(&said, "already_started"), REAL_ORDERS, "{said}");
    assert_eq!(number(&said, "completed") + number(&said, "compensated"), REAL_ORDERS, "{said}");
    assert!(ran.err.contains("the database had lost 1 orders, which were started again"), "{ran}");
    assert_eq!(shop.run(&["verify", "--store", &url]).code, 0);
    assert!(!ran.err.contains("start: start:"), "nothing is said twice\n{ran}");
    assert!(!ran.err.contains("at line"), "a line of the server's source code helps no operator\n{ran}");
}

#[test]
fn a_run_waits_for_a_database_that_starts_later_and_says_so() {
    let (mut server, url) = own_server();
    blocking(server.stop()).expect("it stops");
    let shop = Shop::new();
    let mut child = shop.command(&["run", "--json", "--store", &url]).spawn().expect("the program starts");
    let mut err = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let said = err.next().expect("a line").expect("text");
    assert!(said.starts_with("waiting up to 60s for the database: "), "{said}");
    blocking(server.restart()).expect("it starts");
    let rest: Vec<String> = err.map(|line| line.expect("text")).collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{rest:#?}");
}

/// As behind a failover to a replica that lagged behind: what was committed last is not there any more.
#[test]
fn orders_that_the_database_has_lost_are_started_again() {
    const FEW: usize = 12;
    let services = Services::on_postgres();
    let orders = services.some_orders(FEW);
    // All of them wait for their charges: no service charges cards yet.
    let mut driver = services.drive(&orders).spawn().expect("it runs");
    let mut on_their_way = None;
    until(&mut driver, || {
        on_their_way = waiting(&services.shop, FEW);
        on_their_way.is_some()
    });
    let lost = "BEGIN;
        LOCK TABLE saga.sagas;
        TRUNCATE saga.sagas, saga.progress, saga.work, saga.records, saga.history, saga.outbox, saga.parked;
        TRUNCATE reservations, orders;
        UPDATE products SET in_stock = in_stock_at_first;
        COMMIT";
    services.shop.execute(lost);
    // Those that are waited for are found at once, those that had ended at the end.
    let again = "SELECT count(*) FROM saga.progress WHERE status = 'running'";
    let again = || services.shop.rows::<usize>(again).map(|rows| rows[0]);
    until(&mut driver, || again() == on_their_way);
    let _hosts = ["payments", "shipping"].map(|service| services.start(service));
    let ran = Ran::of(driver.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 0, "{ran}");
    let said = ran.json();
    assert_eq!(number(&said, "completed") + number(&said, "compensated"), FEW as u64, "{said}");
    let again = ran.err.lines().filter(|line| line.starts_with("the database has lost the order ")).count();
    assert_eq!(Some(again), on_their_way, "{ran}");
    assert!(ran.err.contains("the database had lost 12 orders, which were started again"), "{ran}");
    assert!(ran.err.contains("compare with the services outside"), "it says what to do\n{ran}");
    services.verify();
}

#[test]
fn a_service_alone_logs_no_content_of_messages_and_no_flood() {
    const FEW: usize = 60;
    const ATTEMPTS: u64 = 4;
    let services = Services::on_postgres();
    let orders = services.some_orders(FEW);
    let log = services.shop.path("log.txt");
    let mut command = services.drive(&orders);
    let mut driver = command.stderr(File::create(&log).expect("a file")).spawn().expect("it runs");
    // Each command was returned by the broker several times, since no service charges cards here.
    let mut keys = 0;
    until(&mut driver, || {
        let ran = services.ask("orders", &["outbox", "list", "--json"]);
        let parked = if ran.code == 0 { ran.json()["parked"].clone() } else { Value::Null };
        let tried = |key: &Value| key["attempts"].as_u64() >= Some(ATTEMPTS);
        keys = parked.as_array().map_or(0, Vec::len);
        keys >= 3 && parked.as_array().is_some_and(|parked| parked.iter().all(tried))
    });
    driver.kill().expect("it is killed");
    driver.wait().expect("it ends");
    let log = std::fs::read_to_string(log).expect("text");
    // The field of a charge, as text and as a list of bytes.
    let bytes: Vec<String> = b"amount_cents".iter().map(u8::to_string).collect();
    assert!(!log.contains("amount_cents") && !log.contains(&bytes.join(", ")), "{log}");
    assert!(!log.contains("lapin"), "{log}");
    assert!(log.len() < 1_000 + keys * 400, "{} bytes for {keys} messages: {log}", log.len());
}

#[test]
fn a_run_whose_standard_error_is_closed_goes_on() {
    let shop = Shop::new();
    let mut child = shop.command(&REAL).spawn().expect("the program starts");
    drop(child.stderr.take());
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!((ran.code, number(&ran.json(), "started")), (0, REAL_ORDERS), "{ran}");
}

#[test]
fn the_graph_may_be_read_in_part_and_a_full_disk_is_said() {
    let shop = Shop::new();
    let mut child = shop.command(&["graph"]).spawn().expect("the program starts");
    drop(child.stdout.take());
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran}");
    let full = File::options().write(true).open("/dev/full").expect("the device");
    let ran = shop.command(&["graph"]).stdout(Stdio::from(full)).output().expect("it runs");
    Ran::of(ran).is_unusable("No space left");
}

#[test]
fn g6_a_run_whose_file_was_deleted_ends_and_says_so() {
    let shop = Shop::new();
    let args = [&REAL[..], &["--concurrency", "4"]].concat();
    let mut child = shop.command(&args).spawn().expect("the program starts");
    until(&mut child, || shop.ended() >= 10);
    std::fs::remove_file(shop.path("order-rig.db")).expect("it is deleted");
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    ran.is_unusable("was deleted, moved or replaced while it was open");
}

#[test]
fn a_clock_that_was_set_back_is_said_at_the_start() {
    let shop = Shop::new();
    assert_eq!(shop.run(&["--json"]).code, 0);
    let mut command = shop.command(&["--json"]);
    let library = saga_servers::libfaketime().expect("it is installed");
    command.env("LD_PRELOAD", library).env("FAKETIME", "-365d").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let ran = Ran::of(command.output().expect("the program starts"));
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.err.contains("machine clock is behind the store"), "{ran}");
}

#[test]
fn what_a_run_needs_is_not_waited_for_longer_than_was_said() {
    let shop = Shop::new();
    let away = "postgres://user@127.0.0.1:1/shop";
    let ran = shop.run(&["--store", away, "--wait-for-database", "300ms", "--orders", ORDERS, "--products", PRODUCTS]);
    ran.is_unusable("127.0.0.1:1");
    assert!(ran.err.starts_with("waiting up to 300ms for the database: "), "{ran}");
}
