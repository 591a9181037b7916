//! What an operator does with many orders on the command line. The tests of `saga-cli` have each command on one saga.

use std::fs::OpenOptions;

use crate::support::{Ran, Shop};

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
fn an_action_is_done_and_said_where_its_result_cannot_be_printed() {
    let (shop, order) = sample();
    let restart = ["restart", &order, "--from", "confirm-order", "--new-key", "again", "--reason", "once more"];
    assert_eq!(shop.run(&restart).code, 0);
    let full = OpenOptions::new().write(true).open("/dev/full").expect("it is there");
    let paused = shop.command(&["pause", "again", "--reason", "it is looked at"]).stdout(full).output();
    let ran = Ran::of(paused.expect("the program starts"));
    ran.is_unusable(
        "again is paused: nothing new of it begins before `order-rig resume`, but this could not be printed",
    );
    assert_eq!(shop.listed("paused"), ["again"]);
}
