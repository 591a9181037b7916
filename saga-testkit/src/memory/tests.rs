//! Transactions that conflict, are dropped, or whose commit is in doubt.

use std::future::pending;
use std::sync::{Arc, Mutex};

use saga_core::env::BoxFuture;
use saga_core::key::Tenant;
use saga_core::memory::{CommitFate, CommitHook, CommitPoint, MemoryStore, PendingCommit};
use saga_core::store::{
    Condition, RecordedOutcome, Records, RetryClass, Sagas, StartIn, Started, Store, StoreError, StoreErrorKind, Work,
};
use tokio::sync::Notify;

use super::MemoryHarness;
use crate::fixture::{Act, Begun, Bench, Meeting, Play, STEP};
use crate::run::block_on;

type Memory = Bench<MemoryHarness>;

async fn fresh() -> Memory {
    Bench::fresh(Arc::new(MemoryHarness)).await
}

/// Holds each call at one point, or decides what becomes of it there.
struct At {
    point: CommitPoint,
    fate: Mutex<Option<CommitFate>>,
    reached: Notify,
    in_doubt: Mutex<Option<PendingCommit>>,
}

impl At {
    /// Without a fate, a call stays here.
    fn new(point: CommitPoint, fate: Option<CommitFate>) -> Arc<Self> {
        Arc::new(Self { point, fate: Mutex::new(fate), reached: Notify::new(), in_doubt: Mutex::default() })
    }
}

impl CommitHook for At {
    fn at(&self, point: CommitPoint) -> BoxFuture<'static, CommitFate> {
        if point != self.point {
            return Box::pin(async { CommitFate::Proceed });
        }
        self.reached.notify_one();
        match self.fate.lock().unwrap().take() {
            Some(fate) => Box::pin(async { fate }),
            None => Box::pin(pending()),
        }
    }

    fn in_doubt(&self, commit: PendingCommit) {
        *self.in_doubt.lock().unwrap() = Some(commit);
    }
}

fn hooked(bench: &Memory, hook: &Arc<At>) -> MemoryStore {
    (*bench.store).clone().with_commit_hook(Arc::<At>::clone(hook))
}

/// Whether everything of the step is there; it must be that or nothing.
async fn is_whole(bench: &Memory, begun: &Begun) -> bool {
    let written = bench.business("a").await == Some(1);
    let recorded = bench.outcome_of(begun, STEP).await.unwrap() == Some(RecordedOutcome::Done);
    let finished = bench.whole(begun).await.unwrap().work.is_empty();
    assert!(written == recorded && recorded == finished, "{written} {recorded} {finished}");
    written
}

#[test]
fn a_step_that_is_dropped_at_any_point_leaves_all_or_nothing() {
    let points = [
        (CommitPoint::Reading("transact"), false),
        (CommitPoint::Claimed, false),
        (CommitPoint::Handled(0), false),
        (CommitPoint::Committing("transact"), false),
        (CommitPoint::Committed("transact"), true),
    ];
    block_on(async {
        for (point, is_committed) in points {
            let bench = fresh().await;
            let begun = bench.start("k-1").await.unwrap();
            let hook = At::new(point, None);
            let script = || Box::new(bench.script(vec![Play::keep("a", 1)], vec![begun.done(1)]));
            let store = hooked(&bench, &hook);
            tokio::select! {
                biased;
                ended = store.transact(vec![begun.claim()], script()) => panic!("it passed {point:?}: {ended:?}"),
                () = hook.reached.notified() => {}
            }
            assert_eq!(is_whole(&bench, &begun).await, is_committed, "{point:?}");
            // What it held is free: another run of the same claim is granted, unless the first took effect.
            bench.store.transact(vec![begun.claim()], script()).await.unwrap();
            assert!(is_whole(&bench, &begun).await);
        }
    });
}

#[test]
fn a_commit_that_is_refused_leaves_nothing() {
    block_on(async {
        let bench = fresh().await;
        let begun = bench.start("k-1").await.unwrap();
        let refusal = StoreError::new(StoreErrorKind::Unavailable, "transact", "the connection broke");
        let hook = At::new(CommitPoint::Committing("transact"), Some(CommitFate::Fail(refusal)));
        let script = bench.script(vec![Play::keep("a", 1)], vec![begun.done(1)]);
        let error = hooked(&bench, &hook).transact(vec![begun.claim()], Box::new(script)).await.unwrap_err();
        assert_eq!(error.error.class(), RetryClass::Transient);
        assert!(!is_whole(&bench, &begun).await);
    });
}

/// A step whose commit is in doubt: its caller was told so, and the store has not decided yet.
async fn in_doubt() -> (Memory, Begun, Arc<At>) {
    let bench = fresh().await;
    let begun = bench.start("k-1").await.unwrap();
    let hook = At::new(CommitPoint::Committing("transact"), Some(CommitFate::InDoubt));
    let script = bench.script(vec![Play::keep("a", 1)], vec![begun.done(1)]);
    let error = hooked(&bench, &hook).transact(vec![begun.claim()], Box::new(script)).await.unwrap_err();
    assert_eq!(error.error.kind(), StoreErrorKind::UnknownCommit);
    assert!(!is_whole(&bench, &begun).await);
    (bench, begun, hook)
}

#[test]
fn giving_back_waits_for_the_commit_in_doubt() {
    block_on(async {
        for commits in [true, false] {
            let (bench, begun, hook) = in_doubt().await;
            assert!(bench.claim(bench.lease().await.unwrap(), 10).await.unwrap().work.is_empty());
            let work = [begun.work];
            let mut freed = Box::pin(bench.store.release_work(&work));
            tokio::select! {
                biased;
                answer = &mut freed => panic!("it did not wait: {answer:?}"),
                () = tokio::task::yield_now() => {}
            }
            let commit = hook.in_doubt.lock().unwrap().take().unwrap();
            if commits {
                commit.commit();
            } else {
                drop(commit);
            }
            assert_eq!(freed.await.unwrap(), [!commits]);
            assert_eq!(is_whole(&bench, &begun).await, commits);
        }
    });
}

#[test]
fn deciding_about_a_saga_waits_for_the_commit_in_doubt() {
    block_on(async {
        let (bench, begun, hook) = in_doubt().await;
        let decision = saga_core::store::Changes {
            saga: Some(begun.advance(1, saga_core::store::Status::Stuck)),
            ..saga_core::store::Changes::default()
        };
        let mut recorded = Box::pin(bench.store.record(vec![decision]));
        tokio::select! {
            biased;
            answer = &mut recorded => panic!("it did not wait: {answer:?}"),
            () = tokio::task::yield_now() => {}
        }
        let commit = hook.in_doubt.lock().unwrap().take().unwrap();
        commit.commit();
        assert!(matches!(recorded.await.unwrap()[..], [Err(saga_core::store::Miss::Saga(_))]));
    });
}

#[test]
fn a_row_that_another_open_transaction_wrote_is_a_conflict() {
    block_on(async {
        let bench = fresh().await;
        let begun = bench.start("k-1").await.unwrap();
        let mut open = bench.store.transaction();
        open.conn().add("a", 41).unwrap();
        // No other connection sees what is not committed.
        assert_eq!(bench.store.read(|table| table.counter("a")), 0);
        let script = || Box::new(bench.script(vec![Play::keep("a", 1)], vec![begun.done(1)]));
        let error = bench.store.transact(vec![begun.claim()], script()).await.unwrap_err();
        assert_eq!((error.error.kind(), error.culprit), (StoreErrorKind::Conflict, None));
        assert!(!is_whole(&bench, &begun).await);
        drop(open);
        bench.store.transact(vec![begun.claim()], script()).await.unwrap();
        assert!(is_whole(&bench, &begun).await);
    });
}

#[test]
fn a_transaction_reads_what_is_committed_and_what_it_wrote() {
    let store = MemoryStore::new();
    let (mut one, mut two) = (store.transaction(), store.transaction());
    one.conn().put("a", *b"one").unwrap();
    one.conn().log(*b"entry");
    assert_eq!(one.conn().get("a").as_deref(), Some(&b"one"[..]));
    assert_eq!(two.conn().get("a"), None);
    one.commit().unwrap();
    // Each statement sees what is committed by then.
    assert_eq!(two.conn().get("a").as_deref(), Some(&b"one"[..]));
    two.conn().delete("a").unwrap();
    assert_eq!(two.conn().get("a"), None);
    drop(two);
    assert_eq!(store.read(|table| table.get("a").map(<[u8]>::to_vec)), Some(b"one".to_vec()));
    assert_eq!(store.read(|table| table.log().to_vec()), [b"entry".to_vec()]);
}

#[test]
fn a_start_waits_for_the_open_start_of_its_key() {
    block_on(async {
        for commits in [true, false] {
            let bench = fresh().await;
            let mut open = bench.store.transaction();
            let saga = bench.new_saga(&Tenant::default(), "k-1").await.unwrap();
            bench.store.start_in(open.conn(), saga).await.unwrap();
            let rival = bench.new_saga(&Tenant::default(), "k-1").await.unwrap();
            let mut started = Box::pin(bench.store.start(vec![rival]));
            tokio::select! {
                biased;
                answer = &mut started => panic!("it did not wait: {answer:?}"),
                () = tokio::task::yield_now() => {}
            }
            if commits {
                open.commit().unwrap();
            } else {
                drop(open);
            }
            assert_eq!(matches!(started.await.unwrap()[..], [Started::AlreadyExists(_)]), commits);
        }
    });
}

#[test]
fn two_steps_that_wait_for_each_other_do_not_wait_for_ever() {
    block_on(async {
        let bench = fresh().await;
        let (one, two) = (bench.start("k-1").await.unwrap(), bench.start("k-2").await.unwrap());
        let meetings = [Arc::new(Meeting::default()), Arc::new(Meeting::default())];
        // Each finishes the other's row as well, which it must wait for.
        let run = |own: &Begun, other: &Begun, mine: &Arc<Meeting>, row: &str| {
            let mut changes = own.done(1);
            changes.finished.push((other.work, Condition::Held));
            let play = Play::keep(row, 1).and(Act::Meet(Arc::clone(mine)));
            let script = bench.script(vec![play], vec![changes]);
            let (store, claim) = (Arc::clone(&bench.store), own.claim());
            tokio::spawn(async move { store.transact(vec![claim], Box::new(script)).await })
        };
        let first = run(&one, &two, &meetings[0], "a");
        let second = run(&two, &one, &meetings[1], "b");
        for meeting in &meetings {
            meeting.entered.notified().await;
        }
        for meeting in &meetings {
            meeting.go_on.notify_one();
        }
        let ended = [first.await.unwrap(), second.await.unwrap()];
        assert_eq!(ended.iter().filter(|ended| ended.is_ok()).count(), 1, "{ended:?}");
        let lost = ended.into_iter().find_map(Result::err).unwrap();
        assert_eq!(lost.error.kind(), StoreErrorKind::Conflict);
    });
}
