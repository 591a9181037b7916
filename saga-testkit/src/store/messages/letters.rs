//! Messages that could not be handled.

use saga_core::key::Tenant;
use saga_core::store::{
    Changes, Condition, DeadLetterFilter, DeadLetterId, DeadLetterReason, DeadLetterState, DeadLetters, Inbox,
    NewDeadLetter, Records, WorkId,
};

use super::inbox::{message, receive};
use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Bench, tenant};
use crate::harness::StoreHarness;

/// A letter of the tenant `acme`, about the message of this number.
pub(crate) async fn letter<H: StoreHarness>(bench: &Bench<H>, number: u32) -> Result<NewDeadLetter, Failed> {
    Ok(NewDeadLetter {
        id: DeadLetterId(bench.id().await?),
        fingerprint: [number.to_le_bytes()[0]; 32],
        tenant: tenant("acme"),
        reason: DeadLetterReason::Undecodable,
        detail: "the field `cents` is missing ✓".into(),
        source: "payments".into(),
        headers: vec![("saga-cause".into(), "a:b\n".into()), (String::new(), "\"Größe\"".into())],
        payload: (0..=255).collect(),
        message: Some(message(number)),
        attempts: 3,
    })
}

async fn bury<H: StoreHarness>(bench: &Bench<H>, number: u32) -> Result<NewDeadLetter, Failed> {
    let letter = letter(bench, number).await?;
    ensure_eq!(bench.store.add_dead_letters(vec![letter.clone()]).await?, [true], "whether the letter is new");
    Ok(letter)
}

async fn claimed<H: StoreHarness>(bench: &Bench<H>) -> Result<Vec<saga_core::store::ClaimedMessage>, Failed> {
    Ok(bench.store.claim_received(bench.lease().await?, 10).await?.messages)
}

pub(crate) async fn a_letter_is_kept_as_it_was_added<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let whole = bury(&bench, 1).await?;
    let bare = NewDeadLetter { message: None, headers: Vec::new(), payload: Vec::new(), ..letter(&bench, 2).await? };
    bench.store.add_dead_letters(vec![bare.clone()]).await?;
    let bench = bench.reopen().await?;
    for buried in [whole, bare] {
        let found = bench.store.dead_letter(&buried.tenant, buried.id).await?;
        let found = found.ok_or_else(|| Failed("the letter is gone".into()))?;
        ensure_eq!(found.letter, buried, "the letter");
        ensure_eq!((found.state, found.seen), (DeadLetterState::Open, 1), "its state, and how often it was seen");
        ensure_eq!((found.decided_at, &found.note), (None, &None), "its decision");
        let other = bench.store.dead_letter(&Tenant::default(), buried.id).await?;
        ensure!(other.is_none(), "another tenant found the letter");
    }
    Ok(())
}

pub(crate) async fn one_letter_of_a_message_is_open<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let first = bury(&bench, 1).await?;
    let (again, other) = (letter(&bench, 1).await?, letter(&bench, 2).await?);
    ensure_eq!(bench.store.add_dead_letters(vec![again.clone(), other]).await?, [false, true], "which are new");
    let found = bench.store.dead_letter(&first.tenant, first.id).await?;
    ensure_eq!(found.map(|found| (found.letter, found.seen)), Some((first.clone(), 2)), "the letter that was open");
    ensure!(bench.store.dead_letter(&again.tenant, again.id).await?.is_none(), "the second letter was kept");
    bench.store.discard_dead_letter(&first.tenant, first.id, "not needed").await?;
    ensure_eq!(bench.store.add_dead_letters(vec![again.clone()]).await?, [true], "one behind a decision");
    let found = bench.store.dead_letter(&again.tenant, again.id).await?;
    ensure_eq!(found.map(|found| (found.state, found.seen)), Some((DeadLetterState::Open, 1)), "the letter of its own");
    Ok(())
}

pub(crate) async fn a_list_of_letters_obeys_its_filter<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut buried = Vec::new();
    for number in 1..=4 {
        buried.push(bury(&bench, number).await?);
    }
    let old = NewDeadLetter { reason: DeadLetterReason::TooOld, ..letter(&bench, 5).await? };
    let other = NewDeadLetter { tenant: Tenant::default(), ..letter(&bench, 6).await? };
    bench.store.add_dead_letters(vec![old.clone(), other.clone()]).await?;
    bench.store.discard_dead_letter(&buried[0].tenant, buried[0].id, "not needed").await?;
    let all = DeadLetterFilter { tenant: tenant("acme"), state: None, ..DeadLetterFilter::default() };
    let ids = async |filter: DeadLetterFilter| -> Result<Vec<DeadLetterId>, Failed> {
        Ok(bench.store.dead_letters(&filter).await?.into_iter().map(|found| found.letter.id).collect())
    };
    let every = [buried[0].id, buried[1].id, buried[2].id, buried[3].id, old.id];
    ensure_eq!(ids(all.clone()).await?, every, "the letters of a tenant");
    let open = DeadLetterFilter { state: Some(DeadLetterState::Open), ..all.clone() };
    ensure_eq!(ids(open).await?, every[1..], "those that are open");
    let too_old = DeadLetterFilter { reason: Some(DeadLetterReason::TooOld), ..all.clone() };
    ensure_eq!(ids(too_old).await?, [old.id], "those with a reason");
    let page = DeadLetterFilter { after: Some(buried[1].id), limit: 2, ..all };
    ensure_eq!(ids(page).await?, every[2..4], "a page");
    ensure_eq!(ids(DeadLetterFilter::default()).await?, [other.id], "those of the default tenant");
    Ok(())
}

pub(crate) async fn a_replayed_letter_is_work_again<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    receive(&bench, &[1], None).await?;
    let received = claimed(&bench).await?;
    let buried = letter(&bench, 1).await?;
    // The message was handled, and became a letter in that commit.
    let finished = vec![(received[0].work, Condition::Held)];
    bench.apply(Changes { finished, dead_letters: vec![buried.clone()], ..Changes::default() }).await?;
    let work = WorkId(bench.id().await?);
    let foreign = bench.store.replay_dead_letter(&Tenant::default(), buried.id, work, "fixed").await?;
    ensure_eq!(foreign, None, "what another tenant replays");
    let replay = async |work| bench.store.replay_dead_letter(&buried.tenant, buried.id, work, "fixed").await;
    ensure_eq!(replay(work).await?, Some(DeadLetterState::Open), "the state that a replay found");
    ensure_eq!(replay(WorkId(bench.id().await?)).await?, Some(DeadLetterState::Replayed), "what the same again found");
    let bench = bench.reopen().await?;
    let again = claimed(&bench).await?;
    ensure_eq!(again.len(), 1, "the rows of a letter that was replayed twice");
    ensure_eq!((again[0].work.id, &again[0].message), (work, &message(1)), "the row");
    ensure_eq!(receive(&bench, &[1], None).await?, [false], "the id of what was replayed");
    Ok(())
}

pub(crate) async fn what_cannot_be_read_cannot_be_replayed<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let bare = NewDeadLetter { message: None, ..letter(&bench, 1).await? };
    bench.store.add_dead_letters(vec![bare.clone()]).await?;
    bench.store.replay_dead_letter(&bare.tenant, bare.id, WorkId(bench.id().await?), "again").await?;
    let found = bench.store.dead_letter(&bare.tenant, bare.id).await?;
    ensure_eq!(found.map(|found| found.state), Some(DeadLetterState::Open), "a letter without a message");
    ensure!(claimed(&bench).await?.is_empty(), "a letter without a message became work");
    let fresh = bury(&bench, 2).await?;
    bench.store.replay_dead_letter(&fresh.tenant, fresh.id, WorkId(bench.id().await?), "again").await?;
    ensure_eq!(receive(&bench, &[2], None).await?, [false], "the id of a replayed message that was never received");
    Ok(())
}

pub(crate) async fn a_discarded_letter_is_closed<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let buried = bury(&bench, 1).await?;
    let foreign = bench.store.discard_dead_letter(&Tenant::default(), buried.id, "not mine").await?;
    ensure_eq!(foreign, None, "what another tenant discards");
    let discard = async || bench.store.discard_dead_letter(&buried.tenant, buried.id, "not needed").await;
    ensure_eq!(discard().await?, Some(DeadLetterState::Open), "the state that it found");
    ensure_eq!(discard().await?, Some(DeadLetterState::Discarded), "what the same again found");
    let work = WorkId(bench.id().await?);
    let replayed = bench.store.replay_dead_letter(&buried.tenant, buried.id, work, "again").await?;
    ensure_eq!(replayed, Some(DeadLetterState::Discarded), "what a replay found");
    ensure!(claimed(&bench).await?.is_empty(), "a discarded letter became work");
    Ok(())
}

pub(crate) async fn a_decision_stays_as_it_was<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let buried = bury(&bench, 1).await?;
    let unknown =
        bench.store.discard_dead_letter(&buried.tenant, DeadLetterId(bench.id().await?), "which one?").await?;
    ensure_eq!(unknown, None, "a letter that there is not");
    bench.store.discard_dead_letter(&buried.tenant, buried.id, "first").await?;
    let decided = bench.store.dead_letter(&buried.tenant, buried.id).await?;
    let pause = bench.harness.timing().lease;
    bench.pass(pause).await;
    bench.store.discard_dead_letter(&buried.tenant, buried.id, "second").await?;
    bench.store.replay_dead_letter(&buried.tenant, buried.id, WorkId(bench.id().await?), "third").await?;
    let bench = bench.reopen().await?;
    let later = bench.store.dead_letter(&buried.tenant, buried.id).await?;
    ensure_eq!(later, decided, "the letter behind later decisions");
    let (note, at) = later.map(|found| (found.note, found.decided_at)).unwrap_or_default();
    ensure_eq!((note.as_deref(), at.is_some()), (Some("first"), true), "its note and its time");
    Ok(())
}

pub(crate) async fn a_letter_comes_with_its_commit<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let buried = letter(&bench, 1).await?;
    let with = |expected| Changes { dead_letters: vec![buried.clone()], ..begun.done(expected) };
    bench.store.record(vec![with(3)]).await?;
    ensure!(bench.store.dead_letter(&buried.tenant, buried.id).await?.is_none(), "changes that missed left a letter");
    bench.apply(with(1)).await?;
    let found = bench.store.dead_letter(&buried.tenant, buried.id).await?;
    ensure_eq!(found.map(|found| found.letter), Some(buried), "the letter");
    Ok(())
}
