//! What arrived, until it was handled.

use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{
    Answer, Changes, Condition, Headers, Inbox, Lease, Members, Message, MessageId, MessageKind, NewReceived,
    Timestamp, Work, WorkId, WorkRef,
};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, HOUR, tenant};
use crate::harness::StoreHarness;

/// A message with something in every field, of this number.
pub(crate) fn message(number: u32) -> Message {
    Message {
        id: MessageId(uuid::Uuid::from_u128(u128::from(number) + (0x1b0c_u128 << 100))),
        kind: MessageKind::Undo,
        tenant: tenant("acme"),
        topic: saga_core::store::service_topic("payments"),
        key: "Größe/\"1\"\n".into(),
        event_type: "charge-card:undo".into(),
        payload: (0..=255).chain([number.to_le_bytes()[0]]).collect(),
        committed_at: Timestamp(1_735_689_600_000_000 + i64::from(number)),
        headers: Headers {
            saga_key: Some("8f14e45f".into()),
            step: Some("charge-card".into()),
            service: Some("payments".into()),
            reply_to: Some("orders".into()),
            correlation: Some(MessageId(uuid::Uuid::from_u128(9))),
            answer: Some(Answer::Unknown),
            traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            locks: Some(r#"{"credit":[{"kind":"account","id":"7","token":41}]}"#.into()),
            key_id: Some("payments-1".into()),
            signature: Some("00ff".into()),
        },
    }
}

/// Receives messages of these numbers, and answers which were new.
pub(crate) async fn receive<H: StoreHarness>(
    bench: &Bench<H>,
    numbers: &[u32],
    lease: Option<Lease>,
) -> Result<Vec<bool>, Failed> {
    let mut messages = Vec::new();
    for number in numbers {
        messages.push(NewReceived { work: WorkId(bench.id().await?), message: message(*number), lease });
    }
    Ok(bench.store.receive(messages).await?.new)
}

/// Claims messages, and answers their rows and which they are.
async fn claim<H: StoreHarness>(bench: &Bench<H>, limit: usize) -> Result<Vec<(WorkRef, Message)>, Failed> {
    let claimed = bench.store.claim_received(bench.lease().await?, limit).await?.messages;
    Ok(claimed.into_iter().map(|claimed| (claimed.work, claimed.message)).collect())
}

fn messages(claimed: Vec<(WorkRef, Message)>) -> Vec<Message> {
    claimed.into_iter().map(|(_, message)| message).collect()
}

async fn finish<H: StoreHarness>(bench: &Bench<H>, work: WorkRef) -> Outcome {
    bench.apply(Changes { finished: vec![(work, Condition::Held)], ..Changes::default() }).await
}

pub(crate) async fn what_was_received_outlives_its_process<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    ensure_eq!(receive(&bench, &[1, 2], None).await?, [true, true], "which were new");
    let bench = bench.reopen().await?;
    let mut came = messages(claim(&bench, 10).await?);
    came.sort_by_key(|message| message.id);
    ensure_eq!(came, [message(1), message(2)], "the messages behind a restart");
    Ok(())
}

pub(crate) async fn a_leased_message_belongs_to_its_receiver<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let work = WorkId(bench.id().await?);
    let received = NewReceived { work, message: message(1), lease: Some(bench.lease().await?) };
    bench.store.receive(vec![received]).await?;
    ensure_eq!(claim(&bench, 10).await?, [], "what another may claim");
    finish(&bench, WorkRef { id: work, epoch: 1 }).await
}

pub(crate) async fn a_message_id_is_new_once<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    ensure_eq!(receive(&bench, &[1, 1, 2], None).await?, [true, false, true], "which of one call were new");
    ensure_eq!(receive(&bench, &[2, 3], None).await?, [false, true], "which of a later call were new");
    let claimed = claim(&bench, 10).await?;
    ensure_eq!(claimed.len(), 3, "how many rows there are");
    for (work, _) in claimed {
        finish(&bench, work).await?;
    }
    let bench = bench.reopen().await?;
    ensure_eq!(receive(&bench, &[3], None).await?, [false], "one that was handled long ago");
    let mut other = message(3);
    other.tenant = Tenant::default();
    let received = NewReceived { work: WorkId(bench.id().await?), message: other, lease: None };
    ensure_eq!(bench.store.receive(vec![received]).await?.new, [false], "the id under another tenant");
    ensure_eq!(claim(&bench, 10).await?, [], "the rows of duplicates");
    Ok(())
}

pub(crate) async fn messages_are_claimed_like_commands<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    receive(&bench, &[1, 2, 3], None).await?;
    ensure_eq!(bench.store.backlog().await?.0, 4, "what waits");
    let unknown = bench.store.unknown_work(&[crate::fixture::definition()]).await?;
    ensure_eq!(unknown, [], "the unknown definitions");
    let first = claim(&bench, 2).await?;
    ensure_eq!(first.len(), 2, "what a limited claim takes");
    ensure!(first.iter().all(|(work, _)| work.epoch == 2), "the epochs of a first claim: {first:?}");
    ensure_eq!(claim(&bench, 10).await?.len(), 1, "what is left for the next claim");
    ensure_eq!(claim(&bench, 10).await?, [], "what is left then");
    let command = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(command.work.id, begun.work.id, "what a claim of commands takes");
    let (work, sent) = &first[0];
    ensure_eq!(bench.store.release_work(&[*work]).await?, [true], "giving back");
    let again = claim(&bench, 10).await?;
    ensure_eq!(again.iter().map(|(work, _)| work.epoch).collect::<Vec<_>>(), [4], "the epoch behind that");
    ensure_eq!(&again[0].1, sent, "the message behind that");
    Ok(())
}

pub(crate) async fn a_message_of_a_vanished_owner_is_suspect<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    receive(&bench, &[1], None).await?;
    let lease = bench.lease().await?;
    let mine = bench.store.claim_received(lease, 1).await?.messages;
    ensure!(mine.len() == 1 && !mine[0].recovered, "a first claim: {mine:?}");
    ensure!(bench.store.begin_attempt(mine[0].work, 3).await?, "the attempt was not written down");
    bench.store.leave(lease.owner).await?;
    let claimed = bench.store.claim_received(bench.lease().await?, 1).await?.messages;
    ensure!(claimed.len() == 1 && claimed[0].recovered, "a claim from an owner that left: {claimed:?}");
    ensure_eq!(claimed[0].attempts, 3, "its attempts");
    let mut postponed = Changes::default();
    postponed.postponed.push(saga_core::store::Postponed {
        work: claimed[0].work,
        due_in: HOUR,
        attempts: 4,
        in_doubt: false,
        error: Some("the store was away".into()),
    });
    bench.apply(postponed).await?;
    let later = bench.store.claim_received(bench.lease().await?, 1).await?;
    ensure!(later.messages.is_empty(), "a message that is not due was claimed");
    ensure!(later.next_due_in > Some(HOUR / 2), "the next falls due in {:?}", later.next_due_in);
    Ok(())
}

pub(crate) async fn old_ids_are_forgotten<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    receive(&bench, &[1, 2, 3], None).await?;
    for (work, message) in claim(&bench, 10).await? {
        if message.id != self::message(3).id {
            finish(&bench, work).await?;
        }
    }
    let lease = bench.harness.timing().lease;
    bench.pass(lease * 2).await;
    ensure_eq!(bench.store.forget_received(HOUR, 10).await?, 0, "how many young ids were forgotten");
    ensure_eq!(bench.store.forget_received(lease, 1).await?, 1, "how many a limited call forgot");
    ensure_eq!(bench.store.forget_received(lease, 10).await?, 1, "how many the next one forgot");
    ensure_eq!(receive(&bench, &[1, 2, 3], None).await?, [true, true, false], "which are new then");
    ensure_eq!(bench.store.forget_received(Duration::from_secs(0), 0).await?, 0, "what a limit of 0 forgets");
    Ok(())
}
