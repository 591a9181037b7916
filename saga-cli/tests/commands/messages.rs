//! Dead letters and the outbox.

use saga_core::Tenant;
use saga_core::store::MessageId;

use crate::shop::Shop;

#[tokio::test]
async fn dead_letters_are_listed_shown_and_discarded() {
    let shop = Shop::default();
    shop.bury(17, Tenant::default(), "it has no kind").await;
    shop.says(&["dead-letters", "list"], 0, "17         open       unreadable").await;
    let shown = shop.says(&["dead-letters", "show", "17"], 0, "the message is incomplete and cannot be replayed").await;
    assert!(shown.contains("garbage") && shown.contains(r"sent-by: a\u{1b}[2J"), "{shown}");
    shop.says(&["dead-letters", "show", "17", "--json"], 0, "\"detail\":\"it has no kind\"").await;
    shop.says(&["dead-letters", "show", "4711"], 2, "there is no dead letter 4711 in the shop").await;
    shop.says(&["dead-letters", "replay", "17"], 2, "the message is incomplete").await;
    shop.says(&["dead-letters", "discard", "17", "--reason", "a test"], 0, "17 is discarded\n").await;
    shop.says(&["dead-letters", "list", "--json"], 0, "{\"dead_letters\":[]}\n").await;
    shop.says(&["dead-letters", "list", "--state", "discarded", "--json"], 0, "\"note\":\"a test\"").await;
}

#[tokio::test]
async fn an_outbox_without_messages_says_so() {
    let shop = Shop::default();
    shop.says(&["outbox", "list"], 0, "0 messages wait to be sent; 0 keys are parked\n").await;
    shop.says(&["outbox", "list", "--json"], 0, "\"waiting\":0").await;
    for args in [&["outbox", "release", "none"][..], &["outbox", "discard", "none", "--reason", "why"]] {
        shop.says(args, 2, "no key is parked for the message \"none\"; see: shop outbox list").await;
    }
}

#[tokio::test]
async fn a_parked_message_is_released_or_discarded_once() {
    let shop = Shop::default();
    for (message, act) in [(1, &["release"][..]), (2, &["discard", "--reason", "a test"])] {
        let id = shop.park(message, Tenant::default(), "the broker refused it").await.to_string();
        let args = [&["outbox", act[0], &id], &act[1..]].concat();
        shop.says(&["outbox", "list"], 0, "the broker refused it\n").await;
        shop.says(&args, 0, &id).await;
        shop.says(&args, 2, "no key is parked for the message").await;
    }
}

#[tokio::test]
async fn messages_of_a_tenant_are_handled_under_its_name() {
    let shop = Shop::default();
    let acme = || Tenant::new("acme").expect("a name");
    shop.bury(18, acme(), "a letter of acme").await;
    assert_eq!(shop.says(&["dead-letters", "list"], 0, "").await, "");
    shop.says(&["dead-letters", "show", "18"], 2, "there is no dead letter 18 in the shop").await;
    shop.says(&["dead-letters", "list", "--tenant", "acme"], 0, "a letter of acme").await;
    shop.says(&["dead-letters", "discard", "18", "--reason", "a test", "--tenant", "acme"], 0, "18 is disc").await;
    let message: MessageId = shop.park(3, acme(), "the broker refused it").await;
    let others = "1 keys are parked, 1 of them of other tenants\n";
    assert!(!shop.says(&["outbox", "list"], 0, others).await.contains("refused"));
    shop.says(&["outbox", "list", "--tenant", "acme"], 0, "1 keys are parked\n").await;
    shop.says(&["outbox", "release", &message.to_string(), "--tenant", "acme"], 0, "is tried again").await;
}
