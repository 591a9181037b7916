//! What keeps an ended saga from being purged, and how long others are kept.

use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{
    Changes, DeadLetters, DefinitionId, ExpireEnded, Expiry, Headers, KeptFor, Members, MessageId, NewDeadLetter,
    NextAge, Outbox, Purge, Purged, SagaId, Status,
};

use super::purge::{NONE, at_once, due, end, ended, family, purge, purge_these, purge_with, started, tombstone};
use crate::check::{Failed, Outcome, ensure_eq};
use crate::fixture::{Begun, Bench, HOUR, definition, name, tenant};
use crate::harness::{StartInHarness, StoreHarness};
use crate::store::messages::letters::letter;
use crate::store::transactions::publish_in;

/// The saga was kept for that reason, with all that belongs to it, and is not due again at once. What kept it has ended now.
async fn was_kept<H: StoreHarness>(bench: &Bench<H>, begun: &Begun, why: KeptFor) -> Outcome {
    let expected = Purged { kept: vec![(begun.id, why)], ..Purged::default() };
    ensure_eq!(purge(bench).await?, expected, "what was purged");
    ensure_eq!(due(bench).await?, NONE, "what is due after that");
    let whole = bench.store.whole_sagas(&[begun.id]).await?;
    let records: Vec<usize> = whole.iter().map(|saga| saga.records.len()).collect();
    ensure_eq!(records, vec![1; whole.len()], "the records of the sagas that were kept");
    bench.store.set_expiry(&begun.tenant, &begun.key, Some(&at_once())).await?;
    Ok(())
}

async fn bury<H: StoreHarness>(bench: &Bench<H>, number: u32, of: &str) -> Result<NewDeadLetter, Failed> {
    let headers = vec![("x".into(), "[\"saga-cause\",\"k-9\"]".into()), ("saga-cause".into(), of.into())];
    let letter = NewDeadLetter { headers, ..letter(bench, number).await? };
    ensure_eq!(bench.store.add_dead_letters(vec![letter.clone()]).await?, [true], "whether the letter is new");
    Ok(letter)
}

pub(crate) async fn an_open_letter_keeps_a_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (outer, sub) = family(&bench, at_once()).await?;
    for (number, of) in (0..).zip([&outer.key, &sub.key]) {
        let letter = bury(&bench, number, of.as_str()).await?;
        was_kept(&bench, &outer, KeptFor::DeadLetter).await?;
        ensure_eq!(bench.store.whole_sagas(&[outer.id]).await?.len(), 2, "the family that was kept");
        bench.store.discard_dead_letter(&letter.tenant, letter.id, "not needed").await?;
    }
    // Neither names it: one is of another saga, and one of another tenant.
    bury(&bench, 2, "k-10").await?;
    let other = NewDeadLetter { tenant: Tenant::default(), ..letter(&bench, 3).await? };
    let headers = vec![("saga-cause".to_owned(), "k-1".to_owned())];
    bench.store.add_dead_letters(vec![NewDeadLetter { headers, ..other }]).await?;
    ensure_eq!(purge(&bench).await?.deleted, [outer.id], "what was deleted");
    // A hosted step is named by the key of the saga that it is a step of.
    let hosted = ended(&bench, "k-\"2\\>charge", Some(at_once())).await?;
    let letter = bury(&bench, 4, "k-\"2\\").await?;
    was_kept(&bench, &hosted, KeptFor::DeadLetter).await?;
    bench.store.discard_dead_letter(&letter.tenant, letter.id, "not needed").await?;
    ensure_eq!(purge(&bench).await?.deleted, [hosted.id], "what was deleted then");
    Ok(())
}

/// Puts a message into the outbox that a saga of this key caused.
async fn tell<H: StoreHarness>(bench: &Bench<H>, begun: &Begun, of: &str, position: u64) -> Result<MessageId, Failed> {
    let mut message = begun.message("order-1", position);
    message.headers = Headers { saga_key: Some(of.to_owned()), ..Headers::default() };
    let id = message.id;
    bench.apply(Changes { messages: vec![message], ..Changes::default() }).await?;
    Ok(id)
}

pub(crate) async fn a_message_that_was_not_sent_keeps_a_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (outer, sub) = family(&bench, at_once()).await?;
    for (position, of) in (1..).zip([&outer.key, &sub.key]) {
        let message = tell(&bench, &outer, of.as_str(), position).await?;
        was_kept(&bench, &outer, KeptFor::Outbox).await?;
        bench.store.sent(&[message]).await?;
    }
    tell(&bench, &outer, "k-10", 3).await?;
    let elsewhere = bench.start("k-1").await?;
    tell(&bench, &elsewhere, "k-1", 1).await?;
    ensure_eq!(purge(&bench).await?.deleted, [outer.id], "what was deleted");
    let hosted = ended(&bench, "k-\"2\\>charge", Some(at_once())).await?;
    let message = tell(&bench, &hosted, "k-\"2\\", 1).await?;
    was_kept(&bench, &hosted, KeptFor::Outbox).await?;
    bench.store.sent(&[message]).await?;
    ensure_eq!(purge(&bench).await?.deleted, [hosted.id], "what was deleted then");
    Ok(())
}

pub(crate) async fn what_has_not_ended_keeps_a_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let outer = ended(&bench, "k-1", Some(at_once())).await?;
    let sub = started(&bench, &outer.tenant, "k-1>pay").await?;
    let expected = Purged { kept: vec![(outer.id, KeptFor::Unfinished)], ..Purged::default() };
    ensure_eq!(purge(&bench).await?, expected, "what was purged while a sub-saga runs");
    // It has ended, and its work is left.
    let finished = end(&sub, None).finished;
    bench.apply(Changes { finished: Vec::new(), ..end(&sub, None) }).await?;
    bench.store.set_expiry(&outer.tenant, &outer.key, Some(&at_once())).await?;
    was_kept(&bench, &outer, KeptFor::Unfinished).await?;
    bench.apply(Changes { finished, ..Changes::default() }).await?;
    ensure_eq!(purge(&bench).await?.deleted, [outer.id], "what was deleted");
    Ok(())
}

pub(crate) async fn a_saga_that_is_kept_is_due_again_after_the_retry_interval<H: StoreHarness>(
    bench: Bench<H>,
) -> Outcome {
    let begun = ended(&bench, "k-1", Some(tombstone())).await?;
    let letter = bury(&bench, 0, "k-1").await?;
    let retry = async |retry_interval| -> Outcome {
        let listed = bench.store.expired(100).await?;
        let kept = Purged { kept: vec![(begun.id, KeptFor::DeadLetter)], ..Purged::default() };
        ensure_eq!(purge_with(&bench, &listed, retry_interval).await?, kept, "what was purged");
        Ok(())
    };
    retry(Duration::ZERO).await?;
    ensure_eq!(due(&bench).await?, [begun.id], "what is due again at once");
    retry(bench.harness.timing().lease).await?;
    bench.outlast_lease().await;
    ensure_eq!(due(&bench).await?, [begun.id], "what is due again after the interval");
    bench.store.discard_dead_letter(&letter.tenant, letter.id, "not needed").await?;
    ensure_eq!(purge(&bench).await?.tombstones, [begun.id], "what became a tombstone then");
    let listed = bench.store.expired(100).await?;
    ensure_eq!(listed, [], "what is due of the tombstone, which is kept for as long as another one");
    Ok(())
}

/// The longest time that can be said stops no purge.
pub(crate) async fn a_tombstone_may_be_kept_for_ever<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = ended(&bench, "k-1", Some(Expiry { delete_in: Duration::MAX, ..tombstone() })).await?;
    let letter = bury(&bench, 0, "k-1").await?;
    let kept = Purged { kept: vec![(begun.id, KeptFor::DeadLetter)], ..Purged::default() };
    let listed = bench.store.expired(100).await?;
    ensure_eq!(purge_with(&bench, &listed, Duration::ZERO).await?, kept, "what was purged");
    let bench = bench.reopen().await?;
    ensure_eq!(due(&bench).await?, [begun.id], "what is due again");
    bench.store.discard_dead_letter(&letter.tenant, letter.id, "not needed").await?;
    ensure_eq!(purge(&bench).await?.tombstones, [begun.id], "what became a tombstone");
    let other = ended(&bench, "k-2", Some(at_once())).await?;
    ensure_eq!(purge(&bench).await?.deleted, [other.id], "what was deleted beside the tombstone");
    Ok(())
}

pub(crate) async fn hosted_steps_are_dated_by_the_saga_that_asked<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let hosted = ended(&bench, "k-1>charge", None).await?;
    ended(&bench, "k-10>charge", None).await?;
    ended(&bench, "k-1", None).await?;
    started(&bench, &tenant("acme"), "k-1>ship").await?;
    let of_other = started(&bench, &Tenant::default(), "k-1>charge").await?;
    bench.apply(end(&of_other, None)).await?;
    let closed = [(tenant("acme"), name("k-1")), (tenant("acme"), name("k-7"))];
    let other = DefinitionId { name: "refunds".into(), version: 1 };
    let none = bench.store.expire_hosted(&[other], &closed, Duration::ZERO).await?;
    ensure_eq!(none, 0, "how many steps of another definition were dated");
    ensure_eq!(bench.store.expire_hosted(&[definition()], &closed, HOUR).await?, 1, "how many steps were dated");
    ensure_eq!(due(&bench).await?, NONE, "what is due before that time");
    bench.store.expire_hosted(&[definition()], &closed, Duration::ZERO).await?;
    let listed = bench.store.expired(100).await?;
    let listed: Vec<_> = listed.iter().map(|saga| (saga.id, saga.next)).collect();
    ensure_eq!(listed, [(hosted.id, NextAge::Deleted)], "what is due after it");
    Ok(())
}

pub(crate) async fn another_expiry_counts_from_the_end<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let lease = bench.harness.timing().lease;
    let begun = ended(&bench, "k-1", None).await?;
    let running = bench.start_of(&tenant("acme"), "k-2").await?;
    bench.outlast_lease().await;
    let set = async |begun: &Begun, expiry: Option<&Expiry>| -> Result<bool, Failed> {
        Ok(bench.store.set_expiry(&begun.tenant, &begun.key, expiry).await?)
    };
    ensure_eq!(set(&running, Some(&at_once())).await?, false, "whether a running saga was dated");
    ensure_eq!(set(&begun, Some(&Expiry::deleted_in(lease))).await?, true, "whether an ended saga was dated");
    ensure_eq!(due(&bench).await?, [begun.id], "what is due");
    ensure_eq!(set(&begun, None).await?, true, "whether it is kept for ever");
    ensure_eq!(due(&bench).await?, NONE, "what is due then");
    set(&begun, Some(&tombstone())).await?;
    purge(&bench).await?;
    set(&begun, Some(&Expiry { tombstone_in: Duration::ZERO, ..Expiry::deleted_in(HOUR) })).await?;
    ensure_eq!(due(&bench).await?, NONE, "what becomes of a tombstone before its time");
    set(&begun, Some(&Expiry { tombstone_in: Duration::ZERO, ..Expiry::deleted_in(lease) })).await?;
    let next: Vec<NextAge> = bench.store.expired(100).await?.iter().map(|saga| saga.next).collect();
    ensure_eq!(next, [NextAge::Deleted], "what becomes of a tombstone");
    Ok(())
}

/// A late success is recorded for a saga that has ended: it stays ended, and the commit has its expiry again.
pub(crate) async fn an_exempt_saga_that_moves_stays_exempt<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let exempt = ended(&bench, "k-1", Some(at_once())).await?;
    let other = ended(&bench, "k-2", Some(at_once())).await?;
    bench.store.set_expiry(&exempt.tenant, &exempt.key, None).await?;
    for begun in [&exempt, &other] {
        let mut advance = begun.advance(2, Status::Completed);
        advance.expiry = Some(Box::new(at_once()));
        bench.apply(Changes { saga: Some(advance), ..Changes::default() }).await?;
    }
    ensure_eq!(due(&bench).await?, [other.id], "what is due after both have moved");
    bench.store.set_expiry(&exempt.tenant, &exempt.key, Some(&at_once())).await?;
    ensure_eq!(due(&bench).await?.contains(&exempt.id), true, "whether it is due when it is not exempt any more");
    Ok(())
}

pub(crate) async fn what_ended_before_gets_another_expiry<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let one = ended(&bench, "k-1", None).await?;
    ended(&bench, "k-1>pay", None).await?;
    bench.start_of(&tenant("acme"), "k-2").await?;
    let failed = bench.start_idle("k-3").await?;
    bench.advance(&failed, 1, Status::Compensated).await?;
    let two = ended(&bench, "k-4", None).await?;
    bench.outlast_lease().await;
    let mut request = ExpireEnded {
        definition: definition(),
        status: Status::Completed,
        expiry: Expiry::deleted_in(bench.harness.timing().lease),
        after: None,
        limit: 2,
    };
    for other in [
        DefinitionId { name: "refunds".into(), ..request.definition.clone() },
        DefinitionId { version: request.definition.version + 1, ..request.definition.clone() },
    ] {
        let of_other = ExpireEnded { definition: other.clone(), limit: 100, ..request.clone() };
        let of_other = bench.store.expire_ended(&of_other).await?;
        ensure_eq!((of_other.sagas, of_other.next), (0, None), "how many of {other} were dated");
    }
    let (mut dated, mut calls) = (0, 0);
    loop {
        let part = bench.store.expire_ended(&request).await?;
        (dated, calls) = (dated + part.sagas, calls + 1);
        ensure_eq!(
            part.next.is_none_or(|next| request.after.is_none_or(|after| next > after)),
            true,
            "that it goes on"
        );
        request.after = part.next;
        if part.next.is_none() {
            break;
        }
    }
    ensure_eq!((dated, calls), (2, 3), "how many of five sagas were dated, in how many calls for two each");
    let mut listed: Vec<SagaId> = due(&bench).await?;
    listed.sort_unstable();
    ensure_eq!(listed, [one.id, two.id], "what is due");
    Ok(())
}

pub(crate) async fn decided_letters_are_forgotten<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let mut decided = Vec::new();
    for number in 0..3 {
        let letter = bury(&bench, number, "k-1").await?;
        bench.store.discard_dead_letter(&letter.tenant, letter.id, "not needed").await?;
        decided.push(letter);
    }
    let open = bury(&bench, 3, "k-1").await?;
    bench.outlast_lease().await;
    let forget = async |older_than, limit| -> Result<u64, Failed> {
        Ok(bench.store.forget_dead_letters(older_than, limit).await?)
    };
    ensure_eq!(forget(HOUR, 100).await?, 0, "how many were decided an hour ago");
    ensure_eq!(forget(Duration::ZERO, 2).await?, 2, "how many of three are forgotten at most");
    ensure_eq!(forget(Duration::ZERO, 2).await?, 1, "how many are left");
    ensure_eq!(forget(Duration::ZERO, 2).await?, 0, "how many are left then");
    for letter in decided {
        let found = bench.store.dead_letter(&letter.tenant, letter.id).await?;
        ensure_eq!(found.is_some(), false, "whether a decided letter is there");
    }
    let found = bench.store.dead_letter(&open.tenant, open.id).await?;
    ensure_eq!(found.map(|found| found.letter), Some(open), "the letter that is open");
    Ok(())
}

pub(crate) async fn a_saga_is_purged_once<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (outer, _) = family(&bench, tombstone()).await?;
    let listed = bench.store.expired(100).await?;
    for (index, commits) in [false, true].into_iter().enumerate() {
        let Some(doubtful) = bench.harness.doubtful(&bench.store, commits) else {
            return Err(Failed("the harness lost no answer".into()));
        };
        let member = bench.member().await?;
        let epoch = bench.store.lease_maintenance(member, HOUR).await?.unwrap_or_default();
        // The answer is lost, or came before the fault was met.
        _ = doubtful.purge(epoch, &listed, HOUR).await;
        bench.store.leave(member).await?;
        let records = bench.whole(&outer).await?.records.len();
        let family = bench.store.whole_sagas(&[outer.id]).await?.len();
        ensure_eq!(
            (records == 0, family == 1),
            if records == 0 { (true, true) } else { (false, false) },
            "what is left of a family after the lost commit {index}"
        );
    }
    purge_these(&bench, &listed).await?;
    ensure_eq!(bench.whole(&outer).await?.saga.is_tombstone(), true, "whether it is a tombstone in the end");
    Ok(())
}

pub(crate) async fn unused_ordering_keys_are_forgotten<H: StartInHarness>(bench: Bench<H>) -> Outcome {
    let own = Tenant::default();
    for (number, key) in (1..).zip(["7", "8", "9"]) {
        publish_in::publish(&bench, &[publish_in::message(&own, key, number)]).await?;
    }
    let sent: Vec<MessageId> =
        bench.outbox().await?.iter().filter(|row| row.aggregate_id != "9").map(|row| row.id).collect();
    bench.store.sent(&sent).await?;
    bench.pass(HOUR * 2).await;
    publish_in::publish(&bench, &[publish_in::message(&own, "8", 4)]).await?;
    let sent: Vec<MessageId> =
        bench.outbox().await?.iter().filter(|row| row.aggregate_id == "8").map(|row| row.id).collect();
    bench.store.sent(&sent).await?;
    bench.pass(HOUR * 2).await;
    ensure_eq!(bench.store.forget_published(HOUR * 6, 100).await?, 0, "how many were not used for six hours");
    // Under the first nothing was published for four hours, and of the last a message is not sent.
    ensure_eq!(
        bench.store.forget_published(Duration::from_mins(150), 100).await?,
        1,
        "how many were not used for hours"
    );
    publish_in::publish(&bench, &[publish_in::message(&own, "7", 5), publish_in::message(&own, "8", 6)]).await?;
    let positions = [publish_in::positions(&bench, "7").await?, publish_in::positions(&bench, "8").await?].concat();
    let positions: Vec<u64> = positions.iter().map(|(position, _)| *position).collect();
    ensure_eq!(positions, [1, 3], "the positions of what is published then");
    Ok(())
}
