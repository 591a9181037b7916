//! How many commits a step of another service takes, and what becomes of a message that is sent from memory and lost.

use std::sync::atomic::Ordering;
use std::time::Duration;

use saga_core::Outcome;
use saga_core::engine::{CompensationCause, ControlOutcome, RestartOutcome};
use saga_core::key::Tenant;
use saga_core::store::{DeadLetterFilter, Headers, Message, MessageId, MessageKind, Timestamp};
use saga_core::transport::Transport as _;
use uuid::Uuid;

use crate::between_services::commit_fates::Commits;
use crate::between_services::services::Services;

#[tokio::test(start_paused = true)]
async fn a_step_of_another_service_takes_one_commit_there() {
    let services = Services::known().await;
    let count = || {
        let of = |commits: &Commits| ["receive", "record", "lease_lanes", "transact"].map(|name| commits.of(name));
        (of(&services.of_payments), of(&services.of_orders))
    };
    let (payments, orders) = count();
    for number in 0..10 {
        services.order(&format!("order-{number}")).await;
    }
    let (payments_after, orders_after) = count();
    let spent = |after: [u32; 4], before: [u32; 4]| [0, 1, 2, 3].map(|at| after[at] - before[at]);
    assert_eq!(spent(payments_after, payments), [0, 0, 0, 10], "receive, record, lease_lanes, transact of the host");
    assert_eq!(spent(orders_after, orders), [0, 0, 0, 20], "the same of who asks: the last step records the reply");
    assert_eq!(services.charged(), 12);
}

#[tokio::test(start_paused = true)]
async fn what_is_lost_on_its_way_from_memory_is_sent_by_the_relay() {
    let services = Services::known().await;
    services.fails.store(true, Ordering::Release);
    let cut = services.orders.start(&services.saga, "cut", 7).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(services.charged(), 2, "nothing gets through");
    services.fails.store(false, Ordering::Release);
    // Well before the command would be sent once more because no reply came.
    let outcome = tokio::time::timeout(Duration::from_secs(50), cut.outcome()).await;
    assert!(matches!(outcome, Ok(Ok(Outcome::Completed { .. }))), "{outcome:?}");
    assert_eq!(services.charged(), 3);
}

/// A host writes the dead letters of one batch in a few commits, so that a faulty sender does not slow the others down.
#[tokio::test(start_paused = true)]
async fn the_dead_letters_of_a_batch_share_their_commits() {
    const LETTERS: usize = 200;
    let services = Services::start().await;
    services.order("first").await;
    let before = services.of_payments.of("record");
    let messages = (1..=LETTERS).map(|number| Message {
        id: MessageId(Uuid::from_u128(number as u128)),
        kind: MessageKind::Command,
        tenant: Tenant::default(),
        topic: "service:payments".to_owned(),
        key: format!("order-{number}"),
        event_type: "no-such-step".to_owned(),
        payload: Vec::new(),
        committed_at: Timestamp(0),
        headers: Headers::default(),
    });
    let published = services.transport.publish(messages.collect()).await;
    assert!(published.iter().all(Result::is_ok), "{published:?}");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let filter = DeadLetterFilter { limit: 2 * LETTERS, ..DeadLetterFilter::default() };
    let letters = services.payments.admin().dead_letters().list(filter).await.unwrap();
    assert_eq!(letters.len(), LETTERS, "{:?}", letters.first());
    let commits = services.of_payments.of("record") - before;
    assert!(commits <= 8, "{commits} commits for {LETTERS} dead letters");
}

/// It may be what its receiver died of: only what is stored has its attempts counted.
#[tokio::test(start_paused = true)]
async fn what_was_delivered_before_is_stored_before_it_is_handled() {
    let services = Services::known().await;
    services.repeats.store(true, Ordering::Release);
    let stored = || [&services.of_payments, &services.of_orders].map(|commits| commits.of("receive"));
    let before = stored();
    services.order("third").await;
    assert_eq!(stored(), before.map(|count| count + 1), "the command at the host, the reply at who asked");
    assert_eq!(services.charged(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_takes_long_is_stored_meanwhile_and_done_once() {
    let services = Services::known().await;
    services.gate.0.send_replace(false);
    let before = services.of_payments.of("receive");
    let slow = services.orders.start(&services.saga, "slow", 7).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(services.of_payments.of("receive"), before + 1, "who sent it does not wait for it");
    assert_eq!(services.charged(), 2);
    services.gate.0.send_replace(true);
    let outcome = slow.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(services.charged(), 3);
}

/// G5: what is kept in memory of a saga that waits for a reply is what was stored when it was restarted, so that a cancel
/// meanwhile is not written over.
#[tokio::test(start_paused = true)]
async fn g5_a_restarted_saga_that_was_cancelled_does_not_go_on_with_its_reply() {
    let services = Services::start().await;
    services.order("first").await;
    services.gate.0.send_replace(false);
    let desk = services.orders.admin();
    assert_eq!(
        desk.control("first").restart("charge-card", "again", "it was lost").await.unwrap(),
        RestartOutcome::Begun
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(services.orders.cancel("again", "it was found").await.unwrap(), ControlOutcome::Applied);
    services.gate.0.send_replace(true);
    let outcome = services.orders.attach("again").await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Compensated { cause: CompensationCause::Cancelled, .. }), "{outcome:?}");
    assert_eq!(services.confirmed(), 1);
}
