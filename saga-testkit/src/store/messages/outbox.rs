//! What waits in the outbox, and the keys that are parked.

use std::time::Duration;

use saga_core::store::{DeadLetterState, DeadLetters as _, MessageId, NewParked, Outbox, OutboxRow};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, tenant};
use crate::harness::StoreHarness;

fn positions(rows: &[OutboxRow], key: &str) -> Vec<u64> {
    rows.iter().filter(|row| row.aggregate_id == key).map(|row| row.position).collect()
}

/// Two ordering keys of one lane.
fn neighbours(begun: &Begun) -> (String, String) {
    let first = String::from("o-0");
    let lane = begun.message(&first, 1).lane;
    let same = |number: u32| format!("o-{number}");
    let second = (1..10_000).map(same).find(|key| begun.message(key, 1).lane == lane);
    (first, second.unwrap_or_default())
}

pub(crate) async fn a_message_is_read_as_it_was_written<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start_of(&tenant("acme"), "k-1").await?;
    let mut message = begun.message("o-1", 7);
    message.payload = vec![0, 255, 10, 13];
    message.event_type = "Größe geändert".into();
    let sent = saga_core::store::Changes { messages: vec![message.clone()], ..begun.done(1) };
    bench.apply(sent).await?;
    let rows = bench.outbox().await?;
    ensure_eq!(rows.len(), 1, "the messages");
    let row = &rows[0];
    ensure_eq!((row.id, &row.tenant, row.position), (message.id, &message.tenant, 7), "which message it is");
    ensure_eq!((&row.aggregate_type, &row.aggregate_id), (&message.aggregate_type, &message.aggregate_id), "its key");
    ensure_eq!((&row.event_type, &row.payload), (&message.event_type, &message.payload), "its content");
    ensure_eq!(row.committed_at, bench.saga(&begun).await?.advanced_at, "when it was committed");
    Ok(())
}

pub(crate) async fn a_key_is_read_by_position<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let (one, two) = neighbours(&begun);
    bench.send(&begun, &one, &[12, 9]).await?;
    bench.send(&begun, &two, &[2, 1]).await?;
    bench.send(&begun, &one, &[10, 11]).await?;
    let rows = bench.outbox().await?;
    ensure_eq!(positions(&rows, &one), [9, 10, 11, 12], "the order of one key");
    ensure_eq!(positions(&rows, &two), [1, 2], "the order of the other key");
    Ok(())
}

pub(crate) async fn a_limited_read_takes_the_first_of_a_key<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.send(&begun, "o-1", &[3, 1, 2]).await?;
    let lanes = bench.store.lease_lanes(bench.lease().await?, 1).await?;
    let rows = bench.store.read_lane(lanes[0], 2).await?;
    ensure_eq!(positions(&rows, "o-1"), [1, 2], "the first two positions");
    Ok(())
}

pub(crate) async fn many_lanes_are_read_like_each<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    const KEYS: usize = 12;
    let begun = bench.start("k-1").await?;
    let keys: Vec<String> = (0..KEYS).map(|number| format!("o-{number}")).collect();
    for key in &keys {
        bench.send(&begun, key, &[2, 1]).await?;
    }
    let lanes = bench.store.lease_lanes(bench.lease().await?, usize::from(u8::MAX)).await?;
    ensure!(lanes.len() > 1, "all keys lie in one lane");
    let rows = bench.store.read_lanes(&lanes, 1000).await?;
    ensure_eq!(rows.len(), 2 * KEYS, "what waits in all lanes");
    for key in &keys {
        ensure_eq!(positions(&rows, key), [1, 2], "the order of a key");
    }
    let few = bench.store.read_lanes(&lanes, KEYS).await?;
    ensure_eq!(few.len(), KEYS, "a limited read");
    ensure!(keys.iter().all(|key| [1, 2].starts_with(&positions(&few, key))), "a limited read leaves out a first row");
    let (lost, held) = (lanes[0], &lanes[1..]);
    bench.store.release_lanes(&[lost]).await?;
    let again = bench.store.lease_lanes(bench.lease().await?, 1).await?;
    ensure_eq!(again.len(), 1, "the lane that is free");
    let in_held = bench.store.read_lanes(held, 1000).await?.len();
    ensure_eq!(bench.store.read_lanes(&lanes, 1000).await?.len(), in_held, "what is read beside a lane that was lost");
    ensure!(in_held < 2 * KEYS, "the lane that was lost holds nothing");
    Ok(())
}

pub(crate) async fn what_was_sent_is_deleted<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let ids = bench.send(&begun, "o-1", &[1, 2, 3]).await?;
    bench.store.sent(&[ids[0], ids[1]]).await?;
    // A message may be confirmed twice; the second time does nothing.
    bench.store.sent(&[ids[0]]).await?;
    let bench = bench.reopen().await?;
    ensure_eq!(positions(&bench.outbox().await?, "o-1"), [3], "what is left");
    ensure_eq!(bench.store.depth().await?.rows, 1, "how many rows are left");
    Ok(())
}

pub(crate) async fn a_message_waits_until_it_is_sent<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    bench.send(&begun, "o-1", &[1]).await?;
    let first = bench.outbox().await?;
    let bench = bench.reopen().await?;
    ensure_eq!(bench.outbox().await?, first, "a message that was read and not sent");
    Ok(())
}

fn refused(message: MessageId, attempts: u32, error: &str) -> NewParked {
    NewParked { message, attempts, error: error.to_owned(), retry_in: None }
}

/// Two keys of one lane with two messages each; the first key is parked.
async fn parked<H: StoreHarness>(bench: &Bench<H>) -> Result<(String, String, Vec<MessageId>), Failed> {
    let begun = bench.start("k-1").await?;
    let (one, two) = neighbours(&begun);
    let ids = bench.send(&begun, &one, &[1, 2]).await?;
    bench.send(&begun, &two, &[1, 2]).await?;
    bench.store.park(&[refused(ids[0], 5, "too large")]).await?;
    Ok((one, two, ids))
}

pub(crate) async fn a_parked_key_holds_up_itself_only<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (one, two, ids) = parked(&bench).await?;
    let bench = bench.reopen().await?;
    let rows = bench.outbox().await?;
    ensure_eq!(positions(&rows, &one), Vec::<u64>::new(), "what is read of the parked key");
    ensure_eq!(positions(&rows, &two), [1, 2], "what is read of the other key");
    let parked = bench.store.parked(None, 10).await?;
    ensure_eq!(parked.len(), 1, "the parked keys");
    let key = &parked[0];
    ensure_eq!((&key.aggregate_id, key.message), (&one, ids[0]), "the parked key");
    ensure_eq!((key.attempts, key.error.as_str()), (5, "too large"), "why it is parked");
    ensure_eq!(key.retry_at, None, "when it is tried again");
    let depth = bench.store.depth().await?;
    ensure_eq!((depth.rows, depth.parked), (4, 1), "the depth");
    Ok(())
}

pub(crate) async fn a_released_key_is_read_again<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (one, _, ids) = parked(&bench).await?;
    ensure!(!bench.store.release(ids[1]).await?, "a message that is not the parked one was released");
    ensure!(bench.store.release(ids[0]).await?, "the parked message was not released");
    ensure!(!bench.store.release(ids[0]).await?, "a key that is not parked was released");
    ensure_eq!(positions(&bench.outbox().await?, &one), [1, 2], "what is read of the released key");
    ensure_eq!(bench.store.parked(None, 10).await?, [], "the parked keys");
    Ok(())
}

pub(crate) async fn a_key_that_is_parked_for_a_time_is_read_after_it<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let (one, two) = neighbours(&begun);
    let ids = bench.send(&begun, &one, &[1, 2]).await?;
    let others = bench.send(&begun, &two, &[1]).await?;
    let pause = bench.harness.timing().lease;
    let soon = NewParked { retry_in: Some(pause), ..refused(ids[0], 1, "no subscriber") };
    let late = NewParked { retry_in: Some(crate::fixture::HOUR), ..refused(others[0], 1, "no subscriber") };
    bench.store.park(&[soon, late]).await?;
    bench.pass(pause).await;
    let rows = bench.outbox().await?;
    ensure_eq!(positions(&rows, &one), [1, 2], "what is read of the key whose time has come");
    ensure_eq!(rows.iter().map(|row| row.attempts).collect::<Vec<_>>(), [1, 0], "the attempts that are written down");
    ensure_eq!(positions(&rows, &two), Vec::<u64>::new(), "what is read of the key whose time has not come");
    let parked = bench.store.parked(None, 10).await?;
    ensure_eq!(parked.len(), 2, "the parked keys, while nothing was sent");
    ensure!(parked.iter().all(|key| key.retry_at > Some(key.since)), "no time is set: {parked:?}");
    let again = NewParked { retry_in: Some(crate::fixture::HOUR), ..refused(ids[0], 2, "still none") };
    bench.store.park(&[again]).await?;
    ensure_eq!(positions(&bench.outbox().await?, &one), Vec::<u64>::new(), "what is read of a key parked again");
    let parked = bench.store.parked(None, 10).await?;
    let key = parked.iter().find(|key| key.message == ids[0]);
    let said = key.map(|key| (key.attempts, key.error.as_str()));
    ensure_eq!(said, Some((2, "still none")), "what the last attempt said");
    bench.store.sent(&[ids[0]]).await?;
    ensure_eq!(bench.store.parked(None, 10).await?.len(), 1, "the parked keys, when one message was sent after all");
    ensure_eq!(positions(&bench.outbox().await?, &one), [2], "what is left of the key");
    Ok(())
}

pub(crate) async fn a_discarded_message_lets_its_key_go_on<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (one, _, ids) = parked(&bench).await?;
    let letter = super::letters::letter(&bench, 1).await?;
    let second = super::letters::letter(&bench, 2).await?;
    let mut discarded = Vec::new();
    for (message, letter) in [(ids[1], &second), (ids[0], &letter), (ids[0], &second)] {
        discarded.push(bench.store.discard(message, letter, "not needed").await?);
    }
    ensure_eq!(discarded, [false, true, false], "whether another, the parked one, and the same again were discarded");
    let kept = bench.store.dead_letter(&letter.tenant, letter.id).await?;
    let Some(kept) = kept else { return Err(Failed("a message was discarded without a letter".into())) };
    ensure_eq!(
        (kept.state, kept.note.as_deref()),
        (DeadLetterState::Discarded, Some("not needed")),
        "what became of it"
    );
    ensure!(kept.decided_at.is_some(), "a decision has no time");
    ensure_eq!(kept.letter.payload, b"1", "the content that was discarded");
    ensure_eq!(bench.store.dead_letter(&second.tenant, second.id).await?, None, "a letter of what was not discarded");
    ensure_eq!(positions(&bench.outbox().await?, &one), [2], "what is left of the key");
    ensure_eq!(bench.store.parked(None, 10).await?, [], "the parked keys");
    Ok(())
}

pub(crate) async fn a_lane_with_parked_keys_only_is_not_leased<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let ids = bench.send(&begun, "o-1", &[1, 2]).await?;
    bench.store.park(&[refused(ids[0], 1, "refused")]).await?;
    let lanes = bench.store.lease_lanes(bench.lease().await?, 10).await?;
    ensure_eq!(lanes, [], "the lanes that have something to send");
    bench.store.release(ids[0]).await?;
    let lanes = bench.store.lease_lanes(bench.lease().await?, 10).await?;
    ensure_eq!(lanes.len(), 1, "the lanes when the key goes on");
    Ok(())
}

pub(crate) async fn one_key_of_two_tenants_is_parked_apart<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let acme = bench.start_of(&tenant("acme"), "k-1").await?;
    let other = bench.start_of(&tenant("umbrella"), "k-1").await?;
    let ids = bench.send(&acme, "o-1", &[1]).await?;
    bench.send(&other, "o-1", &[1]).await?;
    bench.store.park(&[refused(ids[0], 1, "refused")]).await?;
    let rows = bench.outbox().await?;
    ensure_eq!(rows.len(), 1, "the messages of the tenant whose key is not parked");
    ensure_eq!(rows[0].tenant, other.tenant, "whose message it is");
    let parked = bench.store.parked(None, 10).await?;
    ensure_eq!((parked.len(), &parked[0].tenant), (1, &acme.tenant), "the parked key's tenant");
    ensure_eq!(bench.store.parked(Some(&acme.tenant), 10).await?, parked, "the parked keys of the tenant");
    ensure_eq!(bench.store.parked(Some(&other.tenant), 10).await?, [], "the parked keys of the other tenant");
    Ok(())
}

pub(crate) async fn the_depth_tells_the_age_of_the_oldest<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let depth = bench.store.depth().await?;
    ensure_eq!((depth.rows, depth.oldest_age, depth.parked), (0, None::<Duration>, 0), "the depth of an empty outbox");
    let begun = bench.start("k-1").await?;
    bench.send(&begun, "o-1", &[1]).await?;
    let pause = bench.harness.timing().lease;
    bench.pass(pause).await;
    bench.send(&begun, "o-2", &[1]).await?;
    let depth = bench.store.depth().await?;
    ensure_eq!(depth.rows, 2, "the rows");
    ensure!(depth.oldest_age >= Some(pause), "the oldest has waited {pause:?}, not {:?}", depth.oldest_age);
    Ok(())
}

pub(crate) async fn a_message_is_read_when_it_is_due<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let (one, two) = neighbours(&begun);
    let pause = bench.harness.timing().lease;
    let due_in = |key: &str, due_in| saga_core::store::NewMessage { due_in, ..begun.message(key, 1) };
    let (soon, late) = (due_in(&one, pause), due_in(&two, crate::fixture::HOUR));
    let ids = [soon.id, late.id];
    bench.apply(saga_core::store::Changes { messages: vec![late], ..begun.done(1) }).await?;
    let lanes = bench.store.lease_lanes(bench.lease().await?, 64).await?;
    ensure_eq!(lanes.len(), 0, "the lanes whose messages are due later");
    ensure_eq!(bench.store.depth().await?.rows, 1, "the depth, with what is due later");
    bench.send(&begun, &two, &[2]).await?;
    ensure_eq!(positions(&bench.outbox().await?, &two), [2], "what is read while another one of its key is due later");
    bench.apply(saga_core::store::Changes { messages: vec![soon], ..Default::default() }).await?;
    bench.pass(pause).await;
    let rows = bench.outbox().await?;
    ensure_eq!(positions(&rows, &one), [1], "what is read when its time has come");
    ensure_eq!(positions(&rows, &two), [2], "what is read before its time has come");
    bench.store.sent(&ids).await?;
    ensure_eq!(bench.store.depth().await?.rows, 1, "the depth, when what is due later was sent as well");
    Ok(())
}

pub(crate) async fn a_key_waits_until_its_message_is_sent<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let other = bench.start_of(&tenant("acme"), "k-1").await?;
    let (one, two) = neighbours(&begun);
    let late = saga_core::store::NewMessage { due_in: crate::fixture::HOUR, ..begun.message("late", 1) };
    let changes = saga_core::store::Changes { messages: vec![late], ..Default::default() };
    bench.apply(changes).await?;
    let ids = bench.send(&begun, &one, &[1]).await?;
    let asked = [
        begun.message(&two, 2),
        begun.message(&one, 2),
        begun.message("late", 2),
        saga_core::store::NewMessage { aggregate_type: "parcel".into(), ..begun.message(&one, 2) },
        other.message(&one, 2),
    ];
    let pause = bench.harness.timing().lease;
    bench.pass(pause).await;
    let young = bench.send(&begun, &one, &[3]).await?;
    let waiting = async || -> Result<Vec<bool>, Failed> {
        let ages = bench.store.oldest_ages(&asked).await?;
        Ok(ages.into_iter().map(|oldest| oldest >= Some(pause)).collect())
    };
    ensure_eq!(waiting().await?, [false, true, true, false, false], "which keys have a message that waits so long");
    bench.store.park(&[refused(ids[0], 1, "refused")]).await?;
    ensure_eq!(waiting().await?, [false, true, true, false, false], "which keys have one when one is parked");
    bench.store.sent(&[&ids[..], &young].concat()).await?;
    ensure_eq!(waiting().await?, [false, false, true, false, false], "which keys have one when one was sent");
    ensure_eq!(bench.store.oldest_ages(&[]).await?, [None; 0], "an answer to no question");
    Ok(())
}

pub(crate) async fn a_message_that_waits_is_not_inserted_again<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let message = begun.message("o-1", 1);
    let again = saga_core::store::NewMessage { payload: b"other".to_vec(), ..message.clone() };
    bench.apply(saga_core::store::Changes { messages: vec![message.clone()], ..Default::default() }).await?;
    bench.apply(saga_core::store::Changes { messages: vec![again], ..begun.done(1) }).await?;
    let rows = bench.outbox().await?;
    ensure_eq!(rows.len(), 1, "the rows of one id");
    ensure_eq!(rows[0].payload, message.payload, "the row that waited");
    let record = bench.outcome_of(&begun, crate::fixture::STEP).await?;
    ensure!(record.is_some(), "the rest of the changes was not written");
    bench.store.sent(&[message.id]).await?;
    bench.apply(saga_core::store::Changes { messages: vec![message], ..Default::default() }).await?;
    ensure_eq!(bench.outbox().await?.len(), 1, "the rows of an id that was sent before");
    Ok(())
}
