//! A step of another service that is done for each item of a list, whatever the stores are and whatever carries messages.

use saga_core::store::{Answer, DeadLetterReason, MessageKind, StepRecord};
use saga_core::transport::Message;
use saga_core::{Key, Outcome, Tenant};
use saga_tests::Books;

use super::cases::{id, message};
use super::meddler::Meddling;
use super::shop::{Shop, one_by_one, three_at_once};

/// What is recorded of the saga `o-1` where it runs, in the order in which it was recorded.
async fn records<S: Books>(shop: &Shop<S>) -> Vec<StepRecord> {
    shop.orders.records_of(&Tenant::default(), &Key::new("o-1").unwrap()).await.unwrap()
}

async fn each_item_of_a_list_is_a_step_of_the_other_service<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let running = shop.charge(&three_at_once(), "o-1", &[1, 20, 300, 4, 50, 600, 7]).await;
    assert_eq!(running.outcome().await.unwrap().to_string(), "completed");
    assert_eq!((shop.charged().await, shop.charges().await), (982, 7));
    assert_eq!(shop.orders.counter("paid").await, 1);
    for item in 1..=7 {
        let key = format!("o-1:charge-card#{item}");
        assert_eq!(shop.payments.counter(&key).await, 1, "{key}");
    }
    shop.is_quiet().await;
    shop.close().await;
}

async fn g5_a_rejected_item_has_its_siblings_undone_in_reverse<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let running = shop.charge(&one_by_one(), "o-1", &[1, 20, 300, 5_000, 4]).await;
    let Outcome::Compensated { failed_step, reason, .. } = running.outcome().await.unwrap() else { panic!() };
    assert_eq!((failed_step.as_str(), reason.message()), ("charge-card#4", "too expensive"));
    assert_eq!((shop.charged().await, shop.charges().await, shop.refunds().await), (0, 3, 3));
    let records = records(&shop).await;
    let undone = records.iter().filter(|record| record.step.undo_round().is_some());
    let undone: Vec<&str> = undone.map(|record| record.step.as_str()).collect();
    assert_eq!(undone, ["charge-card#3:undo", "charge-card#2:undo", "charge-card#1:undo"]);
    shop.is_quiet().await;
    shop.close().await;
}

async fn g2_duplicates_of_every_message_of_a_list_change_nothing<S: Books>() {
    let shop = Shop::<S>::open(Meddling { copies: 3, ..Meddling::default() }).await;
    let done = shop.charge(&three_at_once(), "o-1", &[1, 20, 300, 4]).await;
    let undone = shop.charge(&three_at_once(), "o-2", &[1, 20, 300, 5_000]).await;
    assert_eq!(done.outcome().await.unwrap().to_string(), "completed");
    assert!(matches!(undone.outcome().await.unwrap(), Outcome::Compensated { .. }));
    assert_eq!(shop.charged().await, 325);
    assert_eq!(shop.charges().await, 4 + shop.refunds().await);
    shop.is_quiet().await;
    shop.close().await;
}

async fn what_is_lost_of_a_list_is_sent_again<S: Books>() {
    let lost = vec![MessageKind::Command, MessageKind::Reply, MessageKind::Undo, MessageKind::Reply];
    let shop = Shop::<S>::open(Meddling { lost, ..Meddling::default() }).await;
    let running = shop.charge(&one_by_one(), "o-1", &[1, 20, 5_000]).await;
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Compensated { .. }));
    assert_eq!(shop.transport.lost_so_far(), 4, "the losses were met");
    assert_eq!((shop.charged().await, shop.charges().await, shop.refunds().await), (0, 2, 2));
    shop.is_quiet().await;
    shop.close().await;
}

async fn g5_an_undo_of_an_item_before_its_do_bars_that_item_only<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let mut replies = shop.listen("elsewhere").await;
    let of_item = |message: Message, item: &str| {
        let mut message = message;
        message.headers.step = Some(item.to_owned());
        message
    };
    let mut undo = message(MessageKind::Undo, 2, "o-1", r#"{"input":{"cents":12,"heavy":false}}"#);
    undo.headers.answer = Some(Answer::Unknown);
    let told = async |replies: &mut super::shop::Replies| {
        let headers = replies.next().await.headers;
        (headers.answer.unwrap(), headers.step.unwrap(), headers.correlation.unwrap())
    };
    shop.publish(of_item(undo, "charge-card#2")).await;
    assert_eq!(told(&mut replies).await, (Answer::Undone, "charge-card#2".to_owned(), id(2)));
    let command = |number| message(MessageKind::Command, number, "o-1", r#"{"cents":12,"heavy":false}"#);
    shop.publish(of_item(command(1), "charge-card#2")).await;
    assert_eq!(told(&mut replies).await, (Answer::Cancelled, "charge-card#2".to_owned(), id(1)));
    // Neither its sibling nor the step of that name is meant.
    shop.publish(of_item(command(3), "charge-card#1")).await;
    assert_eq!(told(&mut replies).await, (Answer::Done, "charge-card#1".to_owned(), id(3)));
    shop.publish(command(4)).await;
    assert_eq!(told(&mut replies).await, (Answer::Done, "charge-card".to_owned(), id(4)));
    assert_eq!((shop.charges().await, shop.refunds().await), (2, 0));
    shop.is_quiet().await;
    shop.close().await;
}

async fn g8_an_item_that_is_not_numbered_right_is_a_dead_letter<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let items = [
        ("charge-card#0", DeadLetterReason::Unreadable),
        ("charge-card#03", DeadLetterReason::Unreadable),
        ("charge-card#", DeadLetterReason::Unreadable),
        ("charge-card#4294967296", DeadLetterReason::Unreadable),
        ("launder#1", DeadLetterReason::UnknownStep),
    ];
    for (number, (item, reason)) in (1..).zip(items) {
        let mut command = message(MessageKind::Command, number, "o-1", r#"{"cents":12,"heavy":false}"#);
        command.headers.step = Some(item.to_owned());
        shop.publish(command).await;
        let letters = shop.letters(&Tenant::default(), 1).await;
        let [letter] = &letters[..] else { panic!("{letters:?}") };
        assert_eq!(letter.letter.reason, reason, "{item}: {}", letter.letter.detail);
        shop.payments_runtime.admin().dead_letters().discard(letter.letter.id, "not ours").await.unwrap();
    }
    assert_eq!(shop.charges().await, 0);
    shop.close().await;
}

async fn items_that_were_refused_go_on_when_their_letters_are_replayed<S: Books>() {
    let shop = Shop::<S>::open_without_payments(Meddling::default()).await;
    let running = shop.charge(&one_by_one(), "o-1", &[1, 20]).await;
    let Outcome::Stuck { step, reason, .. } = running.outcome().await.unwrap() else { panic!() };
    assert_eq!(step, "charge-card#1");
    assert!(reason.contains("unknown-step"), "{reason}");
    let letters = shop.letters(&Tenant::default(), 1).await;
    let shop = shop.with_payments().await;
    shop.payments_runtime.admin().dead_letters().replay(letters[0].letter.id, "the step is hosted now").await.unwrap();
    assert_eq!(running.closed().await.unwrap().to_string(), "completed");
    assert_eq!((shop.charged().await, shop.charges().await), (21, 2));
    shop.is_quiet().await;
    shop.close().await;
}

saga_tests::on_every_pair!(
    each_item_of_a_list_is_a_step_of_the_other_service,
    g5_a_rejected_item_has_its_siblings_undone_in_reverse,
    g2_duplicates_of_every_message_of_a_list_change_nothing,
    what_is_lost_of_a_list_is_sent_again,
    g5_an_undo_of_an_item_before_its_do_bars_that_item_only,
    g8_an_item_that_is_not_numbered_right_is_a_dead_letter,
    items_that_were_refused_go_on_when_their_letters_are_replayed,
);
