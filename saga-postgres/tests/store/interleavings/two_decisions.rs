//! Two replicas that decide about one saga at once: whoever comes second decides again on what the first one left (G7).

use std::sync::Arc;

use saga_core::key::Tenant;
use saga_core::store::{Advance, Changes, HistoryEntry, HistoryKind, Records as _, SagaRow, Sagas as _, Status};

use crate::support::{Body, Meeting, Notes as _, Place, begun, completed};

/// A step is done while an operator acts on its saga elsewhere; how the saga stands then, and how often it was decided.
async fn a_step_is_done_while_an_operator_acts(place: &Place) -> (SagaRow, Vec<u64>) {
    let (one, other) = (place.open().await, place.open().await);
    let claim = begun(&one, "k-1").await;
    let meeting = Arc::new(Meeting::default());
    let decided = Arc::new(std::sync::Mutex::new(Vec::new()));
    let body = Body::new(std::slice::from_ref(&claim)).note_and_meet("one", &meeting).decides_again({
        let decided = Arc::clone(&decided);
        move |claims, moved| {
            let [row] = &moved[..] else { panic!("one saga moved, not {moved:?}") };
            decided.lock().unwrap().push(row.version);
            let mut changes = completed(&claims[0]);
            // What the operator did stays, and the step is done besides.
            let state = [&*row.state, &[1]].concat();
            changes.saga =
                Some(Advance { id: row.id, expected: row.version, status: Status::Completed, state, expiry: None });
            vec![changes]
        }
    });
    let running = tokio::spawn({
        let one = one.clone();
        async move { body.transact(&one).await }
    });
    meeting.entered.notified().await;
    let action = Advance { id: claim.saga, expected: 1, status: Status::Running, state: vec![9], expiry: None };
    let entry = HistoryEntry {
        saga: claim.saga,
        step: None,
        kind: HistoryKind::Operator,
        attempt: 0,
        detail: "an operator acted".to_owned(),
    };
    let action = Changes { saga: Some(action), history: vec![entry], ..Changes::default() };
    let applied = other.record(vec![action]).await.unwrap();
    assert!(matches!(applied[..], [Ok(())]), "a decision does not wait for a step that runs: {applied:?}");
    meeting.go_on.notify_one();
    running.await.unwrap().unwrap();
    let row = other.saga(&Tenant::default(), &claim.key).await.unwrap().unwrap();
    one.close().await;
    other.close().await;
    let decided = decided.lock().unwrap().clone();
    (row, decided)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_of_two_decisions_at_once_both_facts_are_kept() {
    let place = Place::new().await;
    let (row, decided) = a_step_is_done_while_an_operator_acts(&place).await;
    assert_eq!(decided, [2], "it is decided again on the version that the operator left");
    assert_eq!((row.version, row.status, &*row.state), (3, Status::Completed, &[9, 1][..]));
    assert_eq!(place.notes().await, ["one"], "its handler ran once");
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_compare_and_set_the_first_decision_is_lost() {
    let place = Place::new().await;
    place.open().await.close().await;
    place.spoil("record_dated_changes", "p.version IS DISTINCT FROM s.expected", "p.version IS NULL").await;
    let (row, decided) = a_step_is_done_while_an_operator_acts(&place).await;
    assert_eq!(decided, Vec::<u64>::new());
    assert_eq!((row.version, &*row.state), (2, &[1][..]), "what the operator did is overwritten");
    place.remove().await;
}
