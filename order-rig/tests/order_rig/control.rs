//! What a person does with orders on the command line: with one that is stuck or has ended, and with many.

use crate::support::{Ran, Shop};
use rusqlite::Connection;

/// A shop in which the sample was run, and an order of it that completed.
fn sample() -> (Shop, String) {
    let shop = Shop::new();
    assert_eq!(shop.run(&["run", "--json"]).code, 0);
    let order = shop.listed("completed").first().cloned().expect("an order is completed");
    (shop, order)
}

/// Runs what is unfinished to its end.
fn finish(shop: &Shop) {
    let none = shop.write("none.jsonl", "");
    let ran = shop.run(&["run", "--json", "--orders", none.to_str().expect("text")]);
    assert_eq!(ran.code, 0, "{ran}");
}

#[track_caller]
fn says(ran: &Ran, said: &str) {
    assert!(ran.code == 0 && ran.out.contains(said), "no {said:?} in\n{ran}");
}

/// Starts another saga instead of the order, which begins with its last step, and leaves it as one that is stuck there.
fn stuck(shop: &Shop, order: &str, key: &str) {
    let ran = shop.run(&["restart", order, "--from", "confirm-order", "--new-key", key, "--reason", "once more"]);
    says(&ran, &format!("{order}: {key} is started instead"));
    let conn = Connection::open(shop.path("order-rig.db")).expect("the store");
    let id = "(SELECT id FROM saga_sagas WHERE key = ?1)";
    let damage = |sql: String| assert_eq!(conn.execute(&sql, [key]).expect("it is damaged"), 1, "{sql}");
    damage(format!("UPDATE saga_progress SET status = 'stuck' WHERE id = {id}"));
    damage(format!("DELETE FROM saga_work WHERE saga = {id}"));
}

#[test]
fn a_stuck_order_is_tried_again_passed_or_ended_and_the_audit_tells_it() {
    let (shop, order) = sample();
    let act = |what: &[&str]| shop.run(&[what, &["--reason", "the shelf was filled", "--by", "ann"]].concat());
    stuck(&shop, &order, "again-1");
    says(&act(&["retry", "again-1"]), "again-1 is tried again by the processes that work on the store");
    act(&["retry", "again-1", "--revision", "1"]).is_unusable("has moved since");
    finish(&shop);
    says(&shop.run(&["show", "again-1"]), "create-order version 1): completed");
    says(&shop.run(&["show", "again-1"]), "taken over from the saga");

    stuck(&shop, &order, "again-2");
    act(&["retry", "again-2", "--input", "{}"]).is_unusable("this is no input of it");
    says(&act(&["skip", "again-2"]), "again-2 goes on behind what it was stuck at");
    stuck(&shop, &order, "again-3");
    says(&act(&["force", "again-3", "--as", "compensated"]), "again-3 has ended as it is");
    says(&shop.run(&["show", "again-3"]), "operator: force as compensated by ann: the shelf was filled");

    let ran = shop.run(&["audit"]);
    let first = ran.out.lines().next().unwrap_or_default();
    assert!(first.ends_with("again-3                  force as compensated by ann: the shelf was filled"), "{ran}");
    assert_eq!(shop.run(&["audit", "--limit", "2"]).out.lines().count(), 2);
    let ran = shop.run(&["audit", "--json", "--limit", "1"]);
    assert_eq!((&ran.json()["key"], &ran.json()["act"]["by"]), (&"again-3".into(), &"ann".into()), "{ran}");
}

#[test]
fn a_plan_is_looked_at_and_then_carried_out_once() {
    let (shop, order) = sample();
    for key in ["again-1", "again-2", "again-3"] {
        let ran = shop.run(&["restart", &order, "--from", "confirm-order", "--new-key", key, "--reason", "once more"]);
        assert_eq!(ran.code, 0, "{ran}");
    }
    let plan = shop.path("pause.json");
    let file = plan.to_str().expect("text");
    let running = ["bulk", "plan", "pause", "--status", "running", "--out", file];
    says(&shop.run(&running), "3 sagas; nothing is changed yet: order-rig bulk run ");
    shop.run(&running).is_unusable("cannot write ");
    assert_eq!(shop.listed("running").len(), 3, "a plan changes nothing");
    let late = shop.run(&["cancel", "again-3", "--reason", "enough"]);
    late.is_unusable("its pivot `confirm-order` is under way or done, and from there the saga only goes forward");
    for act in ["pause", "resume"] {
        assert_eq!(shop.run(&[act, "again-3", "--reason", "it is looked at"]).code, 0);
    }

    let run = ["bulk", "run", file, "--reason", "look at them first", "--by", "ann", "--per-second", "1000"];
    let ran = shop.run(&run);
    assert_eq!((ran.code, ran.out.trim_end()), (1, "2 done, 0 done before, 1 refused, 0 failed"), "{ran}");
    assert!(ran.err.contains("3/3 again-3: refused: ") && ran.err.contains("has moved since"), "{ran}");
    let ran = shop.run(&run);
    assert_eq!((ran.code, ran.out.trim_end()), (1, "0 done, 2 done before, 1 refused, 0 failed"), "{ran}");
    assert_eq!(shop.listed("paused"), ["again-1", "again-2"]);

    let plan = shop.path("resume.json");
    let file = plan.to_str().expect("text");
    let paused = ["bulk", "plan", "resume", "--status", "paused", "--limit", "9", "--out", file];
    says(&shop.run(&paused), "2 sagas; ");
    says(&shop.run(&["bulk", "run", file, "--reason", "all is well"]), "2 done, ");
    finish(&shop);
    assert_eq!(shop.listed("paused").len() + shop.listed("running").len(), 0);

    // What would be refused is said beforehand.
    let late = shop.path("late.json");
    let late = late.to_str().expect("text");
    let ran = shop.run(&["bulk", "plan", "pause", "--status", "completed", "--limit", "2", "--out", late]);
    says(&ran, "(would be refused: the saga has ended already)");
    says(&ran, "2 sagas, of which 2 would be refused");
}

#[test]
fn what_cannot_be_done_is_said_in_a_sentence() {
    let (shop, order) = sample();
    let why = ["--reason", "why not"];
    let run = |what: &[&str]| shop.run(&[what, &why].concat());
    run(&["retry", &order]).is_unusable("nothing of it is stuck or waits for its next attempt");
    run(&["skip", &order]).is_unusable("the saga is not stuck");
    run(&["force", &order, "--as", "completed"]).is_unusable("the saga is not stuck");
    run(&["restart", &order, "--from", "ship", "--new-key", "new"]).is_unusable("it has no step `ship`; its steps are");
    run(&["restart", &order, "--from", "confirm-order", "--new-key", &order]).is_unusable("belongs to another saga");
    let undone = shop.listed("compensated").first().cloned().expect("an order is undone");
    run(&["restart", &undone, "--from", "confirm-order", "--new-key", "new"]).is_unusable("its step `");
    for what in [&["retry", "nobody"][..], &["skip", "nobody"], &["force", "nobody", "--as", "completed"]] {
        run(what).is_unusable("there is no saga nobody in ");
    }
    run(&["bulk", "run", "none.json"]).is_unusable("cannot read none.json");
    let broken = shop.write("broken.json", "{}");
    run(&["bulk", "run", broken.to_str().expect("text")]).is_unusable("is no plan that `bulk plan` wrote");
    for wrong in [
        &["retry", &order][..],
        &["retry", &order, "--reason", "why", "--input", "{"],
        &["skip", &order, "--reason", "why", "--outptu", "1"],
        &["force", &order, "--reason", "why"],
        &["force", &order, "--reason", "why", "--as", "stuck"],
        &["restart", &order, "--reason", "why", "--new-key", "new"],
        &["bulk", "plan", "explode", "--out", "plan.json"],
        &["bulk", "plan", "pause"],
        &["bulk", "run", "plan.json", "--reason", "why", "--per-second", "0"],
        &["audit", "--limit", "many"],
    ] {
        assert_eq!(shop.run(wrong).code, 2, "{wrong:?}");
    }
    for what in [&["retry"][..], &["skip"], &["force"], &["restart"], &["bulk", "plan"], &["bulk", "run"], &["audit"]] {
        let help = shop.run(&[what, &["--help"]].concat());
        assert!(help.code == 0 && help.out.contains("Usage: order-rig "), "{help}");
    }
}
