//! The whole program on the real orders: everything ends, everything is undone that must be, and nothing happens twice.

use crate::support::{OutsideProcess, REAL, REAL_ORDERS, Ran, Shop, all_ended, decided, number, until};
use serde_json::Value;

#[test]
fn the_real_orders_all_end_and_the_books_agree() {
    the_real_orders(&Shop::new());
}

#[test]
fn the_real_orders_all_end_and_the_books_agree_on_postgres() {
    the_real_orders(&Shop::on_postgres());
}

#[track_caller]
fn the_real_orders(shop: &Shop) {
    let ran = shop.run(&REAL);
    let said = all_ended(shop, &ran);
    assert_eq!(number(&said, "started"), REAL_ORDERS);
    assert!(number(&said, "completed") >= 40, "{said}");
    assert!(number(&said, "retries") > 0 && number(&said, "duplicates_refused") > 0, "{said}");
    let by_step = said["undos_by_step"].as_object().expect("a map").values();
    assert_eq!(number(&said, "undos"), by_step.filter_map(Value::as_u64).sum::<u64>());
    let place = shop.path("order-rig.db").display().to_string();
    let place = shop.url().and_then(|url| url.rsplit_once('/')).map_or(place, |(_, database)| database.to_owned());
    assert!(ran.err.contains(&place), "it says where the store is: {ran}");
}

#[test]
fn run_again_nothing_happens_twice() {
    run_again(&Shop::new());
}

#[test]
fn run_again_nothing_happens_twice_on_postgres() {
    run_again(&Shop::on_postgres());
}

#[track_caller]
fn run_again(shop: &Shop) {
    let first = all_ended(shop, &shop.run(&REAL));
    let before = shop.everything();
    let second = all_ended(shop, &shop.run(&REAL));
    assert_eq!((number(&second, "started"), number(&second, "already_started")), (0, REAL_ORDERS));
    assert_eq!(shop.everything(), before, "the tables and the books outside have changed");
    for field in ["completed", "compensated", "compensated_by_reason", "steps", "undos", "undos_by_step", "retries"] {
        assert_eq!(second[field], first[field], "{field}");
    }
}

#[test]
fn one_order_at_a_time_always_ends_the_same_even_when_killed() {
    let one_at_a_time = [&REAL[..], &["--concurrency", "1"]].concat();
    let (quiet, killed) = (Shop::new(), Shop::new());
    let first = all_ended(&quiet, &quiet.run(&one_at_a_time));

    let outside = OutsideProcess::start(&killed, &[]);
    let args = [&one_at_a_time[..], &["--outside", &outside.url]].concat();
    let mut child = killed.command(&args).spawn().expect("the program starts");
    until(&mut child, || killed.ended() >= REAL_ORDERS / 8);
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    let second = all_ended(&killed, &killed.run(&args));
    assert!(number(&second, "already_started") > 0, "{second}");
    assert_eq!(decided(&first), decided(&second));
}

#[test]
fn another_seed_gives_another_run() {
    let shop = Shop::new();
    let other = shop.run(&["--json", "--seed", "2", "--concurrency", "1"]);
    let first = Shop::new().run(&["--json", "--seed", "1", "--concurrency", "1"]);
    assert_eq!((other.code, first.code), (0, 0), "{other}\n{first}");
    assert_ne!(decided(&other.json()), decided(&first.json()));
    shop.verify();
}

#[test]
fn the_sample_runs_from_anywhere_with_no_argument_at_all() {
    let shop = Shop::new();
    let ran = shop.run(&[]);
    assert_eq!(ran.code, 0, "{ran}");
    for row in ["orders", "completed", "compensated", "out of stock", "card declined", "stuck", "retries", "sagas/s"] {
        assert!(ran.out.contains(row), "no row {row:?} in\n{ran}");
    }
    let audit = shop.verify();
    assert!(number(&audit, "confirmed") > 0 && number(&audit, "cancelled") > 0, "{audit}");
    for (step, undos) in shop.run(&["--json"]).json()["undos_by_step"].as_object().expect("a map") {
        assert!(undos.as_u64() > Some(0), "the sample shows no undo of {step}");
    }
}

#[test]
fn orders_come_from_standard_input_as_well() {
    let shop = Shop::new();
    let orders = std::fs::read_to_string(crate::support::ORDERS).expect("the real orders");
    let some: String = orders.lines().take(20).flat_map(|line| [line, "\n"]).collect();
    let ran =
        shop.run_with_input(&["--json", "--orders", "-", "--products", crate::support::PRODUCTS], some.as_bytes());
    assert_eq!((ran.code, number(&ran.json(), "started")), (0, 20), "{ran}");
    shop.verify();
}

#[test]
fn the_services_outside_may_be_a_process_of_their_own() {
    let shop = Shop::new();
    let outside = OutsideProcess::start(&shop, &[]);
    let ran = shop.run(&[&REAL[..], &["--outside", &outside.url]].concat());
    all_ended(&shop, &ran);
}

#[test]
fn services_outside_that_die_and_come_back_are_asked_again() {
    let shop = Shop::new();
    let outside = OutsideProcess::start(&shop, &[]);
    let (url, address) = (outside.url.clone(), outside.address().to_owned());
    let mut child = shop.command(&[&REAL[..], &["--outside", &url]].concat()).spawn().expect("the program starts");
    until(&mut child, || shop.ended() >= REAL_ORDERS / 4);
    drop(outside);
    let outside = OutsideProcess::start_at(&shop, &address, &[]);
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    all_ended(&shop, &ran);
    drop(outside);
}

#[test]
fn what_an_earlier_run_left_is_brought_to_its_end_whatever_is_run_next() {
    let shop = Shop::new();
    let outside = OutsideProcess::start(&shop, &[]);
    let with_outside = ["--outside", &outside.url];
    let mut child = shop.command(&[&REAL[..], &with_outside].concat()).spawn().expect("the program starts");
    until(&mut child, || shop.ended() >= REAL_ORDERS / 4);
    child.kill().expect("it is killed");
    child.wait().expect("it ends");

    shop.write("none.jsonl", "");
    let ran = shop.run(&[&["run", "--json", "--orders", "none.jsonl"], &with_outside[..]].concat());
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.err.contains("going on with "), "{ran}");
    assert_eq!(number(&ran.json(), "orders"), 0, "{ran}");
    let audit = shop.verify();
    assert!(number(&audit, "orders") < REAL_ORDERS, "{audit}");
}
