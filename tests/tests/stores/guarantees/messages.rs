//! G4 and G9: what leaves the service.

use std::time::Duration;

use saga_core::memory::MemoryStore;
use saga_core::store::Outbox;
use saga_core::transport::TransportErrorKind;
use saga_core::{Event, Saga, StepContext, StepError, saga_step};
use saga_tests::{Act, Booked, Faults, Fixture, Mail, Order, Shop, When, eventually, on_both_stores, within};

use crate::guarantees::{is_compensated, is_completed};

fn says(message: &saga_core::transport::Message) -> String {
    serde_json::from_slice::<Booked>(&message.payload).unwrap().by
}

/// G4: A message that was committed is sent at least once; one whose transaction did not commit is never sent.
async fn g4_what_was_committed_is_sent_and_nothing_else<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let mail = Mail::new();
    let runtime = fixture.builder().transport(mail.clone()).start().await.unwrap();
    mail.fail_next([TransportErrorKind::Unavailable, TransportErrorKind::Unknown, TransportErrorKind::Unavailable]);
    // Each of these attempts emits before it fails.
    fixture.world.plan("good:book", [Act::Fail, Act::Fail]);
    fixture.world.plan("none:book", [Act::Fail, Act::Reject]);
    fixture.world.plan("back:finish", [Act::Fail, Act::Reject]);
    assert!(is_completed(&fixture.run(&runtime, "good").await));
    assert!(is_compensated(&fixture.run(&runtime, "none").await));
    assert!(is_compensated(&fixture.run(&runtime, "back").await));
    let expected = ["back:book", "back:book:undo", "good:book", "good:finish"];
    let sent = eventually("every message", async || {
        let mut sent: Vec<String> = mail.accepted().iter().map(says).collect();
        sent.sort();
        sent.dedup();
        (sent.len() >= expected.len()).then_some(sent)
    });
    assert_eq!(sent.await, expected);
    eventually("an empty outbox", async || (fixture.store.depth().await.unwrap().rows == 0).then_some(())).await;
    assert!(mail.offered().iter().all(|message| expected.contains(&says(message).as_str())), "no other was offered");
}

/// G4: a process that dies before it has sent leaves it to the next one, under the same id.
async fn g4_what_a_dead_process_had_not_sent_is_sent<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let (broken, mail) = (Mail::new(), Mail::new());
    broken.fail_next(std::iter::repeat_n(TransportErrorKind::Unavailable, 10_000));
    let runtime = fixture.builder().transport(broken.clone()).start().await.unwrap();
    assert!(is_completed(&fixture.run(&runtime, "k").await));
    eventually("an offer", async || (!broken.offered().is_empty()).then_some(())).await;
    drop(runtime);
    let fixture = fixture.reopened().await;
    let _runtime = fixture.builder().transport(mail.clone()).start().await.unwrap();
    eventually("both messages", async || (mail.first_accepted("k").len() == 2).then_some(())).await;
    let ids = |mail: &Mail| mail.offered().iter().map(|message| message.id).min();
    assert!(ids(&broken).is_some_and(|id| mail.accepted().iter().any(|message| message.id == id)));
}

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Line(i64);

impl Event for Line {
    const NAME: &'static str = "line";
}

#[saga_step(no_compensation)]
async fn tell<S: Shop>(conn: &mut S::Conn, ctx: &StepContext, order: Order) -> Result<(), StepError> {
    S::add(conn, ctx.key(), 1)?;
    (0..order.amount).try_for_each(|line| ctx.emit(&Line(line)))
}

fn telling<S: Shop>() -> Saga<S, Order> {
    Saga::named("telling").input::<Order>().step::<tell>().build().unwrap()
}

fn lines(count: i64) -> Vec<String> {
    (0..count).map(|line| line.to_string()).collect()
}

/// G9: Messages with one ordering key are first accepted by the broker in commit order.
async fn g9_one_key_keeps_its_order_whatever_fails<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let (saga, mail) = (telling::<S>(), Mail::new());
    let builder = || fixture.builder().saga(&saga).transport(mail.clone());
    let replicas = [builder().start().await.unwrap(), builder().start().await.unwrap()];
    let kinds = [TransportErrorKind::Unavailable, TransportErrorKind::Unknown, TransportErrorKind::Closed];
    mail.fail_next(kinds.into_iter().cycle().take(30));
    for n in 0..8 {
        replicas[n % 2].start(&saga, format!("k{n}"), Order::of(20)).await.unwrap();
    }
    for n in 0..8 {
        let key = format!("k{n}");
        eventually("every line", async || (mail.first_accepted(&key).len() == 20).then_some(())).await;
        assert_eq!(mail.first_accepted(&key), lines(20), "{key}");
    }
}

/// G9: a message that the broker refuses holds up its own key, visibly, and no other; released, it goes first.
async fn g9_a_parked_key_holds_up_nobody_else<S: Shop>() {
    let fixture = Fixture::<S>::new().await;
    let (saga, mail) = (telling::<S>(), Mail::new());
    let runtime = fixture.builder().saga(&saga).transport(mail.clone()).start().await.unwrap();
    mail.refuse("parked");
    for key in ["parked", "a", "b"] {
        runtime.start(&saga, key, Order::of(5)).await.unwrap();
    }
    let waits_for_a_person = async || {
        let parked = fixture.store.parked(None, 10).await.unwrap().pop();
        parked.filter(|parked| parked.retry_at.is_none())
    };
    let parked = eventually("a parked key", waits_for_a_person).await;
    assert_eq!((parked.aggregate_id.as_str(), parked.attempts), ("parked", 5));
    assert_eq!(parked.error, "publish: as planned");
    for key in ["a", "b"] {
        eventually("the others", async || (mail.first_accepted(key).len() == 5).then_some(())).await;
        assert_eq!(mail.first_accepted(key), lines(5));
    }
    assert_eq!(
        mail.offered().iter().filter(|message| message.key == "parked").count(),
        5,
        "only its first was offered"
    );
    mail.accept("parked");
    assert!(fixture.store.release(parked.message).await.unwrap());
    eventually("the parked ones", async || (mail.first_accepted("parked").len() == 5).then_some(())).await;
    assert_eq!(mail.first_accepted("parked"), lines(5));
}

/// G9: a store that fails while messages are sent delays them by no lease.
#[tokio::test(start_paused = true)]
async fn g9_a_fault_of_the_store_keeps_no_lane() {
    within(async {
        let fixture = Fixture::<MemoryStore>::new().await;
        let (handle, faults) = Faults::on(&fixture.store);
        let (saga, mail) = (telling(), Mail::new());
        let hour = Duration::from_hours(1);
        let builder = fixture.builder_on(handle).saga(&saga).transport(mail.clone());
        let runtime = builder.settings(|settings| settings.lease_ttl = hour).start().await.unwrap();
        for operation in ["read_lane", "sent", "release_lanes"] {
            faults.one_fails(operation, 1, When::Before);
            runtime.start(&saga, operation, Order::of(3)).await.unwrap();
            let began = tokio::time::Instant::now();
            eventually("an empty outbox", async || {
                let is_sent = mail.first_accepted(operation).len() == 3;
                (is_sent && fixture.store.depth().await.unwrap().rows == 0).then_some(())
            })
            .await;
            assert!(faults.struck().contains(operation) && began.elapsed() < hour / 60, "{operation}");
            assert_eq!(mail.first_accepted(operation), lines(3));
        }
    })
    .await;
}

on_both_stores!(
    g4_what_was_committed_is_sent_and_nothing_else,
    g4_what_a_dead_process_had_not_sent_is_sent,
    g9_one_key_keeps_its_order_whatever_fails,
    g9_a_parked_key_holds_up_nobody_else,
);
