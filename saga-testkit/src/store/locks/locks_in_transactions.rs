//! The locks that a step transaction takes by itself.

use std::sync::Arc;

use saga_core::key::Tenant;
use saga_core::store::{
    Changes, Claim, Entity, HandlerVerdict, KeptLock, LockAnswer, LockRequest, SemanticLocks, Store, TakenLock, Unlock,
    WantedLock,
};

use super::semantic_locks::{ask, granted, having, listed, request, unlock, waits};
use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, Play, Seen};
use crate::harness::StoreHarness;
use crate::store::transactions::starting::{done as done_at_start, unborn_of};
use crate::store::transactions::transaction::transact;
use crate::store::transactions::waiting::{ensure_gave_up, while_open};

/// The claim of a saga that requires these locks.
fn claim(begun: &Begun, requests: impl IntoIterator<Item = LockRequest>) -> Claim {
    let required = |request| Arc::new(WantedLock { request, is_required: true });
    Claim { locks: requests.into_iter().map(required).collect(), ..begun.claim() }
}

/// A request of the saga under another name.
fn more(begun: &Begun, accounts: &[u32]) -> LockRequest {
    LockRequest { name: "more".to_owned(), ..request(begun, accounts) }
}

/// The tokens of the only lock of a claim, which must be taken until the end of the transaction.
fn tokens(seen: &Seen, index: usize) -> Result<Vec<u64>, Failed> {
    match of_claim(seen, index) {
        [Some(TakenLock { tokens, is_stored: false, .. })] => Ok(tokens.clone()),
        other => Err(Failed(format!("the claim {index} should have its lock until the end, and has {other:?}"))),
    }
}

fn of_claim(seen: &Seen, index: usize) -> &[Option<TakenLock>] {
    seen.locked.iter().find(|(of, _)| *of == index).map(|(_, taken)| &**taken).unwrap_or_default()
}

/// Runs a step that is done, under locks.
async fn done<H: StoreHarness>(bench: &Bench<H>, begun: &Begun, claim: Claim) -> Result<Seen, Failed> {
    transact(bench, vec![claim], vec![Play::keep(begun.key.as_str(), 1)], vec![begun.done(1)]).await
}

/// That the claim was not granted for want of its lock, and wrote nothing.
async fn is_refused<H: StoreHarness>(bench: &Bench<H>, begun: &Begun, claim: Claim) -> Outcome {
    let taken = vec![None; claim.locks.len()];
    let seen = done(bench, begun, claim).await?;
    ensure_eq!(seen.granted, [false], "whether the claim of {} was granted", begun.key);
    ensure_eq!(seen.locked, [(0, taken)], "the locks of {}", begun.key);
    ensure_eq!(bench.business(begun.key.as_str()).await, None, "what the step of {} wrote", begun.key);
    Ok(())
}

pub(crate) async fn a_lock_lasts_as_long_as_the_transaction<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let names = ["k-1", "k-2", "k-3", "k-4"];
    let mut sagas = Vec::new();
    for name in names {
        sagas.push(bench.start(name).await?);
    }
    let [first, second, third, last] = &sagas[..] else { return Err(Failed("four sagas".into())) };
    let mut tokens_of_one = granted(&bench, request(first, &[1])).await?;
    unlock(&bench, first).await?;
    let seen = done(&bench, second, claim(second, [request(second, &[1, 2])])).await?;
    ensure_eq!(seen.granted, [true], "whether the claim was granted");
    tokens_of_one.extend(tokens(&seen, 0)?.first());
    ensure_eq!(bench.business("k-2").await, Some(1), "what the step wrote");
    ensure_eq!(listed(&bench, &Tenant::default()).await?, [], "the locks behind the transaction");
    // A step that is undone leaves no lock either.
    let undone = vec![Play::then("k-3", 1, HandlerVerdict::RollBack)];
    let seen = transact(&bench, vec![claim(third, [request(third, &[1])])], undone, Vec::new()).await?;
    tokens_of_one.extend(tokens(&seen, 0)?);
    let bench = bench.reopen().await?;
    tokens_of_one.extend(granted(&bench, request(last, &[1])).await?);
    ensure!(tokens_of_one.is_sorted_by(|one, next| one < next), "the tokens of account 1 grow: {tokens_of_one:?}");
    Ok(())
}

pub(crate) async fn a_claim_without_its_lock_is_not_granted<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [has, waiting, third] = [bench.start("k-1").await?, bench.start("k-2").await?, bench.start("k-3").await?];
    granted(&bench, request(&has, &[1])).await?;
    waits(&bench, request(&waiting, &[1, 2])).await?;
    is_refused(&bench, &third, claim(&third, [request(&third, &[1])])).await?;
    // The account 2 is free, but another saga waits for it.
    is_refused(&bench, &third, claim(&third, [request(&third, &[2, 3])])).await?;
    // The lock of a step that may follow is no condition.
    let later = Arc::new(WantedLock { request: more(&third, &[1]), is_required: false });
    let mut claim = claim(&third, [request(&third, &[3])]);
    claim.locks.push(later);
    let seen = done(&bench, &third, claim).await?;
    ensure_eq!(seen.granted, [true], "whether a claim was granted that has what it requires");
    let has_each: Vec<bool> = of_claim(&seen, 0).iter().map(Option::is_some).collect();
    ensure_eq!(has_each, [true, false], "which locks the transaction had");
    ensure_eq!(having(&bench).await?, ["k-1"], "the sagas that have a lock behind the transaction");
    Ok(())
}

pub(crate) async fn a_lock_that_was_granted_before_is_kept<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [saga, waiting] = [bench.start("k-1").await?, bench.start("k-2").await?];
    let before = granted(&bench, request(&saga, &[1])).await?;
    waits(&bench, request(&waiting, &[1])).await?;
    // Under its name, other entities are another lock.
    is_refused(&bench, &saga, claim(&saga, [request(&saga, &[2])])).await?;
    let of_lock = Unlock::Lock(saga.tenant.clone(), saga.id, request(&saga, &[1]).name);
    let ended = Changes { unlocked: vec![of_lock], ..saga.done(1) };
    let claims = vec![claim(&saga, [request(&saga, &[1])])];
    let seen = transact(&bench, claims, vec![Play::keep("k-1", 1)], vec![ended]).await?;
    let expected = [Some(TakenLock { tokens: before, is_stored: true, has_waited: false })];
    ensure_eq!(of_claim(&seen, 0), expected, "the lock that the saga had before");
    ensure_eq!(having(&bench).await?, ["k-2"], "the sagas that have a lock behind the transaction");
    Ok(())
}

pub(crate) async fn claims_of_a_transaction_share_no_semantic_lock<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second] = [bench.start("k-1").await?, bench.start("k-2").await?];
    // The steps of one saga run one after the other.
    let claims =
        vec![claim(&first, [request(&first, &[1]), more(&first, &[1])]), claim(&second, [request(&second, &[1, 2])])];
    let plays = vec![Play::keep("k-1", 1), Play::keep("k-2", 1)];
    let seen = transact(&bench, claims, plays, vec![first.done(1)]).await?;
    ensure_eq!(seen.granted, [true, false], "which claims were granted");
    ensure_eq!(of_claim(&seen, 1), [None], "what the second claim has");
    let both: Vec<u64> = of_claim(&seen, 0).iter().flatten().flat_map(|taken| taken.tokens.clone()).collect();
    ensure!(both.len() == 2 && both[0] == both[1], "the locks of one transaction have one token: {both:?}");
    ensure_eq!(bench.business("k-2").await, None, "what the second step wrote");
    Ok(())
}

pub(crate) async fn steps_of_a_transaction_share_an_entity_and_its_token<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, has] = [bench.start("k-1").await?, bench.start("k-2").await?, bench.start("k-3").await?];
    let [fourth, last] = [bench.start("k-4").await?, bench.start("k-5").await?];
    let of_step = |begun: &Begun, accounts: &[u32]| LockRequest {
        entities: accounts.iter().map(|account| Entity::new("step:account", account)).collect(),
        ..request(begun, accounts)
    };
    granted(&bench, of_step(&has, &[3])).await?;
    let claims = vec![
        claim(&first, [of_step(&first, &[1])]),
        claim(&second, [of_step(&second, &[1, 2])]),
        claim(&fourth, [of_step(&fourth, &[2, 3])]),
    ];
    let plays = vec![Play::keep("k-1", 1), Play::keep("k-2", 1), Play::keep("k-4", 1)];
    let seen = transact(&bench, claims, plays, vec![first.done(1), second.done(1)]).await?;
    ensure_eq!(seen.granted, [true, true, false], "which claims were granted");
    let (of_first, of_second) = (tokens(&seen, 0)?, tokens(&seen, 1)?);
    ensure!(of_second.iter().all(|token| *token == of_first[0]), "one token: {of_first:?} and {of_second:?}");
    ensure_eq!(of_claim(&seen, 2), [None], "what a claim has if another saga has one of its entities");
    let later = granted(&bench, of_step(&last, &[1, 2])).await?;
    ensure!(later.iter().all(|token| *token > of_first[0]), "tokens grow: {of_first:?}, and later {later:?}");
    Ok(())
}

pub(crate) async fn an_entity_of_an_open_transaction_is_granted_to_no_other<H: StoreHarness>(
    bench: Bench<H>,
) -> Outcome {
    let [first, second, third] = [bench.start("k-1").await?, bench.start("k-2").await?, bench.start("k-3").await?];
    let open = claim(&first, [request(&first, &[1])]);
    let meanwhile = async {
        let other = bench.script(vec![Play::keep("k-3", 1)], vec![third.done(1)]);
        let seen = other.seen();
        let claims = vec![claim(&third, [request(&third, &[1])])];
        let transacted = bench.store.transact(claims, Box::new(other)).await;
        let asked = bench.store.ask_for_locks(vec![request(&second, &[2]), request(&second, &[1])]).await;
        transacted.map_err(|error| error.error)?;
        asked.map(|answers| (answers, seen()))
    };
    ensure_gave_up(while_open(&bench, open, vec![first.done(1)], meanwhile).await?)?;
    ensure_eq!(bench.business("k-3").await, None, "what a step wrote without its lock");
    let answer = ask(&bench, request(&second, &[1])).await?;
    ensure!(matches!(answer, LockAnswer::Granted(_)), "the entity is free behind the transaction: {answer:?}");
    Ok(())
}

/// Changes that keep the lock. The script says its tokens.
fn keeping(claim: &Claim, changes: Changes) -> Changes {
    let locked = claim.locks.iter().map(|wanted| KeptLock { wanted: Arc::clone(wanted), tokens: Vec::new() });
    Changes { locked: locked.collect(), ..changes }
}

pub(crate) async fn a_lock_that_is_kept_lasts_until_it_ends<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, third] = [bench.start("k-1").await?, bench.start("k-2").await?, bench.start("k-3").await?];
    let claim_of_first = claim(&first, [request(&first, &[1, 2])]);
    let changes = vec![keeping(&claim_of_first, Changes::default())];
    let seen = transact(&bench, vec![claim_of_first], vec![Play::keep("k-1", 1)], changes).await?;
    let mut tokens_of_one = tokens(&seen, 0)?;
    let bench = bench.reopen().await?;
    let locks = listed(&bench, &Tenant::default()).await?;
    let shown: Vec<_> = locks.iter().flat_map(|lock| lock.entities.iter().map(|(_, token)| *token)).collect();
    let expected: Vec<_> = tokens_of_one.iter().copied().map(Some).collect();
    ensure_eq!(shown, expected, "the tokens of the lock behind the transaction");
    ensure_eq!(granted(&bench, request(&first, &[1, 2])).await?, tokens_of_one, "the tokens of the same request");
    waits(&bench, request(&second, &[1])).await?;
    is_refused(&bench, &third, claim(&third, [request(&third, &[2])])).await?;
    unlock(&bench, &first).await?;
    ensure_eq!(having(&bench).await?, ["k-2"], "the sagas that have a lock behind the end of the first one");
    tokens_of_one.truncate(1);
    tokens_of_one.extend(granted(&bench, request(&second, &[1])).await?);
    ensure!(tokens_of_one[0] < tokens_of_one[1], "the tokens of account 1 grow: {tokens_of_one:?}");
    Ok(())
}

pub(crate) async fn a_saga_that_starts_keeps_its_lock<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (begun, _, start) = unborn_of(&bench, &Tenant::default(), "k-1").await?;
    let claim = Claim { start: start.start, ..claim(&begun, [request(&begun, &[1])]) };
    let changes = vec![keeping(&claim, done_at_start(&begun))];
    transact(&bench, vec![claim], vec![Play::keep("k-1", 1)], changes).await?;
    ensure_eq!(having(&bench).await?, ["k-1"], "the sagas that have a lock behind the start");
    waits(&bench, request(&bench.start("k-2").await?, &[1])).await?;
    let is_end =
        Changes { unlocked: vec![Unlock::Owner(begun.tenant.clone(), begun.key.clone())], ..Changes::default() };
    bench.apply(is_end).await?;
    ensure_eq!(having(&bench).await?, ["k-2"], "the sagas that have a lock behind the end of the first one");
    Ok(())
}

pub(crate) async fn a_transaction_that_fails_keeps_no_lock<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second] = [bench.start("k-1").await?, bench.start("k-2").await?];
    let claim = claim(&first, [request(&first, &[1])]);
    // A record that is there already rolls the step back.
    let of_other = Changes { records: second.done(1).records, ..first.done(1) };
    bench.apply(Changes { records: of_other.records.clone(), ..Changes::default() }).await?;
    let script = bench.script(vec![Play::keep("k-1", 1)], vec![keeping(&claim, of_other)]);
    let failed = bench.store.transact(vec![claim], Box::new(script)).await;
    ensure!(failed.is_err(), "the transaction committed with a record that was there already");
    ensure_eq!(having(&bench).await?.len(), 0, "the locks behind a transaction that failed");
    granted(&bench, request(&second, &[1])).await?;
    Ok(())
}

pub(crate) async fn a_lock_that_is_kept_is_granted_to_no_other_in_between<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second] = [bench.start("k-1").await?, bench.start("k-2").await?];
    let open = claim(&first, [request(&first, &[1])]);
    let changes = vec![keeping(&open, first.done(1))];
    let meanwhile = async { bench.store.ask_for_locks(vec![request(&second, &[1])]).await };
    ensure_gave_up(while_open(&bench, open, changes, meanwhile).await?)?;
    waits(&bench, request(&second, &[1])).await?;
    ensure_eq!(having(&bench).await?, ["k-1"], "the sagas that have a lock behind the transaction");
    Ok(())
}
