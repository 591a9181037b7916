//! Pausing an order, and letting it go on, while others go on beside it.

use crate::support::{OutsideProcess, REAL, Shop, until};

#[test]
fn a_paused_order_waits_and_the_others_do_not() {
    let shop = Shop::new();
    let outside = OutsideProcess::start(&shop, &[]);
    let args = [&REAL[..], &["--outside", &outside.url]].concat();
    let mut first = shop.command(&args).spawn().expect("the program starts");
    until(&mut first, || shop.ended() > 0);
    first.kill().expect("it is killed");
    first.wait().expect("it ends");
    let order = shop.listed("running").pop().expect("an order is on its way");
    let act_for = |code: i32, what: &str| {
        let ran = shop.run(&[what, &order, "--reason", "the address is wrong", "--by", "ann"]);
        assert_eq!(ran.code, code, "{ran}");
        ran.out.trim_end().trim_start_matches(&order).trim_start().to_owned()
    };
    let act = |what: &str| act_for(0, what);
    assert_eq!(act("resume"), "is not paused");
    assert!(act("pause").starts_with("is paused: "));
    assert_eq!(act("pause"), "is paused already");

    // What was under way goes on; the run does not wait for the order that is paused.
    let none = shop.write("none.jsonl", "");
    let rest = ["run", "--json", "--orders", none.to_str().expect("text"), "--outside", &outside.url];
    let ran = shop.run(&rest);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(shop.listed("running"), [""; 0]);
    assert_eq!(shop.listed("paused"), [&*order]);
    let ran = shop.run(&["show", &order]);
    for said in [": paused by ann since ", "the address is wrong", "operator: pause by ann: the address is wrong"] {
        assert!(ran.out.contains(said), "no {said:?} in\n{ran}");
    }
    assert!(!ran.out.contains("again at"), "{ran}");
    let ran = shop.run(&["verify", "--within", "1ms"]);
    assert!(ran.code == 1 && format!("{ran}").contains("its saga is paused"), "{ran}");

    assert_eq!(act("resume"), "goes on; the processes that work on the store do what waited");
    let ran = shop.run(&args);
    assert_eq!(ran.code, 0, "{ran}");
    assert_eq!(shop.listed("paused"), [""; 0]);
    shop.verify();
    assert!(act_for(3, "resume").ends_with(" already"));
    assert!(act_for(3, "pause").ends_with(" already"));
}
