//! What holds across services, whatever their stores are and whatever carries their messages.

use std::time::Duration;

use saga_core::store::{
    Answer, DeadLetterFilter, DeadLetterReason, DeadLetterState, Expiry, Headers, MessageId, MessageKind,
    RecordedOutcome, Timestamp,
};
use saga_core::transport::{Message, service_topic};
use saga_core::{Key, Outcome, RuntimeError, Tenant};
use saga_tests::{Books, eventually};
use uuid::Uuid;

use super::meddler::Meddling;
use super::shop::{Order, Shop, under_lock};

pub(crate) fn id(number: u128) -> MessageId {
    MessageId(Uuid::from_u128(number))
}

/// A message from somewhere else, which follows the conventions.
pub(crate) fn message(kind: MessageKind, number: u128, key: &str, payload: &str) -> Message {
    Message {
        id: id(number),
        kind,
        tenant: Tenant::default(),
        topic: service_topic("payments"),
        key: number.to_string(),
        event_type: "charge-card".into(),
        payload: payload.into(),
        // However far the clocks of two services are apart, what comes from the future is young.
        committed_at: Timestamp(i64::MAX),
        headers: Headers {
            saga_key: Some(key.into()),
            step: Some("charge-card".into()),
            service: Some("payments".into()),
            reply_to: Some("elsewhere".into()),
            ..Headers::default()
        },
    }
}

async fn steps_of_other_services_are_done_in_their_databases<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let running = shop.order("o-1", Order { cents: 12, heavy: false }).await;
    assert_eq!(running.outcome().await.unwrap().to_string(), "completed");
    assert_eq!(shop.charged().await, 12);
    assert_eq!(shop.shipped().await, 1);
    assert_eq!(shop.orders.counter("o-1").await, 1);
    let record = shop.payments.records_of(&Tenant::default(), &Key::from_stored("o-1>charge-card").unwrap()).await;
    assert_eq!(record.unwrap()[0].outcome, RecordedOutcome::Done);
    // The key that an outside call gets is that of the saga that asks, not of the row here.
    assert_eq!(shop.payments.counter("o-1:charge-card").await, 1);
    shop.is_quiet().await;
    shop.close().await;
}

/// S-LOCK-2: another service can refuse a call of a saga that has lost its lock, since it has the token.
async fn a_command_carries_the_semantic_locks_of_its_saga<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let mut running = Vec::new();
    for number in 0..4 {
        let order = Order { cents: 12, heavy: number == 2 };
        running.push(shop.orders_runtime.start(&under_lock(), format!("o-{number}"), order).await.unwrap());
    }
    let mut outcomes = Vec::new();
    for running in running {
        outcomes.push(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    }
    assert_eq!(outcomes, [true, true, false, true]);
    assert_eq!(shop.shipped().await, 3);
    shop.is_quiet().await;
    shop.close().await;
}

async fn g5_a_rejection_elsewhere_undoes_what_others_did<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let running = shop.order("o-1", Order { cents: 12, heavy: true }).await;
    let Outcome::Compensated { failed_step, reason, .. } = running.outcome().await.unwrap() else { panic!() };
    assert_eq!((failed_step.as_str(), reason.message()), ("ship-order", "too heavy"));
    assert_eq!((shop.charged().await, shop.shipped().await), (0, 0));
    assert_eq!(shop.refunds().await, 1);
    shop.is_quiet().await;
    shop.close().await;
}

/// Whichever replica is told the answer, and decides about the undo.
async fn g5_an_undo_brings_what_the_mapping_gave_its_step<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let mut running = Vec::new();
    for number in 0..16 {
        running.push(shop.order(&format!("o-{number}"), Order { cents: number, heavy: true }).await);
    }
    for running in running {
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Compensated { .. }));
    }
    assert_eq!((shop.charged().await, shop.refunds().await), (0, 16));
    shop.is_quiet().await;
    shop.close().await;
}

async fn g2_duplicates_of_every_message_change_nothing<S: Books>() {
    let shop = Shop::<S>::open(Meddling { copies: 3, ..Meddling::default() }).await;
    let done = shop.order("o-1", Order { cents: 12, heavy: false }).await;
    let undone = shop.order("o-2", Order { cents: 30, heavy: true }).await;
    assert_eq!(done.outcome().await.unwrap().to_string(), "completed");
    assert!(matches!(undone.outcome().await.unwrap(), Outcome::Compensated { .. }));
    assert_eq!((shop.charged().await, shop.shipped().await), (12, 1));
    assert_eq!(shop.refunds().await, 1);
    shop.is_quiet().await;
    shop.close().await;
}

async fn lost_messages_are_sent_again_and_answered_from_the_record<S: Books>() {
    let lost = vec![MessageKind::Command, MessageKind::Reply, MessageKind::Undo, MessageKind::Reply];
    let shop = Shop::<S>::open(Meddling { lost, ..Meddling::default() }).await;
    let running = shop.order("o-1", Order { cents: 12, heavy: true }).await;
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Compensated { .. }));
    assert_eq!(shop.transport.lost_so_far(), 4, "the losses were met");
    assert_eq!((shop.charged().await, shop.shipped().await), (0, 0));
    assert_eq!((shop.charges().await, shop.refunds().await), (1, 1));
    shop.is_quiet().await;
    shop.close().await;
}

async fn g5_an_undo_before_its_do_bars_it<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let mut replies = shop.listen("elsewhere").await;
    let mut undo = message(MessageKind::Undo, 2, "o-1", r#"{"input":{"cents":12,"heavy":false}}"#);
    undo.headers.answer = Some(Answer::Unknown);
    shop.publish(undo.clone()).await;
    let reply = replies.next().await;
    assert_eq!((reply.headers.answer, reply.headers.correlation), (Some(Answer::Undone), Some(id(2))));
    let late = message(MessageKind::Command, 1, "o-1", r#"{"cents":12,"heavy":false}"#);
    shop.publish(late).await;
    let reply = replies.next().await;
    assert_eq!((reply.headers.answer, reply.headers.correlation), (Some(Answer::Cancelled), Some(id(1))));
    shop.publish(Message { id: id(3), ..undo }).await;
    assert_eq!(replies.next().await.headers.answer, Some(Answer::Undone));
    assert_eq!((shop.charges().await, shop.refunds().await), (0, 0));
    shop.is_quiet().await;
    shop.close().await;
}

async fn an_undo_of_what_is_known_to_be_done_needs_no_record<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let mut replies = shop.listen("elsewhere").await;
    let content = r#"{"input":{"cents":12,"heavy":false},"output":"payment of 12"}"#;
    let mut undo = message(MessageKind::Undo, 2, "o-1", content);
    undo.headers.answer = Some(Answer::Done);
    shop.publish(undo).await;
    assert_eq!(replies.next().await.headers.answer, Some(Answer::Undone));
    assert_eq!((shop.charges().await, shop.refunds().await), (0, 1));
    shop.publish(message(MessageKind::Command, 1, "o-1", r#"{"cents":12,"heavy":false}"#)).await;
    assert_eq!(replies.next().await.headers.answer, Some(Answer::Cancelled));
    assert_eq!(shop.charges().await, 0);
    shop.close().await;
}

async fn g8_what_cannot_be_understood_is_a_dead_letter_with_its_reason<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let good = message(MessageKind::Command, 0, "o-1", r#"{"cents":12,"heavy":false}"#);
    let with = |number, change: fn(&mut Message)| {
        let mut message = Message { id: id(number), ..good.clone() };
        change(&mut message);
        message
    };
    let bad = [
        (with(1, |message| message.headers.saga_key = None), DeadLetterReason::Unreadable),
        (with(2, |message| message.headers.saga_key = Some("a key".into())), DeadLetterReason::Unreadable),
        (with(3, |message| message.headers.step = Some("launder".into())), DeadLetterReason::UnknownStep),
        (with(4, |message| message.headers.reply_to = None), DeadLetterReason::Unreadable),
        (with(5, |message| message.payload = b"[]".to_vec()), DeadLetterReason::Undecodable),
        (with(6, |message| message.payload = vec![b' '; 1 << 19]), DeadLetterReason::TooLarge),
        (with(7, |message| message.tenant = Tenant::new("other").unwrap()), DeadLetterReason::OtherTenant),
        (with(8, |message| message.committed_at = Timestamp(0)), DeadLetterReason::TooOld),
        (with(9, |message| message.kind = MessageKind::Event), DeadLetterReason::NoSubscriber),
    ];
    for (message, reason) in bad {
        let (tenant, sent) = (message.tenant.clone(), message.id);
        shop.publish(message.clone()).await;
        shop.publish(message).await;
        let letters = shop.letters(&tenant, 2).await;
        let letter = letters.last().unwrap();
        assert_eq!((letter.letter.reason, letter.state), (reason, DeadLetterState::Open), "{}", letter.letter.detail);
        assert!(letter.letter.message.as_ref().is_none_or(|kept| kept.id == sent));
        let desk = shop.payments_runtime.tenant(tenant).admin().dead_letters();
        desk.discard(letter.letter.id, "not ours").await.unwrap();
        desk.discard(letter.letter.id, "not ours").await.unwrap();
    }
    assert_eq!(shop.charges().await, 0);
    // Nobody was held up.
    let running = shop.order("o-1", Order { cents: 12, heavy: false }).await;
    assert_eq!(running.outcome().await.unwrap().to_string(), "completed");
    shop.close().await;
}

async fn a_command_that_was_refused_goes_on_when_its_letter_is_replayed<S: Books>() {
    let shop = Shop::<S>::open_without_payments(Meddling::default()).await;
    let running = shop.order("o-1", Order { cents: 12, heavy: false }).await;
    let Outcome::Stuck { step, reason, .. } = running.outcome().await.unwrap() else { panic!() };
    assert_eq!(step, "charge-card");
    assert!(reason.contains("unknown-step"), "{reason}");
    let letters = shop.letters(&Tenant::default(), 1).await;
    // A version that hosts the step takes over.
    let shop = shop.with_payments().await;
    let desk = shop.payments_runtime.admin().dead_letters();
    assert_eq!(desk.show(letters[0].letter.id).await.unwrap().unwrap().letter.reason, DeadLetterReason::UnknownStep);
    assert!(desk.replay(letters[0].letter.id, " ").await.is_err(), "a replay needs a reason");
    desk.replay(letters[0].letter.id, "the step is hosted now").await.unwrap();
    desk.replay(letters[0].letter.id, "the step is hosted now").await.unwrap();
    assert_eq!(running.closed().await.unwrap().to_string(), "completed");
    assert_eq!((shop.charged().await, shop.charges().await), (12, 1));
    assert!(desk.discard(letters[0].letter.id, "too late").await.is_err());
    assert!(desk.list(DeadLetterFilter::default()).await.unwrap().is_empty());
    shop.close().await;
}

async fn a_replay_of_what_was_done_doubles_nothing<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    let running = shop.order("o-1", Order { cents: 12, heavy: false }).await;
    running.outcome().await.unwrap();
    // The same step key with another content is refused, and replaying it changes nothing.
    let other = message(MessageKind::Command, 9, "o-1", r#"{"cents":13,"heavy":false}"#);
    shop.publish(other).await;
    let letters = shop.letters(&Tenant::default(), 1).await;
    assert_eq!(letters[0].letter.reason, DeadLetterReason::PayloadMismatch);
    shop.payments_runtime.admin().dead_letters().replay(letters[0].letter.id, "once more").await.unwrap();
    let again = shop.letters(&Tenant::default(), 1).await;
    assert_ne!(again[0].letter.id, letters[0].letter.id, "it is a letter of its own");
    assert_eq!(shop.charged().await, 12);
    shop.close().await;
}

async fn forged_and_late_replies_change_nothing<S: Books>() {
    let shop = Shop::<S>::open(Meddling { lost: vec![MessageKind::Reply], ..Meddling::default() }).await;
    let running = shop.order("o-1", Order { cents: 2_000, heavy: false }).await;
    let mut forged = message(MessageKind::Reply, 7, "o-1", "\"a payment\"");
    forged.topic = service_topic("orders");
    forged.headers.answer = Some(Answer::Done);
    forged.headers.correlation = Some(id(8));
    shop.publish(forged.clone()).await;
    let Outcome::Compensated { failed_step, reason, .. } = running.outcome().await.unwrap() else { panic!() };
    assert_eq!((failed_step.as_str(), reason.message()), ("charge-card", "too expensive"));
    shop.publish(Message { id: id(9), ..forged }).await;
    shop.is_quiet().await;
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Compensated { .. }));
    shop.close().await;
}

async fn a_host_that_needs_a_person_says_so_and_goes_on<S: Books>() {
    let shop = Shop::<S>::open(Meddling::default()).await;
    shop.payments.put("broken", 1).await;
    let running = shop.order("o-1", Order { cents: 12, heavy: true }).await;
    let Outcome::Stuck { step, reason, .. } = running.outcome().await.unwrap() else { panic!() };
    assert_eq!(step, "charge-card");
    assert!(reason.contains("`payments` says"), "{reason}");
    shop.payments.put("broken", -1).await;
    let key = "o-1>charge-card";
    // An undo that is sent again changes the hosted saga as well.
    let retry = async || {
        let hosted = shop.payments_runtime.status(key).await.unwrap().unwrap();
        let control = shop.payments_runtime.admin().control(key).at_revision(hosted.revision);
        match control.retry("mended").await {
            Err(RuntimeError::Moved { .. }) => None,
            Err(error) => panic!("{error}"),
            Ok(()) => Some(()),
        }
    };
    eventually("a retry", retry).await;
    assert!(matches!(running.closed().await.unwrap(), Outcome::Compensated { .. }));
    assert_eq!(shop.charged().await, 0);
    shop.is_quiet().await;
    shop.close().await;
}

async fn what_waits_to_be_sent_is_counted_and_parked_keys_can_be_discarded<S: Books>() {
    let refused = Meddling { refuses: vec![MessageKind::Command], ..Meddling::default() };
    let shop = Shop::<S>::open_patient(refused).await;
    let _running = shop.order("o-1", Order { cents: 12, heavy: false }).await;
    let outbox = shop.orders_runtime.admin().outbox();
    let waits_for_a_person = async || {
        let parked = outbox.parked().await.unwrap().pop();
        parked.filter(|parked| parked.retry_at.is_none())
    };
    let parked = eventually("a parked key", waits_for_a_person).await;
    assert_eq!(parked.error, "publish: the test refuses it");
    let depth = outbox.depth().await.unwrap();
    assert_eq!((depth.rows, depth.parked), (1, 1));
    assert!(depth.oldest_age.is_some());
    let other = shop.orders_runtime.tenant(Tenant::new("other").unwrap()).admin().outbox();
    assert!(!other.discard(parked.message, "not mine").await.unwrap());
    assert!(outbox.discard(parked.message, "").await.is_err(), "it needs a reason");
    assert!(outbox.discard(parked.message, "the queue is gone").await.unwrap());
    assert!(!outbox.discard(parked.message, "the queue is gone").await.unwrap());
    assert_eq!(outbox.depth().await.unwrap().parked, 0);
    // What was discarded, and why, is kept.
    let filter = DeadLetterFilter { state: Some(DeadLetterState::Discarded), ..DeadLetterFilter::default() };
    let letters = shop.orders_runtime.admin().dead_letters().list(filter).await.unwrap();
    let [letter] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!(
        (letter.letter.reason, letter.note.as_deref()),
        (DeadLetterReason::Unsendable, Some("the queue is gone"))
    );
    assert_eq!((letter.letter.attempts, letter.letter.detail.as_str()), (5, "publish: the test refuses it"));
    assert_eq!(letter.letter.payload, br#"{"cents":12,"heavy":false}"#);
    assert!(letter.letter.headers.contains(&("message-id".into(), parked.message.to_string())), "{letter:?}");
    assert!(shop.orders_runtime.admin().dead_letters().replay(letter.letter.id, "after all").await.is_err());
    shop.close().await;
}

/// G13: what a host did is not kept for ever because a message was lost.
async fn g13_a_host_asks_for_a_closed_that_was_lost<S: Books>() {
    let lost = Meddling { lost: vec![MessageKind::Closed; 4], ..Meddling::default() };
    let shop = Shop::<S>::open_asking(lost).await;
    let running = shop.order("o-1", Order { cents: 12, heavy: false }).await;
    assert_eq!(running.outcome().await.unwrap().to_string(), "completed");
    let key = Key::from_stored("o-1").unwrap();
    let hosts = vec!["payments".to_owned(), "shipping".to_owned()];
    let tombstone = Expiry { tombstone_in: Duration::ZERO, hosts, ..Expiry::deleted_in(Duration::from_hours(1)) };
    assert!(shop.orders.set_expiry(&Tenant::default(), &key, Some(&tombstone)).await.unwrap());
    for host in ["payments", "shipping"] {
        eventually("an answer", async || shop.transport.has_answered(host).then_some(())).await;
    }
    assert_eq!(shop.transport.lost_so_far(), 4);
    assert!(shop.orders.saga(&Tenant::default(), &key).await.unwrap().unwrap().is_tombstone());
    shop.close().await;
}

/// G13: of a service that is gone for good no questions pile up in the outbox, and the others are asked as before.
async fn g13_a_service_that_is_gone_stops_no_question_to_another<S: Books>() {
    let shop = Shop::<S>::open_asking(Meddling::default()).await;
    let outbox = shop.payments_runtime.admin().outbox();
    // No process receives for the service `elsewhere`.
    shop.publish(message(MessageKind::Command, 1, "g-1", r#"{"cents":12,"heavy":false}"#)).await;
    let unsent = async || outbox.parked().await.unwrap().len();
    eventually("a reply and a question that cannot be sent", async || (unsent().await == 2).then_some(())).await;
    let running = shop.order("o-1", Order { cents: 12, heavy: false }).await;
    assert_eq!(running.outcome().await.unwrap().to_string(), "completed");
    eventually("a question", async || shop.transport.has_asked("orders").then_some(())).await;
    // Five walks: on a slow machine the second may come before the first question is old, and ask once more.
    let walked = Some(Duration::from_secs(10));
    eventually("five walks", async || (outbox.depth().await.unwrap().oldest_age >= walked).then_some(())).await;
    eventually("no more than these", async || (outbox.depth().await.unwrap().rows <= 3).then_some(())).await;
    assert_eq!(unsent().await, 2);
    shop.close().await;
}

saga_tests::on_every_pair!(
    steps_of_other_services_are_done_in_their_databases,
    a_command_carries_the_semantic_locks_of_its_saga,
    g5_a_rejection_elsewhere_undoes_what_others_did,
    g5_an_undo_brings_what_the_mapping_gave_its_step,
    g2_duplicates_of_every_message_change_nothing,
    lost_messages_are_sent_again_and_answered_from_the_record,
    g5_an_undo_before_its_do_bars_it,
    an_undo_of_what_is_known_to_be_done_needs_no_record,
    g8_what_cannot_be_understood_is_a_dead_letter_with_its_reason,
    a_command_that_was_refused_goes_on_when_its_letter_is_replayed,
    a_replay_of_what_was_done_doubles_nothing,
    forged_and_late_replies_change_nothing,
    a_host_that_needs_a_person_says_so_and_goes_on,
    what_waits_to_be_sent_is_counted_and_parked_keys_can_be_discarded,
    g13_a_host_asks_for_a_closed_that_was_lost,
    g13_a_service_that_is_gone_stops_no_question_to_another,
);
