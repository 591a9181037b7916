//! PostgreSQL as the store, RabbitMQ as the transport: the same orders, the same answers, and several processes at once.

use saga_testkit::sim::Random;

use crate::support::{
    OutsideProcess, REAL, REAL_ORDERS, Ran, Shop, all_ended, blocking, decided, number, seed_from_env, until,
};

#[test]
fn the_real_orders_give_exactly_what_they_give_on_sqlite() {
    let one_at_a_time = [&REAL[..], &["--concurrency", "1"]].concat();
    let (sqlite, postgres) = (Shop::new(), Shop::on_postgres());
    let first = all_ended(&sqlite, &sqlite.run(&one_at_a_time));
    let second = all_ended(&postgres, &postgres.run(&one_at_a_time));
    assert_eq!(decided(&first), decided(&second));
    assert_eq!((number(&first, "completed"), number(&first, "compensated")), (80, 750), "{first}");
    assert_eq!(sqlite.rows::<(String, String, String)>(ORDERS), postgres.rows(ORDERS));
}

const ORDERS: &str = "SELECT order_id, status, coalesce(reason, '-') FROM orders ORDER BY order_id";

#[test]
fn three_processes_share_the_work_and_each_order_runs_once() {
    let shop = Shop::on_postgres();
    let outside = OutsideProcess::start(&shop, &[]);
    // Each begins at another place of the list, so that the quickest does not start everything.
    let lines = std::fs::read_to_string(crate::support::ORDERS).expect("the orders");
    let lines: Vec<&str> = lines.lines().collect();
    let children = [0, 1, 2].map(|nth| {
        let (last, first) = lines.split_at(nth * lines.len() / 3);
        let orders = shop.write(&format!("orders-{nth}.jsonl"), [first, last].concat().join("\n"));
        let mut command =
            shop.command(&["run", "--json", "--products", crate::support::PRODUCTS, "--outside", &outside.url]);
        command.args(["--concurrency", "16", "--orders"]).arg(orders).spawn().expect("the program starts")
    });
    let said = children.map(|child| {
        let ran = Ran::of(child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, 0, "{ran}");
        ran.json()
    });
    let started = said.each_ref().map(|said| number(said, "started"));
    println!("started {started:?}");
    assert_eq!(started.iter().sum::<u64>(), REAL_ORDERS, "{said:?}");
    assert!(started.iter().all(|started| *started > 0), "one of them did nothing: {said:?}");
    for said in &said {
        assert_eq!(number(said, "started") + number(said, "already_started"), REAL_ORDERS, "{said}");
        assert_eq!((number(said, "refused"), number(said, "stuck")), (0, 0), "{said}");
    }
    assert_eq!(number(&shop.verify(), "orders"), REAL_ORDERS);
}

#[test]
fn one_of_two_processes_is_killed_and_the_other_brings_every_order_to_its_end() {
    let mut random = Random::new(seed_from_env("ORDER_RIG_KILL_SEED"));
    let shop = Shop::on_postgres();
    let outside = OutsideProcess::start(&shop, &[]);
    let args = [&REAL[..], &["--outside", &outside.url, "--concurrency", "32"]].concat();
    let [mut killed, other] = [(); 2].map(|()| shop.command(&args).spawn().expect("the program starts"));
    let moment = REAL_ORDERS / 10 + random.below(REAL_ORDERS / 2);
    until(&mut killed, || shop.ended() >= moment);
    killed.kill().expect("it is killed");
    killed.wait().expect("it ends");
    let ran = Ran::of(other.wait_with_output().expect("it ends"));
    all_ended(&shop, &ran);
}

#[test]
fn rabbitmq_may_be_the_transport() {
    let shop = Shop::on_postgres();
    let vhost = blocking(saga_servers::shared::vhost("order_rig")).expect("a virtual host");
    let ran = shop.run(&[&REAL[..], &["--transport", vhost.url()]].concat());
    let said = all_ended(&shop, &ran);
    assert_eq!(number(&said, "started"), REAL_ORDERS);
}

#[test]
fn the_sample_runs_behind_pgbouncer_and_a_pooler_that_nobody_named_is_found() {
    let shop = Shop::on_postgres();
    let pooled = shop.pgbouncer_url();
    let is_refused = |command: &str| {
        let ran = shop.run(&[command, "--store", &pooled]);
        ran.is_unusable("give the URL of --store the parameter ?pgbouncer=true");
        ran
    };
    let ran = is_refused("run");
    assert!(ran.err.contains("a pooler that gives each transaction another session"), "{ran}");
    let told = format!("{pooled}?pgbouncer=true");
    let ran = shop.run(&["--json", "--store", &told]);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(number(&ran.json(), "completed") + number(&ran.json(), "compensated"), 160, "{ran}");
    // Each connection that is opened in vain is tried again after a growing pause.
    assert!(!ran.err.contains("after_connect"), "a connection could not be used at first\n{ran}");
    is_refused("list");
    let audit = shop.run(&["verify", "--json", "--store", &told]);
    assert_eq!((audit.code, number(&audit.json(), "orders")), (0, 160), "{audit}");
}

#[test]
fn a_saga_is_shown_and_listed() {
    let shop = Shop::on_postgres();
    for command in [&["verify"][..], &["list"], &["show", "TH-1001"]] {
        shop.run(command).is_unusable("there is no shop in postgres://");
    }
    let said = shop.run(&["--json"]).json();
    let lines = |args: &[&str]| shop.run(&[&["list"], args].concat()).out.lines().count() as u64;
    assert_eq!(lines(&[]), number(&said, "orders"));
    assert_eq!(lines(&["--status", "compensated"]), number(&said, "compensated"));
    let ran = shop.run(&["show", "TH-1001"]);
    assert!(ran.code == 0 && ran.out.contains("place-order") && ran.out.contains("attempts"), "{ran}");
    shop.run(&["show", "nobody"]).is_unusable("there is no saga nobody in postgres://");
}

#[test]
fn a_server_that_cannot_be_used_is_said_in_one_sentence_without_the_password() {
    let shop = Shop::on_postgres();
    let url = shop.url().expect("a database");
    let (server, database) = url.rsplit_once('/').expect("a database in the URL");
    let host = server.rsplit(['@', '/']).next().expect("a host");
    let cases = [
        (format!("postgres://nobody:secret@{host}/{database}"), "nobody"),
        (format!("{server}/no_such_database"), "no_such_database"),
        ("postgres://user:secret@127.0.0.1:1/shop".to_owned(), "127.0.0.1:1"),
        ("postgres://user:secret@host:port/shop".to_owned(), "takes a URL such as postgres://"),
        ("mysql://user:secret@host/shop".to_owned(), "knows the schemes sqlite: and postgres:"),
    ];
    for (store, sentence) in &cases {
        for command in [&["run", "--wait-for-database", "100ms"][..], &["verify"], &["list"], &["show", "TH-1001"]] {
            let ran = shop.run(&[command, &["--store", store]].concat());
            ran.is_unusable(sentence);
            let waited =
                ran.err.lines().filter(|line| line.starts_with("waiting up to 100ms for the database")).count();
            assert!(!ran.err.contains("secret") && ran.err.lines().count() == 1 + waited, "{ran}");
            assert!(waited == 0 || (command[0] == "run" && store.contains("127.0.0.1:1/")), "{ran}");
        }
    }
    let ran = shop.run(&["--transport", "amqp://user:secret@127.0.0.1:1/%2f", "--wait-for-broker", "100ms"]);
    ran.is_unusable("127.0.0.1:1");
    assert!(!ran.err.contains("secret"), "{ran}");
}
