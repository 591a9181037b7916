//! Cancelling orders: while they are on their way, and when they have ended.

use crate::support::{OutsideProcess, REAL, Shop, until};

#[test]
fn an_order_is_cancelled_on_its_way_and_what_was_done_of_it_is_undone() {
    let shop = Shop::new();
    let outside = OutsideProcess::start(&shop, &[]);
    let args = [&REAL[..], &["--outside", &outside.url]].concat();
    let mut first = shop.command(&args).spawn().expect("the program starts");
    until(&mut first, || shop.ended() > 0);
    first.kill().expect("it is killed");
    first.wait().expect("it ends");
    let running = shop.listed("running");
    let cancel = |key: &str| shop.run(&["cancel", key, "--reason", "the customer left", "--by", "ann"]);
    // Some of them may have come to their pivot, from where they only go forward.
    let mut asked = running.iter().map(|order| (order, cancel(order)));
    let (order, ran) = asked.find(|(_, ran)| ran.code == 0).expect("an order is on its way to its pivot");
    assert!(ran.out.starts_with(&format!("{order} is cancelled; ")), "{ran}");
    let ran = cancel(order);
    assert_eq!((ran.code, ran.out.trim_end()), (0, &*format!("{order} is being undone already")), "{ran}");

    let second = shop.run(&args);
    assert_eq!(second.code, 0, "{second}");
    let ran = shop.run(&["show", order]);
    for said in
        ["compensated, because it was cancelled: the customer left", "operator: cancel by ann: the customer left"]
    {
        assert!(ran.out.contains(said), "no {said:?} in\n{ran}");
    }
    shop.verify();
    for (status, said) in [("compensated", "is undone already"), ("completed", "is completed already")] {
        let order = shop.listed(status).remove(0);
        let ran = cancel(&order);
        assert_eq!((ran.code, ran.out.trim_end()), (3, &*format!("{order} {said}")), "a script is told\n{ran}");
    }
    cancel("nobody").is_unusable("there is no saga nobody in ");
    assert_eq!(shop.run(&["cancel", order]).code, 2, "it needs a reason");
    shop.run(&["cancel", order, "--reason", " "]).is_unusable("give a reason");
}
