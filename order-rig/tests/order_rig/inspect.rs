//! Looking at a shop: the audit, one saga, the list, the definition.

use crate::support::{OutsideProcess, REAL, REAL_ORDERS, Shop, number, until};
use rusqlite::Connection;

/// A shop in which the sample was run.
fn sample() -> Shop {
    let shop = Shop::new();
    let ran = shop.run(&["run", "--json"]);
    assert_eq!(ran.code, 0, "{ran}");
    shop
}

/// The first order that ended so, and for the reason.
fn an_order(shop: &Shop, status: &str, reason: &str) -> String {
    let sql = "SELECT order_id FROM orders WHERE status = ?1 AND coalesce(reason, '') LIKE ?2 || '%' ORDER BY order_id";
    let found = shop.shop().expect("a shop").query_row(sql, [status, reason], |row| row.get(0));
    found.unwrap_or_else(|error| panic!("no order is {status} for {reason:?}: {error}"))
}

/// Damages one thing in a shop where all is well, about an order that ended so, and expects the audit to name the order.
#[track_caller]
fn audit_finds(status: &str, file: &str, damage: &str) {
    let shop = sample();
    shop.verify();
    let order = an_order(&shop, status, "");
    let conn = Connection::open(shop.path(file)).expect("the file");
    assert_eq!(conn.execute(damage, [&order]).expect("it is damaged"), 1, "{damage}");
    drop(conn);
    let ran = shop.run(&["verify"]);
    assert_eq!(ran.code, 1, "{damage}\n{ran}");
    assert!(ran.out.lines().any(|line| line.starts_with(&format!("{order}: "))), "{damage}\n{ran}");
    let said = shop.run(&["verify", "--json"]);
    assert_eq!(said.code, 1, "{said}");
    let findings = said.json()["findings"].clone();
    assert!(
        findings.as_array().is_some_and(|findings| findings.iter().any(|found| found["subject"] == *order)),
        "{said}"
    );
}

#[test]
fn the_audit_names_the_order_that_is_wrong_and_exits_with_1() {
    let (store, outside) = ("order-rig.db", "order-rig.db.outside.db");
    audit_finds("confirmed", store, "UPDATE orders SET status = 'cancelled' WHERE order_id = ?1");
    audit_finds("confirmed", outside, "DELETE FROM charges WHERE order_id = ?1");
    audit_finds("cancelled", outside, "INSERT INTO charges (key, order_id, amount_cents) VALUES ('k', ?1, 5)");
    audit_finds(
        "cancelled",
        store,
        "UPDATE saga_progress SET status = 'stuck', ended_at = NULL WHERE id = (SELECT id FROM saga_sagas WHERE key = ?1)",
    );
}

#[test]
fn a_saga_is_shown_step_by_step_with_attempts_and_errors() {
    let shop = sample();
    let dear = an_order(&shop, "cancelled", "freight too dear");
    let ran = shop.run(&["show", &dear]);
    assert_eq!(ran.code, 0, "{ran}");
    for said in
        ["compensated, because `confirm-order` failed: freight too dear", "started 20", " UTC, ended +", "attempts"]
    {
        assert!(ran.out.contains(said), "no {said:?} in\n{ran}");
    }
    let stands = |step: &str| {
        let line = ran.out.lines().find(|line| line.starts_with(step));
        line.and_then(|line| line.split_whitespace().nth(1)).unwrap_or_default().to_owned()
    };
    let steps = ["place-order", "reserve-stock", "charge-card", "book-shipment", "confirm-order"].map(stands);
    assert_eq!(steps, ["undone", "undone", "undone", "undone", "rejected"], "{ran}");
}

#[test]
fn a_call_that_failed_is_shown_with_its_error() {
    let shop = sample();
    let repeated =
        "SELECT key FROM calls WHERE service = 'gateway' AND calls > 1 AND key LIKE '%:charge-card' ORDER BY key";
    let books = Connection::open(shop.path("order-rig.db.outside.db")).expect("the books");
    let key: String = books.query_row(repeated, [], |row| row.get(0)).expect("a call that was repeated");
    let ran = shop.run(&["show", key.trim_end_matches(":charge-card")]);
    assert!(
        ran.out.contains("what else happened") && ran.out.contains("charge-card: attempt-failed, attempt 1"),
        "{ran}"
    );
}

#[test]
fn the_definition_is_drawn() {
    let ran = Shop::new().run(&["graph"]);
    assert_eq!(ran.code, 0, "{ran}");
    assert!(ran.out.contains("flowchart") && ran.out.contains("undo charge-card"), "{ran}");
}

#[test]
fn a_second_program_on_the_store_waits_and_says_so_and_looking_needs_no_waiting() {
    let shop = Shop::new();
    let outside = OutsideProcess::start(&shop, &[]);
    let args = [&REAL[..], &["--outside", &outside.url]].concat();
    let mut first = shop.command(&args).spawn().expect("the program starts");
    until(&mut first, || shop.ended() > 0);
    let listed = shop.run(&["list"]);
    assert_eq!(listed.code, 0, "{listed}");
    let plan = shop.path("plan.json").display().to_string();
    let planned = shop.run(&["bulk", "plan", "pause", "--idle-for", "60m", "--out", &plan]);
    assert!(planned.code == 0 && !planned.err.contains("waiting for"), "{planned}");
    let second = shop.run(&args);
    assert_eq!(second.code, 0, "{second}");
    let waits = format!("waiting for another process that works on {}", shop.path("order-rig.db").display());
    assert!(second.err.contains(&waits), "{second}");
    assert_eq!(number(&second.json(), "already_started"), REAL_ORDERS);
    assert!(first.wait_with_output().expect("it ends").status.success());
    shop.verify();
}
