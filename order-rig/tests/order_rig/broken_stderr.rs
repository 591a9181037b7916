//! Standard error breaks: a pipe that is closed, or a full disk. What is said there is lost, and the work goes on.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::support::{Ran, Replica, Services, blocking, number, until};
use clap::Parser as _;
use order_rig::{cli, place::StoreUrl, service::service};
use serde_json::{Value, json};

/// How many orders are started while the services of their steps are missing.
const FEW: usize = 20;
/// How many are run after that.
const MORE: usize = 60;
/// The arguments of the service that the test [`child`] is to run, a line each.
const ROLE: &str = "ORDER_RIG_UNHEARD";

/// What is wrong with standard error.
#[derive(Debug, Clone, Copy)]
enum Broken {
    /// A pipe whose reader goes away while the program works.
    Pipe,
    /// A device without room, as a file on a full disk.
    Disk,
}

impl Broken {
    fn stderr(self) -> Stdio {
        match self {
            Self::Pipe => Stdio::piped(),
            Self::Disk => File::options().write(true).open("/dev/full").expect("the device").into(),
        }
    }

    /// Starts a service whose standard error breaks after its first line.
    fn begin(self, command: &mut Command) -> Replica {
        let mut replica = Replica::spawn(command.stderr(self.stderr()));
        if matches!(self, Self::Pipe) {
            let mut first = String::new();
            BufReader::new(replica.take_stderr()).read_line(&mut first).expect("a line");
            assert!(!first.is_empty(), "it works, and has said so");
        }
        replica
    }

    /// Starts a run of orders whose standard error is broken from the start.
    fn run(self, services: &Services, orders: &str) -> Child {
        let mut child = services.drive(orders).stderr(self.stderr()).spawn().expect("the program starts");
        drop(child.stderr.take());
        child
    }
}

#[test]
fn g8_services_whose_standard_error_is_closed_go_on_sending() {
    let services = Services::on_postgres();
    let hosts = go_on(&services, Broken::Pipe, |service| services.command(service, &[]));
    end(hosts);
}

#[test]
fn g8_services_whose_standard_error_is_on_a_full_disk_go_on_sending() {
    let services = Services::on_postgres();
    let hosts = go_on(&services, Broken::Disk, |service| services.command(service, &[]));
    end(hosts);
}

/// The program's own log swallows what it cannot write. The usual one does not: its panics are for the runtime and the
/// transport to bear.
#[test]
fn g10_services_whose_log_panics_go_on_sending() {
    let services = Services::on_postgres();
    let hosts = go_on(&services, Broken::Pipe, |service| with_usual_log(&services.command(service, &[])));
    for (code, said) in hosts.map(|host| host.end_and_say("-TERM")) {
        let panics = said.lines().find_map(|line| line.strip_prefix("panics: ")?.parse::<u64>().ok());
        println!("{panics:?} panics");
        assert!(code == 0 && panics > Some(0), "no event of its log panicked\n{said}");
    }
}

fn end(hosts: [Replica; 3]) {
    for host in hosts {
        assert_eq!(host.end("-TERM"), 0, "it has done what it was asked");
    }
}

/// All processes log to a standard error that is broken, and each order ends, also those that are started after that.
fn go_on(services: &Services, broken: Broken, command: impl Fn(&str) -> Command) -> [Replica; 3] {
    let loud = |service| broken.begin(command(service).env("ORDER_RIG_LOG", "debug"));
    let mut orders = loud("orders");
    orders.wait_until_ready();
    let mut first = broken.run(services, &services.some_orders(FEW));
    // The relays warn, since there is no queue for the charges.
    until(&mut first, || is_parked(services));
    let mut hosts = [orders, loud("payments"), loud("shipping")];
    hosts[1..].iter_mut().for_each(Replica::wait_until_ready);
    let early = all_ended(first, FEW);
    bury_garbage(services);
    let second = broken.run(services, &services.some_orders(MORE));
    let late = all_ended(second, MORE);
    assert!(early == FEW as u64 && late > 0, "{late} orders were started behind {early}");
    assert_eq!(number(&services.verify(), "orders"), early + late);
    hosts
}

/// Whether a message was tried several times in vain.
fn is_parked(services: &Services) -> bool {
    let ran = services.ask("orders", &["outbox", "list", "--json"]);
    let parked = if ran.code == 0 { ran.json()["parked"].clone() } else { Value::Null };
    parked.as_array().is_some_and(|parked| parked.iter().any(|key| key["attempts"].as_u64() > Some(2)))
}

/// Every order has ended; answers how many were new.
#[track_caller]
fn all_ended(run: Child, orders: usize) -> u64 {
    let ran = Ran::of(run.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 0, "{ran}");
    let said = ran.json();
    assert_eq!(number(&said, "completed") + number(&said, "compensated"), orders as u64, "{said}");
    number(&said, "started")
}

/// What is no message is a dead letter, though what is logged of it goes nowhere. Deciding on it leaves the service at rest.
fn bury_garbage(services: &Services) {
    let vhost = services.broker.vhost();
    let path = format!("exchanges/{}/saga.services/publish", vhost.name());
    let garbage = json!({
        "properties": {}, "routing_key": "service:payments", "payload": "garbage", "payload_encoding": "string",
    });
    let published = blocking(vhost.management().post(&path, &garbage)).expect("the broker answers");
    assert_eq!(published["routed"], true, "{published}");
    let buried = || services.ask("payments", &["dead-letters", "list", "--json"]);
    let id = loop {
        let ran = buried();
        assert_eq!(ran.code, 0, "{ran}");
        if let Some(id) = ran.json()["dead_letters"][0]["id"].as_i64() {
            break id.to_string();
        }
    };
    let discarded = services.ask("payments", &["dead-letters", "discard", &id, "--reason", "nobody knows it"]);
    assert_eq!(discarded.code, 0, "{discarded}");
}

/// The same service in a process whose log is the usual one, which panics where it cannot write.
fn with_usual_log(command: &Command) -> Command {
    let arguments: Vec<&str> = command.get_args().map(|argument| argument.to_str().expect("text")).collect();
    let mut child = Command::new(std::env::current_exe().expect("the path of this test"));
    child.args(["--exact", "broken_stderr::child", "--nocapture"]).env(ROLE, arguments.join("\n"));
    child.current_dir(command.get_current_dir().expect("a folder")).stdin(Stdio::null()).stdout(Stdio::piped());
    child
}

/// Does nothing but in a process that another test has started, where it is a service.
#[test]
fn child() {
    static PANICS: AtomicU64 = AtomicU64::new(0);
    let Ok(arguments) = std::env::var(ROLE) else { return };
    std::panic::set_hook(Box::new(|_| {
        PANICS.fetch_add(1, Ordering::Relaxed);
    }));
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let command = cli::Cli::try_parse_from(["order-rig"].into_iter().chain(arguments.lines()));
    let Some(cli::Command::Service(args)) = command.expect("arguments of the program").command else {
        panic!("{arguments} is no service");
    };
    let Ok(StoreUrl::Postgres(place)) = StoreUrl::parse(args.store()) else { panic!("{arguments}: another store") };
    let serving = async { service(&place, &args).await.expect("it serves") };
    tokio::runtime::Runtime::new().expect("a runtime").block_on(serving);
    println!("panics: {}", PANICS.load(Ordering::Relaxed));
}
