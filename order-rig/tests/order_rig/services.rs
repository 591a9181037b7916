//! Orders, payments and shipping as services: each a process with its own database, RabbitMQ between them.

use std::{
    io::{BufRead as _, BufReader, Read},
    process::{Child, Output, Stdio},
};

use saga_testkit::sim::Random;

use crate::support::{Ran, Replica, Services, number, seed_from_env, until};
use saga_servers::{FaultProxy, Traffic};
use serde_json::Value;

const ORDERS: usize = 60;
const MANY: usize = 160;

/// Two replicas of each of the services that do steps for the orders.
fn hosts(services: &Services) -> Vec<Replica> {
    ["payments", "payments", "shipping", "shipping"].map(|service| services.start(service)).into()
}

/// Every order has ended, and was started once.
#[track_caller]
fn all_ended(output: Output, orders: usize) -> Value {
    let ran = Ran::of(output);
    assert_eq!(ran.code, 0, "{ran}");
    let said = ran.json();
    assert_eq!(number(&said, "orders"), orders as u64, "{said}");
    assert_eq!(number(&said, "started") + number(&said, "already_started"), orders as u64, "{said}");
    assert_eq!(number(&said, "completed") + number(&said, "compensated"), orders as u64, "{said}");
    assert_eq!((number(&said, "refused"), number(&said, "stuck")), (0, 0), "{said}");
    said
}

#[test]
fn orders_go_through_three_services_and_a_second_run_changes_nothing() {
    let services = Services::on_postgres();
    let orders = services.some_orders(ORDERS);
    let mut replicas = hosts(&services);
    replicas.push(services.start("orders"));
    let first = all_ended(services.drive(&orders).output().expect("it runs"), ORDERS);
    assert_eq!(number(&first, "started"), ORDERS as u64, "{first}");
    assert!(number(&first["undos_by_step"], "reserve-stock") > 0, "nothing was undone across services: {first}");
    let audit = services.verify();
    assert_eq!(number(&audit, "orders"), ORDERS as u64, "{audit}");
    assert_eq!((&audit["confirmed"], &audit["cancelled"]), (&first["completed"], &first["compensated"]));

    let before = services.shop.everything();
    let second = all_ended(services.drive(&orders).output().expect("it runs"), ORDERS);
    assert_eq!((number(&second, "started"), number(&second, "already_started")), (0, ORDERS as u64), "{second}");
    assert_eq!(services.shop.everything(), before);

    let hosted = services.ask("payments", &["list", "--status", "compensated"]);
    let key = hosted.out.split_whitespace().next().unwrap_or_else(|| panic!("no charge was undone: {hosted}"));
    let shown = services.ask("payments", &["show", key]);
    assert!(shown.code == 0 && shown.out.contains("payments/charge-card"), "{shown}");
    let (order, _) = key.split_once('>').expect("the key of a hosted step");
    let shown = services.ask("orders", &["show", order]);
    assert!(shown.code == 0 && shown.out.contains("create-order version 2"), "{shown}");

    for (replica, signal) in replicas.into_iter().zip(["-TERM", "-INT", "-TERM", "-INT", "-TERM"]) {
        assert_eq!(replica.end(signal), 0, "a service that is asked to end has done what was asked");
    }
}

#[test]
fn a_replica_of_each_service_is_killed_and_every_order_ends() {
    let mut random = Random::new(seed_from_env("ORDER_RIG_KILL_SEED"));
    let services = Services::on_postgres();
    // Many more than end until the last kill: nothing is waited for in between.
    let orders = services.some_orders(MANY);
    let mut replicas = hosts(&services);
    let helper = services.start("orders");
    let mut driver = services.drive(&orders).spawn().expect("it runs");
    for (replica, service) in [(0, "payments"), (2, "shipping")] {
        wait_for(&services, &mut driver, services.shop.ended() + 1 + random.below(8));
        let killed = std::mem::replace(&mut replicas[replica], services.begin(service));
        killed.kill();
    }
    wait_for(&services, &mut driver, services.shop.ended() + 1 + random.below(8));
    driver.kill().expect("it is killed");
    driver.wait().expect("it ends");
    // What was started goes on in the other replica of the orders, and the next run starts the rest.
    all_ended(services.drive(&orders).output().expect("it runs"), MANY);
    assert_eq!(number(&services.verify(), "orders"), MANY as u64);
    helper.kill();
}

/// Waits until so many orders have ended, while the run goes on.
#[track_caller]
fn wait_for(services: &Services, driver: &mut Child, ended: u64) {
    until(driver, || services.shop.ended() >= ended);
}

#[test]
fn each_service_may_have_a_file() {
    const FEW: usize = 20;
    let services = Services::on_sqlite();
    let orders = services.some_orders(FEW);
    let [_payments, _shipping] = ["payments", "shipping"].map(|service| services.start(service));
    all_ended(services.drive(&orders).output().expect("it runs"), FEW);
    assert_eq!(number(&services.verify(), "orders"), FEW as u64);
}

/// G4: Kafka carries the messages, and the only process of each service and the driver of the orders are killed.
#[cfg(feature = "kafka")]
#[test]
fn g4_with_kafka_between_killed_services_every_order_ends() {
    every_order_ends_although_each_process_is_killed(&Services::on_kafka());
}

/// G4: Kafka carries the messages, and its broker is killed while the orders run.
#[cfg(feature = "kafka")]
#[test]
fn g4_with_a_killed_kafka_broker_every_order_ends() {
    let mut services = Services::on_kafka();
    let mut random = Random::new(seed_from_env("ORDER_RIG_KILL_SEED"));
    let orders = services.some_orders(ORDERS);
    let _replicas = ["payments", "shipping"].map(|service| services.start(service));
    let mut driver = services.drive(&orders).spawn().expect("it runs");
    for _ in 0..2 {
        wait_for(&services, &mut driver, services.shop.ended() + 1 + random.below(8));
        let broker = services.broker.kafka();
        crate::support::blocking(broker.kill()).expect("it is killed");
        crate::support::blocking(broker.restart()).expect("it comes back");
    }
    all_ended(driver.wait_with_output().expect("it ends"), ORDERS);
    // It sends what the run had no time to send.
    let _orders = services.start("orders");
    assert_eq!(number(&services.verify(), "orders"), ORDERS as u64);
}

/// G4: SQS carries the messages, and the only process of each service and the driver of the orders are killed.
#[cfg(feature = "sqs")]
#[test]
fn g4_with_sqs_between_killed_services_every_order_ends() {
    every_order_ends_although_each_process_is_killed(&Services::on_sqs());
}

#[cfg(any(feature = "kafka", feature = "sqs"))]
fn every_order_ends_although_each_process_is_killed(services: &Services) {
    let mut random = Random::new(seed_from_env("ORDER_RIG_KILL_SEED"));
    let orders = services.some_orders(ORDERS);
    let mut replicas = ["payments", "shipping"].map(|service| services.start(service));
    let mut driver = services.drive(&orders).spawn().expect("it runs");
    for (replica, service) in replicas.iter_mut().zip(["payments", "shipping"]) {
        wait_for(services, &mut driver, services.shop.ended() + 1 + random.below(8));
        std::mem::replace(replica, services.begin(service)).kill();
    }
    wait_for(services, &mut driver, services.shop.ended() + 1 + random.below(8));
    driver.kill().expect("it is killed");
    driver.wait().expect("it ends");
    all_ended(services.drive(&orders).output().expect("it runs"), ORDERS);
    // It sends what the run had no time to send.
    let _orders = services.start("orders");
    assert_eq!(number(&services.verify(), "orders"), ORDERS as u64);
}

/// Services and their broker are started side by side, and one of them comes first.
#[test]
fn a_service_waits_for_its_broker_and_says_so() {
    let services = Services::on_sqlite();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let proxy = runtime.block_on(FaultProxy::start(services.broker.vhost().url())).expect("a proxy");
    proxy.set_traffic(Traffic::RefusesNew);
    let own = ["service", "payments", "--store", &services.payments, "--transport", proxy.url()];
    let mut command = services.shop.command(&[&own[..], &["--outside", &services.outside.url]].concat());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
    let line = |stream: &mut dyn Read| BufReader::new(stream).lines().next().expect("a line").expect("text");
    let said = line(child.stderr.as_mut().expect("a pipe"));
    assert!(said.starts_with("waiting up to 60s for the broker: "), "{said}");
    proxy.set_traffic(Traffic::Flows);
    assert_eq!(line(child.stdout.as_mut().expect("a pipe")), "payments is ready");
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
}

#[test]
fn what_a_service_cannot_be_started_with_is_said_in_one_sentence() {
    let services = Services::on_postgres();
    let (vhost, outside) = (services.broker.vhost().url(), services.outside.url.as_str());
    let wrong_vhost = format!("{vhost}_of_nobody");
    let payments = ["service", "payments", "--store", &services.payments];
    let with_all = ["--transport", vhost, "--outside", outside];
    let orders = ["service", "orders", "--transport", vhost];
    let cases: [(&[&str], &[&str], &str); 10] = [
        (&payments, &["--outside", outside], "a service talks to the others by a broker"),
        (&payments, &["--outside", outside, "--transport", "memory:"], "a service talks to the others by a broker"),
        (&payments, &["--transport", vhost], "give it --outside URL"),
        (
            &payments,
            &["--outside", outside, "--transport", "amqp://u:secret@127.0.0.1:1/x", "--wait-for-broker", "100ms"],
            "127.0.0.1:1",
        ),
        (&payments, &["--outside", outside, "--transport", &wrong_vhost], "vhost"),
        (
            &payments,
            &["--outside", outside, "--transport", "nats://u:secret@h"],
            "knows memory:, amqp:, kafka: and sqs:",
        ),
        (
            &payments,
            &["--transport", vhost, "--outside", "http://127.0.0.1:1", "--wait-for-outside", "100ms"],
            "the services outside do not answer",
        ),
        (&payments, &[&with_all[..], &["--orders", "some.jsonl"]].concat(), "--orders is for the service orders"),
        (&orders, &["--json"], "--json belongs to orders that are run"),
        (&orders, &["--orders", "nobody.jsonl"], "cannot read nobody.jsonl"),
    ];
    for (service, args, sentence) in cases {
        let ran = services.shop.run(&[service, args].concat());
        ran.is_unusable(sentence);
        assert!(!ran.err.contains("secret"), "{ran}");
    }
    for args in [
        &["service"][..],
        &["service", "cashier"],
        &["service", "orders", "--lease", "soon"],
        &["run", "--lease", "1ms"],
    ] {
        assert_eq!(services.shop.run(args).code, 2, "{args:?}");
    }
}
