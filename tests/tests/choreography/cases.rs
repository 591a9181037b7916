//! What holds of sagas that are wired by events, whatever their stores are and whatever carries their messages.

use std::time::Duration;

use saga_core::engine::TimelineStatus;
use saga_core::engine::{Became, Happened, TimelineEntry};
use saga_core::store::{DeadLetterReason, MessageKind, RecordedOutcome, Status};
use saga_core::transport::{Message, service_topic};
use saga_core::{Key, Tenant};
use saga_tests::{Books, eventually};

use super::events::{CardCharged, CardDeclined, NoteAdded, OrderPlaced, StockRejected, StockReserved};
use super::meddler::Meddling;
use super::shop::{Shop, event, last_of, raw};

/// Whether these steps were undone, or barred where what takes them back came first: services work side by side.
fn is_taken_back(timeline: &TimelineStatus, steps: &[&str]) -> bool {
    let last = last_of(timeline);
    steps.iter().all(|step| matches!(last.get(*step), Some(Became::Undone | Became::Tombstoned)))
}

async fn events_alone_bring_an_order_to_its_end<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    shop.place("o-1", 12, 3).await;
    shop.comes_to(&shop.shipping, "pieces", 3).await;
    shop.is_quiet_but_for(1).await;
    assert_eq!(shop.payments.counter("charged").await, 12);
    assert_eq!(shop.stock.counter("reserved").await, 3);
    assert_eq!(shop.shipping.counter("shipped").await, 1);
    // The key outside is that of the saga and the step.
    assert_eq!(shop.payments.counter("o-1:charge-card").await, 1);
    let record = shop.payments.records_of(&Tenant::default(), &Key::from_stored("o-1>charge-card").unwrap()).await;
    assert_eq!(record.unwrap()[0].outcome, RecordedOutcome::Done);
    let status = shop.payments_runtime.status("o-1>charge-card").await.unwrap().unwrap();
    assert_eq!(status.summary.status, Status::Completed);
    shop.close().await;
}

async fn g5_a_rejection_undoes_what_the_others_did<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    shop.place("o-1", 12, 11).await;
    shop.place("o-2", 1_001, 3).await;
    shop.timeline("o-1", |timeline| is_taken_back(timeline, &["payments/charge-card"])).await;
    shop.timeline("o-2", |timeline| {
        // The refusal may come before the order: then the stock is barred, and nothing is ever packed.
        let was_reserved = last_of(timeline).get("stock/reserve-stock") == Some(&Became::Undone);
        is_taken_back(timeline, &["stock/reserve-stock"])
            && (!was_reserved || is_taken_back(timeline, &["shipping/pack"]))
    })
    .await;
    shop.is_quiet_but_for(2).await;
    let (charges, refunds) = (shop.payments.counter("charges").await, shop.payments.counter("refunds").await);
    assert!(charges == refunds && charges <= 1, "{charges} and {refunds}");
    assert_eq!((shop.payments.counter("charged").await, shop.stock.counter("reserved").await), (0, 0));
    let (reservations, releases) = (shop.stock.counter("reservations").await, shop.stock.counter("releases").await);
    assert!(reservations == releases && reservations <= 1, "{reservations} and {releases}");
    assert_eq!((shop.shipping.counter("shipped").await, shop.shipping.counter("packed").await), (0, 0));
    shop.close().await;
}

async fn g2_duplicates_of_every_event_change_nothing<S: Books>() {
    let shop = Shop::<S>::open(Meddling { copies: 3, ..Meddling::default() }).await;
    for _ in 0..3 {
        shop.place("o-1", 12, 3).await;
        shop.place("o-2", 20, 11).await;
    }
    shop.comes_to(&shop.shipping, "shipped", 1).await;
    shop.timeline("o-2", |timeline| is_taken_back(timeline, &["payments/charge-card"])).await;
    shop.is_quiet_but_for(2).await;
    let (charges, refunds) = (shop.payments.counter("charges").await, shop.payments.counter("refunds").await);
    assert!(charges == refunds + 1 && refunds <= 1, "{charges} and {refunds}");
    assert_eq!(shop.payments.counter("charged").await, 12);
    assert_eq!((shop.stock.counter("reserved").await, shop.stock.counter("reservations").await), (3, 1));
    shop.close().await;
}

async fn the_same_event_under_another_id_changes_nothing_and_another_content_is_a_dead_letter<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let order = OrderPlaced { cents: 12, quantity: 3 };
    for number in 1..4 {
        shop.publish(event(number, "o-1", &order)).await;
    }
    shop.comes_to(&shop.shipping, "shipped", 1).await;
    shop.publish(event(4, "o-1", &OrderPlaced { cents: 13, ..order })).await;
    let letters = shop.letters(&shop.payments_runtime, 1).await;
    assert_eq!(letters[0].letter.reason, DeadLetterReason::PayloadMismatch);
    assert_eq!((shop.payments.counter("charged").await, shop.payments.counter("charges").await), (12, 1));
    shop.close().await;
}

async fn events_that_come_out_of_order_wait_for_what_they_need<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    // The card is charged before anything was packed.
    shop.publish(event(1, "o-1", &CardCharged { payment: "p".into() })).await;
    eventually("a wait", async || (shop.shipping.backlog().await.unwrap().0 > 0).then_some(())).await;
    assert!(shop.shipping_runtime.status("o-1>ship").await.unwrap().is_none(), "it has not begun");
    shop.publish(event(2, "o-1", &StockReserved { quantity: 4 })).await;
    shop.comes_to(&shop.shipping, "pieces", 4).await;
    shop.is_quiet().await;
    shop.close().await;
}

async fn g5_an_undo_before_its_do_bars_it<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let rejected = StockRejected { reason: "sold out".into() };
    shop.publish(event(1, "o-1", &rejected)).await;
    let barred = async || shop.payments_runtime.status("o-1>charge-card").await.unwrap();
    let status = eventually("a tombstone", barred).await;
    assert_eq!(status.summary.status, Status::Compensated);
    shop.publish(event(2, "o-1", &OrderPlaced { cents: 12, quantity: 3 })).await;
    shop.publish(event(3, "o-1", &rejected)).await;
    shop.comes_to(&shop.stock, "reserved", 3).await;
    shop.is_quiet_but_for(1).await;
    assert_eq!((shop.payments.counter("charges").await, shop.payments.counter("refunds").await), (0, 0));
    assert!(shop.letters(&shop.payments_runtime, 0).await.is_empty());
    shop.close().await;
}

async fn g5_a_late_step_after_its_undo_is_not_done_again<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let order = OrderPlaced { cents: 12, quantity: 3 };
    shop.publish(event(1, "o-1", &order)).await;
    shop.comes_to(&shop.stock, "reservations", 1).await;
    for number in 2..5 {
        shop.publish(event(number, "o-1", &CardDeclined { reason: "expired".into() })).await;
    }
    shop.comes_to(&shop.stock, "releases", 1).await;
    shop.publish(event(5, "o-1", &order)).await;
    shop.is_quiet_but_for(2).await;
    assert_eq!((shop.stock.counter("reservations").await, shop.stock.counter("releases").await), (1, 1));
    assert_eq!(shop.stock.counter("reserved").await, 0);
    shop.close().await;
}

async fn a_step_for_each_event_is_done_once_for_each<S: Books>() {
    let shop = Shop::<S>::open(Meddling { copies: 1, ..Meddling::default() }).await;
    // Two events of the same content are two events.
    for number in [1, 2, 2, 1] {
        shop.publish(event(number, "o-1", &NoteAdded { cents: 7 })).await;
    }
    shop.payments_runtime.publish("o-1", &NoteAdded { cents: 7 }).await.unwrap();
    shop.payments_runtime.publish("o-1", &NoteAdded { cents: 7 }).await.unwrap();
    shop.comes_to(&shop.payments, "o-1:note-each", 3).await;
    shop.is_quiet().await;
    assert_eq!(shop.payments.counter("noted").await, 21);
    shop.close().await;
}

async fn g8_what_cannot_be_understood_is_a_dead_letter_with_its_reason<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let good = event(0, "o-1", &StockRejected { reason: "sold out".into() });
    let mine = |number, change: fn(&mut Message)| {
        let mut message = event(number, "o-1", &StockRejected { reason: "sold out".into() });
        change(&mut message);
        message
    };
    let bad = [
        // It is addressed to nobody's name, which no queue of an event's topic is bound to: an older version wanted it.
        (mine(1, |message| message.event_type = "stock-lost".into()), DeadLetterReason::NoSubscriber),
        (mine(2, |message| message.key = "a key".into()), DeadLetterReason::Unreadable),
        (raw(3, "o-3", "order-placed", r#"{"cents":"much"}"#), DeadLetterReason::Undecodable),
        (raw(4, "o-4", "order-placed", "no JSON"), DeadLetterReason::Undecodable),
        (raw(5, "o-5", "order-placed", r#"{"cents":0,"quantity":1}"#), DeadLetterReason::Undecodable),
        (mine(6, |message| message.committed_at = saga_core::store::Timestamp(0)), DeadLetterReason::TooOld),
        (mine(7, |message| message.payload = vec![b' '; 1 << 19]), DeadLetterReason::TooLarge),
    ];
    for (message, reason) in bad {
        shop.publish(message.clone()).await;
        let letters = shop.letters(&shop.payments_runtime, 1).await;
        let [letter] = &letters[..] else { panic!("{letters:?}") };
        assert_eq!(letter.letter.reason, reason, "{}", letter.letter.detail);
        shop.payments_runtime.admin().dead_letters().discard(letter.letter.id, "not ours").await.unwrap();
    }
    assert_eq!(shop.payments.counter("charges").await, 0);
    // Nobody was held up, and of what shares its topic with what is wanted the rest is passed over.
    shop.publish(Message { topic: "scales".into(), ..good }).await;
    shop.place("o-9", 12, 3).await;
    shop.comes_to(&shop.shipping, "shipped", 1).await;
    assert!(shop.letters(&shop.payments_runtime, 0).await.is_empty());
    shop.close().await;
}

async fn a_rejection_that_cannot_be_told_waits_for_a_person<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    shop.place("o-1", 6_666, 3).await;
    let stuck = async || {
        let status = shop.payments_runtime.status("o-1>charge-card").await.unwrap();
        status.filter(|status| status.summary.status == Status::Stuck)
    };
    let status = eventually("stuck", stuck).await;
    let reason = status.steps[0].stuck.clone().unwrap_or_default();
    assert!(reason.contains("`card-declined` cannot be made: it panicked"), "{reason}");
    shop.close().await;
}

async fn g5_a_deadline_bars_the_pivot_and_has_the_rest_undone<S: Books>() {
    let mut shop = Shop::<S>::open_until(Meddling::default(), Duration::from_secs(1)).await;
    shop.stop_stock().await;
    shop.payments_runtime.publish("o-1", &OrderPlaced { cents: 12, quantity: 3 }).await.unwrap();
    // The card is charged, if there is time for it, nothing can be packed, and the deadline passes.
    shop.timeline("o-1", |timeline| is_taken_back(timeline, &["payments/charge-card"])).await;
    let pivot = shop.shipping_runtime.status("o-1>ship").await.unwrap().unwrap();
    assert_eq!(pivot.summary.status, Status::Compensated);
    // The stock is back, and gets the order and its end; what is packed late is never shipped.
    shop.start_stock().await;
    shop.is_quiet().await;
    shop.publish(event(7, "o-1", &StockReserved { quantity: 3 })).await;
    shop.publish(event(8, "o-1", &CardCharged { payment: "late".into() })).await;
    shop.is_quiet().await;
    let (charges, refunds) = (shop.payments.counter("charges").await, shop.payments.counter("refunds").await);
    assert!(charges == refunds && charges <= 1, "{charges} and {refunds}");
    assert_eq!(shop.payments.counter("charged").await, 0);
    // What is still in the broker is in no store, so the stores can be quiet before the end of the saga has come to the stock.
    let is_put_back = async || (shop.stock.counter("reserved").await == 0).then_some(());
    eventually("put back", is_put_back).await;
    assert_eq!(shop.shipping.counter("shipped").await, 0);
    shop.close().await;
}

async fn a_deadline_of_what_was_done_in_time_does_nothing<S: Books>() {
    // On a busy machine it may take longer than the first of them: then it is not in time, and nothing is tried.
    for deadline in [2, 8, 30].map(Duration::from_secs) {
        let shop = Shop::<S>::open_until(Meddling::default(), deadline).await;
        shop.place("o-1", 12, 3).await;
        // Until the deadline is over as well.
        let ended = shop.timeline("o-1", |timeline| timeline.ended_at.is_some()).await;
        let is_in_time = ended.status == Status::Completed;
        if is_in_time {
            shop.is_quiet().await;
            assert_eq!((shop.stock.counter("releases").await, shop.payments.counter("refunds").await), (0, 0));
            assert_eq!(shop.shipping.counter("shipped").await, 1);
        }
        shop.close().await;
        if is_in_time {
            return;
        }
    }
    panic!("nothing was shipped in time");
}

async fn a_step_is_barred_when_what_it_needs_was_taken_back<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    shop.publish(event(1, "o-1", &StockRejected { reason: "sold out".into() })).await;
    let barred = async |key: &str| {
        let status = shop.shipping_runtime.status(key).await.unwrap();
        status.filter(|status| status.summary.status == Status::Compensated)
    };
    eventually("a tombstone", async || barred("o-1>pack").await).await;
    shop.publish(event(2, "o-1", &CardCharged { payment: "p".into() })).await;
    eventually("another one", async || barred("o-1>ship").await).await;
    shop.is_quiet().await;
    assert!(shop.letters(&shop.shipping_runtime, 0).await.is_empty());
    assert_eq!(shop.shipping.counter("shipped").await, 0);
    shop.close().await;
}

/// An event may come again late, under another id, when what its step needed is no longer there.
async fn g5_a_late_copy_of_an_event_undoes_nothing<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let status = async |key: &str| shop.shipping_runtime.status(key).await.unwrap().map(|saga| saga.summary.status);
    shop.publish(event(1, "o-1", &StockReserved { quantity: 3 })).await;
    shop.publish(event(2, "o-1", &CardCharged { payment: "p".into() })).await;
    shop.comes_to(&shop.shipping, "shipped", 1).await;
    shop.publish(event(3, "o-1", &StockRejected { reason: "it was broken".into() })).await;
    shop.comes_to(&shop.shipping, "packed", 0).await;
    shop.publish(event(4, "o-1", &CardCharged { payment: "p".into() })).await;
    // What is published behind it shows that the broker has delivered it.
    shop.publish(event(5, "o-2", &StockReserved { quantity: 3 })).await;
    shop.publish(event(6, "o-2", &CardCharged { payment: "p".into() })).await;
    shop.comes_to(&shop.shipping, "shipped", 2).await;
    shop.is_quiet().await;
    assert_eq!(status("o-1>ship").await, Some(Status::Completed));
    assert!(shop.letters(&shop.shipping_runtime, 0).await.is_empty());
    shop.close().await;
}

async fn g5_what_is_barred_is_not_done_and_what_was_done_stays<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let declined = CardDeclined { reason: "expired".into() };
    let (stock, charged) = (StockReserved { quantity: 3 }, CardCharged { payment: "p".into() });
    let status = async |key: &str| shop.shipping_runtime.status(key).await.unwrap().map(|saga| saga.summary.status);
    // Barred before it was asked for.
    shop.publish(event(1, "o-1", &declined)).await;
    eventually("a tombstone", async || status("o-1>ship").await).await;
    shop.publish(event(2, "o-1", &stock)).await;
    shop.publish(event(3, "o-1", &charged)).await;
    // Done before it was to be barred.
    shop.publish(event(4, "o-2", &stock)).await;
    shop.publish(event(5, "o-2", &charged)).await;
    shop.comes_to(&shop.shipping, "shipped", 1).await;
    shop.publish(event(6, "o-2", &declined)).await;
    shop.publish(event(7, "o-2", &declined)).await;
    shop.comes_to(&shop.shipping, "packed", 2).await;
    shop.is_quiet().await;
    assert_eq!(shop.shipping.counter("shipped").await, 1);
    assert_eq!(
        (status("o-1>ship").await, status("o-2>ship").await),
        (Some(Status::Compensated), Some(Status::Completed))
    );
    shop.close().await;
}

async fn what_the_services_report_is_one_timeline<S: Books>() {
    let shop = Shop::<S>::open(Meddling { copies: 1, ..Meddling::default() }).await;
    shop.place("o-1", 12, 3).await;
    shop.place("o-2", 12, 11).await;
    // What begins the saga is handled beside what ends it, and may be noted behind it.
    let whole = |timeline: &TimelineStatus| {
        timeline.status == Status::Completed && last_of(timeline).len() == 4 && timeline.entries.len() >= 6
    };
    let shipped = shop.timeline("o-1", whole).await;
    let done = ["payments/charge-card", "shipping/pack", "shipping/ship", "stock/reserve-stock"];
    assert_eq!(last_of(&shipped), done.map(|step| (step.to_owned(), Became::Done)).into());
    assert_eq!((shipped.key.as_str(), shipped.is_cut, shipped.entries.len()), ("o-1", false, 6), "{shipped:?}");
    assert!(shipped.ended_at.is_some());
    // What was done is undone, what was not is barred; the order in which that was told does not matter.
    let settled = |timeline: &TimelineStatus| {
        let last = last_of(timeline);
        timeline.status == Status::Compensated
            && is_taken_back(timeline, &["payments/charge-card"])
            && last.get("shipping/pack") == Some(&Became::Tombstoned)
            && last.get("stock/reserve-stock") == Some(&Became::Rejected)
    };
    let rejected = shop.timeline("o-2", settled).await;
    let reason = |entry: &TimelineEntry| match &entry.what {
        Happened::Step { step, reason, .. } if step == "stock/reserve-stock" => reason.clone(),
        _ => None,
    };
    assert_eq!(rejected.entries.iter().find_map(reason).as_deref(), Some("sold out"));
    shop.is_quiet_but_for(2).await;
    let inspector = shop.shipping_runtime.admin().query();
    let all = inspector.timelines(None, 10).await.unwrap();
    let mut keys: Vec<_> = all.iter().map(|timeline| timeline.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["o-1", "o-2"]);
    // What is still in the broker may be added to the second one meanwhile.
    let behind = inspector.timelines(Some(all[0].id), 10).await.unwrap();
    assert_eq!(behind.iter().map(|timeline| timeline.id).collect::<Vec<_>>(), [all[1].id]);
    assert!(inspector.timeline("o-3").await.unwrap().is_none());
    assert!(inspector.orphaned(10).await.unwrap().is_empty(), "a timeline waits for nothing");
    shop.close().await;
}

async fn g8_a_report_that_is_none_is_a_dead_letter<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let report = |number, service: &str, payload: &str| {
        let mut message = raw(number, "k", "charge-card", payload);
        message.kind = MessageKind::Fact;
        message.topic = service_topic(service);
        message.headers.saga_key = Some("o-1".into());
        message.headers.step = Some("charge-card".into());
        message.headers.reply_to = Some("payments".into());
        message
    };
    let good = r#"{"n":2,"b":"done"}"#;
    shop.publish(report(1, "payments", good)).await;
    assert_eq!(shop.letters(&shop.payments_runtime, 1).await[0].letter.reason, DeadLetterReason::NoSubscriber);
    let mut nameless = report(2, "shipping", good);
    nameless.headers.step = None;
    for (message, reason) in
        [(nameless, DeadLetterReason::Unreadable), (report(3, "shipping", r#"{"n":2}"#), DeadLetterReason::Undecodable)]
    {
        shop.publish(message).await;
        let letters = shop.letters(&shop.shipping_runtime, 1).await;
        assert_eq!(letters[0].letter.reason, reason, "{}", letters[0].letter.detail);
        shop.shipping_runtime.admin().dead_letters().discard(letters[0].letter.id, "no report").await.unwrap();
    }
    shop.publish(report(4, "shipping", good)).await;
    let timeline = shop.timeline("o-1", |_| true).await;
    assert_eq!(last_of(&timeline).into_keys().collect::<Vec<_>>(), ["payments/charge-card"]);
    shop.close().await;
}

saga_tests::on_every_pair!(
    events_alone_bring_an_order_to_its_end,
    g5_a_rejection_undoes_what_the_others_did,
    g2_duplicates_of_every_event_change_nothing,
    the_same_event_under_another_id_changes_nothing_and_another_content_is_a_dead_letter,
    events_that_come_out_of_order_wait_for_what_they_need,
    g5_an_undo_before_its_do_bars_it,
    g5_a_late_step_after_its_undo_is_not_done_again,
    a_step_for_each_event_is_done_once_for_each,
    g8_what_cannot_be_understood_is_a_dead_letter_with_its_reason,
    a_rejection_that_cannot_be_told_waits_for_a_person,
    g5_a_deadline_bars_the_pivot_and_has_the_rest_undone,
    a_deadline_of_what_was_done_in_time_does_nothing,
    a_step_is_barred_when_what_it_needs_was_taken_back,
    g5_a_late_copy_of_an_event_undoes_nothing,
    g5_what_is_barred_is_not_done_and_what_was_done_stays,
    what_the_services_report_is_one_timeline,
    g8_a_report_that_is_none_is_a_dead_letter,
);
