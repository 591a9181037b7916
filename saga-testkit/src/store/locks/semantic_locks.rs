//! Semantic locks: who gets an entity and when, and what a commit hands over.

use std::sync::Arc;
use std::time::Duration;

use saga_core::key::Tenant;
use saga_core::store::{
    Changes, Entity, LockAnswer, LockFilter, LockRequest, LockState, Miss, Records, SemanticLocks, Status, Store,
    StoredLock, Unlock, WorkRef,
};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, HOUR, Play, STEP, past_locks, tenant};
use crate::harness::StoreHarness;
use crate::store::transactions::transaction::transact;

/// The name of the lock of each saga.
const LOCK: &str = STEP;

/// A request for accounts.
pub(in crate::store) fn request(begun: &Begun, accounts: &[u32]) -> LockRequest {
    LockRequest {
        tenant: begun.tenant.clone(),
        saga: begun.id,
        key: begun.key.clone(),
        owner: begun.key.clone(),
        name: LOCK.to_owned(),
        entities: accounts.iter().map(|account| Entity::new("account", account)).collect(),
        work: begun.work,
        within: HOUR,
    }
}

pub(in crate::store) async fn ask<H: StoreHarness>(
    bench: &Bench<H>,
    request: LockRequest,
) -> Result<LockAnswer, Failed> {
    let mut answers = past_locks(|| bench.store.ask_for_locks(vec![request.clone()])).await?;
    ensure!(answers.len() == 1, "one lock was asked for, and there are {} answers", answers.len());
    answers.pop().ok_or_else(|| Failed("no answer".into()))
}

/// The tokens of a lock that must be granted.
pub(in crate::store) async fn granted<H: StoreHarness>(
    bench: &Bench<H>,
    request: LockRequest,
) -> Result<Vec<u64>, Failed> {
    let (key, count) = (request.key.clone(), request.entities.len());
    match ask(bench, request).await? {
        LockAnswer::Granted(tokens) if tokens.len() == count => Ok(tokens),
        other => Err(Failed(format!("{key} should have its {count} entities, and was answered {other:?}"))),
    }
}

/// The saga must wait.
pub(in crate::store) async fn waits<H: StoreHarness>(bench: &Bench<H>, request: LockRequest) -> Outcome {
    let key = request.key.clone();
    let answer = ask(bench, request).await?;
    ensure!(matches!(answer, LockAnswer::Waits(_)), "{key} should wait, and was answered {answer:?}");
    Ok(())
}

fn all_of(begun: &Begun) -> Changes {
    Changes { unlocked: vec![Unlock::Owner(begun.tenant.clone(), begun.key.clone())], ..Changes::default() }
}

pub(in crate::store) async fn unlock<H: StoreHarness>(bench: &Bench<H>, begun: &Begun) -> Outcome {
    let applied = past_locks(|| bench.store.record(vec![all_of(begun)])).await?;
    ensure!(matches!(applied[..], [Ok(())]), "expected the lock to end, got {applied:?}");
    Ok(())
}

pub(in crate::store) async fn listed<H: StoreHarness>(
    bench: &Bench<H>,
    tenant: &Tenant,
) -> Result<Vec<StoredLock>, Failed> {
    let filter = LockFilter { tenant: tenant.clone(), saga: None, entity: None, after: None, limit: 100 };
    Ok(bench.store.locks(&filter).await?)
}

/// Which sagas have a lock, by their keys.
pub(in crate::store) async fn having<H: StoreHarness>(bench: &Bench<H>) -> Result<Vec<String>, Failed> {
    let locks = listed(bench, &Tenant::default()).await?;
    let granted = locks.into_iter().filter(|lock| lock.state == LockState::Granted);
    let mut keys: Vec<String> = granted.map(|lock| lock.key.to_string()).collect();
    keys.sort();
    Ok(keys)
}

pub(in crate::store) async fn three<H: StoreHarness>(bench: &Bench<H>) -> Result<[Begun; 3], Failed> {
    Ok([bench.start("k-1").await?, bench.start("k-2").await?, bench.start("k-3").await?])
}

pub(crate) async fn one_saga_has_an_entity_at_a_time<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, third] = three(&bench).await?;
    granted(&bench, request(&first, &[1])).await?;
    waits(&bench, request(&second, &[1])).await?;
    granted(&bench, request(&third, &[2])).await?;
    ensure_eq!(having(&bench).await?, ["k-1", "k-3"], "the sagas that have a lock");
    let locks = listed(&bench, &Tenant::default()).await?;
    let waiting = locks.iter().find(|lock| lock.key == second.key);
    let waits_for = waiting.map(|lock| (lock.state.clone(), lock.waits_for.clone(), lock.entities.clone()));
    let expected = (LockState::Waiting, vec![first.key.clone()], vec![(Entity::new("account", 1), None)]);
    ensure_eq!(waits_for, Some(expected), "what is shown of the saga that waits");
    let of_account = LockFilter {
        tenant: Tenant::default(),
        saga: None,
        entity: Some(Entity::new("account", 2)),
        after: None,
        limit: 10,
    };
    let of_account = bench.store.locks(&of_account).await?;
    ensure_eq!(of_account.iter().map(|lock| &lock.key).collect::<Vec<_>>(), [&third.key], "the locks of account 2");
    Ok(())
}

pub(crate) async fn all_entities_are_granted_or_none<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, third] = three(&bench).await?;
    granted(&bench, request(&first, &[1])).await?;
    waits(&bench, request(&second, &[1, 2])).await?;
    ensure_eq!(having(&bench).await?, ["k-1"], "the sagas that have a lock while one of two entities is free");
    unlock(&bench, &first).await?;
    granted(&bench, request(&second, &[1, 2])).await?;
    waits(&bench, request(&third, &[2])).await?;
    let bench = bench.reopen().await?;
    ensure_eq!(having(&bench).await?, ["k-2"], "the sagas that have a lock after a reopening");
    unlock(&bench, &second).await?;
    granted(&bench, request(&third, &[2])).await?;
    Ok(())
}

pub(crate) async fn sagas_of_one_owner_share<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [outer, other, inner] = three(&bench).await?;
    let tokens = granted(&bench, request(&outer, &[1])).await?;
    waits(&bench, request(&other, &[1])).await?;
    let of_family = LockRequest { owner: outer.key.clone(), ..request(&inner, &[1, 2]) };
    let shared = granted(&bench, of_family).await?;
    ensure_eq!(shared[0], tokens[0], "the token of an entity that the family has already");
    let one = Unlock::Lock(inner.tenant.clone(), inner.id, LOCK.to_owned());
    bench.apply(Changes { unlocked: vec![one], ..Changes::default() }).await?;
    ensure_eq!(having(&bench).await?, ["k-1"], "the locks behind the end of one of the family");
    unlock(&bench, &outer).await?;
    ensure_eq!(having(&bench).await?, ["k-2"], "the locks behind the end of the whole family");
    Ok(())
}

pub(crate) async fn tokens_grow<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, third] = three(&bench).await?;
    let mut tokens = granted(&bench, request(&first, &[1])).await?;
    tokens.extend(granted(&bench, request(&first, &[1])).await?);
    ensure_eq!(tokens[0], tokens[1], "the token of the same request");
    waits(&bench, request(&second, &[1])).await?;
    unlock(&bench, &first).await?;
    tokens.extend(granted(&bench, request(&second, &[1])).await?);
    unlock(&bench, &second).await?;
    let bench = bench.reopen().await?;
    tokens.extend(granted(&bench, request(&third, &[1])).await?);
    ensure!(tokens[1] < tokens[2] && tokens[2] < tokens[3], "the tokens of one entity do not grow: {tokens:?}");
    Ok(())
}

pub(crate) async fn waits_are_granted_in_their_order<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, third] = three(&bench).await?;
    let last = bench.start("k-4").await?;
    granted(&bench, request(&first, &[1])).await?;
    waits(&bench, request(&second, &[1])).await?;
    // The entity 2 is free, but this request is behind one that waits for both.
    waits(&bench, request(&third, &[1, 2])).await?;
    waits(&bench, request(&last, &[2])).await?;
    unlock(&bench, &first).await?;
    ensure_eq!(having(&bench).await?, ["k-2"], "the next saga");
    unlock(&bench, &second).await?;
    ensure_eq!(having(&bench).await?, ["k-3"], "the saga behind it");
    unlock(&bench, &third).await?;
    ensure_eq!(having(&bench).await?, ["k-4"], "the last saga");
    Ok(())
}

pub(crate) async fn a_wait_frees_its_row<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let first = bench.start("k-1").await?;
    granted(&bench, request(&first, &[1])).await?;
    bench.apply(first.done(1)).await?;
    let second = bench.start("k-2").await?;
    let claimed = bench.claim_one(bench.lease().await?).await?;
    let second = second.with_work(claimed.work);
    for _ in 0..2 {
        let answer = ask(&bench, request(&second, &[1])).await?;
        let is_rest = |left: Duration| left <= HOUR && left > HOUR / 2;
        ensure!(matches!(answer, LockAnswer::Waits(left) if is_rest(left)), "the rest of an hour: {answer:?}");
    }
    let claimed = bench.claim(bench.lease().await?, 10).await?.work;
    ensure!(claimed.is_empty(), "a row that waits for a lock was claimed: {claimed:?}");
    let whole = bench.whole(&second).await?;
    let shown: Vec<_> = whole.work.iter().map(|work| (work.work, work.owner, work.attempts)).collect();
    ensure_eq!(shown, [(second.work, None, 0)], "the row, its owner and its attempts");
    Ok(())
}

pub(crate) async fn the_commit_that_ends_a_lock_grants_the_next<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, _] = three(&bench).await?;
    granted(&bench, request(&first, &[1])).await?;
    waits(&bench, request(&second, &[1])).await?;
    bench.apply(Changes { unlocked: all_of(&first).unlocked, ..first.done(1) }).await?;
    ensure_eq!(having(&bench).await?, ["k-2"], "the sagas that have a lock behind the commit");
    let claimed = bench.claim(bench.lease().await?, 10).await?.work;
    let row = claimed.iter().find(|row| row.saga == second.id);
    let Some(row) = row else { return Err(Failed(format!("the row of the next saga is not due: {claimed:?}"))) };
    ensure!(!row.recovered && row.attempts == 0, "the row of the next saga was taken from an owner: {row:?}");
    granted(&bench, request(&second.with_work(row.work), &[1])).await?;
    Ok(())
}

pub(crate) async fn a_step_transaction_ends_locks<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, third] = three(&bench).await?;
    granted(&bench, request(&first, &[1])).await?;
    waits(&bench, request(&second, &[1])).await?;
    let ended = |begun: &Begun| Changes {
        saga: Some(begun.advance(1, Status::Completed)),
        unlocked: all_of(begun).unlocked,
        ..begun.done(1)
    };
    transact(&bench, vec![first.claim()], vec![Play::keep("a", 1)], vec![ended(&first)]).await?;
    ensure_eq!(bench.business("a").await, Some(1), "what the step wrote");
    ensure_eq!(having(&bench).await?, ["k-2"], "the sagas that have a lock behind the step");
    // Nothing of a step that is rolled back is kept.
    let rolled_back = Changes { records: ended(&third).records, ..ended(&second) };
    bench.apply(Changes { records: rolled_back.records.clone(), ..Changes::default() }).await?;
    let script = bench.script(vec![Play::keep("b", 2)], vec![rolled_back]);
    let failed = bench.store.transact(vec![second.claim()], Box::new(script)).await;
    ensure!(failed.is_err(), "a record that is there already rolls the step back");
    ensure_eq!(having(&bench).await?, ["k-2"], "the sagas that have a lock behind a step that was rolled back");
    Ok(())
}

pub(crate) async fn changes_that_miss_end_no_lock<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, third] = three(&bench).await?;
    granted(&bench, request(&first, &[1])).await?;
    waits(&bench, request(&second, &[1])).await?;
    let missing = Changes { unlocked: all_of(&first).unlocked, ..first.done(7) };
    let applied = past_locks(|| bench.store.record(vec![missing.clone(), third.done(1)])).await?;
    ensure!(matches!(applied[..], [Err(Miss::Saga(_)), Ok(())]), "one misses and the other does not: {applied:?}");
    ensure_eq!(having(&bench).await?, ["k-1"], "the sagas that have a lock behind a miss");
    Ok(())
}

pub(crate) async fn of_a_commit_in_doubt_the_hand_over_is_a_part<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    for (round, commits) in [(1, true), (2, false)] {
        let first = bench.start(&format!("k-{round}")).await?;
        let second = bench.start(&format!("l-{round}")).await?;
        granted(&bench, request(&first, &[round])).await?;
        waits(&bench, request(&second, &[round])).await?;
        let store = bench.harness.doubtful(&bench.store, commits).map(Arc::new);
        let store = store.ok_or_else(|| Failed("the harness gave no handle that loses answers".into()))?;
        let changes = Changes { unlocked: all_of(&first).unlocked, ..first.done(1) };
        ensure!(store.record(vec![changes]).await.is_err(), "the answer was lost");
        drop(store);
        ensure_eq!(bench.saga(&first).await?.version == 2, commits, "whether the changes were applied");
        let next = if commits { &second } else { &first };
        let has = having(&bench).await?.contains(&next.key.to_string());
        ensure!(has, "the commit took place: {commits}, and {} does not have the lock", next.key);
    }
    Ok(())
}

pub(crate) async fn of_a_ring_the_youngest_gives_up<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [old, young, third] = three(&bench).await?;
    granted(&bench, request(&old, &[1])).await?;
    granted(&bench, request(&young, &[2])).await?;
    let more = |begun: &Begun, account: u32| LockRequest { name: "more".to_owned(), ..request(begun, &[account]) };
    waits(&bench, more(&young, 1)).await?;
    waits(&bench, request(&third, &[2])).await?;
    // The older saga closes the ring, and the younger one gives up: its row is due.
    waits(&bench, more(&old, 2)).await?;
    let claimed = bench.claim(bench.lease().await?, 10).await?.work;
    let is_due = |begun: &Begun| claimed.iter().any(|row| row.saga == begun.id);
    ensure!(is_due(&young) && !is_due(&old), "only the younger saga's row is due: {claimed:?}");
    let row = claimed.iter().find(|row| row.saga == young.id).map_or(young.work, |row| row.work);
    let answer = ask(&bench, more(&young.with_work(row), 1)).await?;
    ensure_eq!(answer, LockAnswer::Deadlock(old.key.clone()), "the answer to the younger saga");
    unlock(&bench, &young).await?;
    // The third saga was behind the younger one, and in front of the older one.
    ensure_eq!(having(&bench).await?, ["k-1", "k-3"], "the sagas that have a lock");
    unlock(&bench, &third).await?;
    ensure_eq!(having(&bench).await?, ["k-1", "k-1"], "the locks of the older saga");
    Ok(())
}

pub(crate) async fn the_last_of_a_ring_of_three_gives_up_itself<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, third] = three(&bench).await?;
    let more = |begun: &Begun, account: u32| LockRequest { name: "more".to_owned(), ..request(begun, &[account]) };
    for (begun, account) in [(&first, 1), (&second, 2), (&third, 3)] {
        granted(&bench, request(begun, &[account])).await?;
    }
    waits(&bench, more(&first, 2)).await?;
    waits(&bench, more(&second, 3)).await?;
    let answer = ask(&bench, more(&third, 1)).await?;
    ensure_eq!(
        answer,
        LockAnswer::Deadlock(first.key.clone()),
        "the answer to the youngest saga, which closed the ring"
    );
    unlock(&bench, &third).await?;
    granted(&bench, more(&second, 3)).await?;
    Ok(())
}

pub(crate) async fn a_wait_ends_with_its_time<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, third] = three(&bench).await?;
    granted(&bench, request(&first, &[1])).await?;
    let short = LockRequest { within: bench.harness.timing().lease, ..request(&second, &[1]) };
    waits(&bench, short.clone()).await?;
    waits(&bench, request(&third, &[1])).await?;
    bench.outlast_lease().await;
    for _ in 0..2 {
        let answer = ask(&bench, short.clone()).await?;
        ensure_eq!(answer, LockAnswer::TimedOut(first.key.clone()), "the answer to a saga that has waited long enough");
    }
    unlock(&bench, &first).await?;
    ensure_eq!(having(&bench).await?, ["k-3"], "the saga behind the one that gave up");
    Ok(())
}

pub(crate) async fn a_lost_row_asks_for_nothing<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let begun = bench.start("k-1").await?;
    let claimed = bench.claim_one(bench.lease().await?).await?;
    ensure_eq!(ask(&bench, request(&begun, &[1])).await?, LockAnswer::Gone, "the answer to an older owner");
    let absent = WorkRef { id: saga_core::store::WorkId(bench.id().await?), epoch: 1 };
    ensure_eq!(ask(&bench, request(&begun.with_work(absent), &[1])).await?, LockAnswer::Gone, "the answer to no row");
    ensure_eq!(listed(&bench, &Tenant::default()).await?, [], "the locks that were left");
    granted(&bench, request(&begun.with_work(claimed.work), &[1])).await?;
    Ok(())
}

pub(crate) async fn tenants_have_entities_of_their_own<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let (one, two) = (tenant("one"), tenant("two"));
    let (first, second) = (bench.start_of(&one, "k-1").await?, bench.start_of(&two, "k-1").await?);
    granted(&bench, request(&first, &[1])).await?;
    granted(&bench, request(&second, &[1])).await?;
    unlock(&bench, &first).await?;
    let left = listed(&bench, &two).await?;
    ensure_eq!(left.iter().map(|lock| lock.saga).collect::<Vec<_>>(), [second.id], "the locks of the other tenant");
    Ok(())
}

pub(crate) async fn locks_of_steps_end_with_their_commands<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [gone, kept, waiting] = three(&bench).await?;
    let saga = bench.start("k-4").await?;
    let of_application = bench.start("k-5").await?;
    let named_alike = LockRequest { entities: vec![Entity::new("Step:account", 1)], ..request(&of_application, &[1]) };
    let of_step = |begun: &Begun, account: u32| LockRequest {
        entities: vec![Entity::new("step:account", account)],
        ..request(begun, &[account])
    };
    granted(&bench, of_step(&gone, 1)).await?;
    granted(&bench, of_step(&kept, 2)).await?;
    granted(&bench, request(&saga, &[1])).await?;
    granted(&bench, named_alike).await?;
    waits(&bench, of_step(&waiting, 1)).await?;
    ensure_eq!(bench.store.end_abandoned_locks(10).await?, 0, "how many end while their commands are there");
    // Their changes end no lock. A semantic lock lasts behind its step.
    bench.apply(gone.done(1)).await?;
    bench.apply(saga.done(1)).await?;
    bench.apply(of_application.done(1)).await?;
    ensure_eq!(bench.store.end_abandoned_locks(10).await?, 1, "how many end whose commands are gone");
    ensure_eq!(having(&bench).await?, ["k-2", "k-3", "k-4", "k-5"], "the sagas that have a lock");
    let claimed = bench.claim(bench.lease().await?, 10).await?.work;
    ensure!(claimed.iter().any(|row| row.saga == waiting.id), "the row of the next saga is not due: {claimed:?}");
    Ok(())
}

/// However many ask and end their locks at once, none is forgotten, and none has what another one has.
pub(crate) async fn many_at_once_get_their_turns<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let taken = Arc::new(std::sync::Mutex::new(std::collections::BTreeSet::new()));
    let mut sagas = Vec::new();
    for number in 0..crate::store::concurrency::TASKS {
        sagas.push(bench.start(&format!("k-{number}")).await?);
    }
    crate::store::concurrency::at_once(|number| {
        let (bench, begun, taken) = (bench.clone(), sagas[number].clone(), Arc::clone(&taken));
        async move {
            let accounts: &[u32] = [&[1][..], &[2], &[1, 2], &[2, 3]][number % 4];
            let request = request(&begun, accounts);
            while !matches!(ask(&bench, request.clone()).await?, LockAnswer::Granted(_)) {
                tokio::task::yield_now().await;
            }
            let enter = |account: &u32| taken.lock().is_ok_and(|mut taken| taken.insert(*account));
            ensure!(accounts.iter().all(enter), "two sagas have one of the accounts {accounts:?}");
            tokio::task::yield_now().await;
            let leave = |account: &u32| taken.lock().is_ok_and(|mut taken| taken.remove(account));
            ensure!(accounts.iter().all(leave), "one of the accounts {accounts:?} was left by another saga");
            unlock(&bench, &begun).await
        }
    })
    .await?;
    ensure_eq!(listed(&bench, &Tenant::default()).await?, [], "the locks that were left");
    Ok(())
}
