//! How many items run at once, what they give, and what is undone.

use std::collections::BTreeSet;

use saga_core::StepPhase;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::Branch;
use saga_core::store::{Records, Sagas};
use saga_core::{Outcome, Output, Outputs, Runtime, StepContext, StepError, Tenant, saga_compensation, saga_step};

use super::depot::*;

/// No item, one, as many as run at once, and more.
#[tokio::test]
async fn what_the_items_gave_is_joined_in_the_order_of_the_list() {
    for parcels in [0, 1, 3, 10] {
        let depot = Depot::default();
        let (store, outcome) = run(&packing(3), &depot, parcels).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{parcels}: {outcome}");
        let billed = store.read(|table| table.get(&format!("bill of {parcels}")).unwrap().to_vec());
        assert_eq!(billed, boxes(parcels).into_bytes());
        assert_eq!(depot.happened(&store).len(), parcels as usize);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn so_many_are_under_way_at_once_and_no_more() {
    for at_once in [1, 4] {
        let depot = Depot::gathering(at_once);
        let (store, outcome) = run(&sending(at_once), &depot, 40).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
        assert_eq!(depot.0.lock().unwrap().most, at_once);
        let key = "o-1".parse_key();
        let records = store.records_of(&Tenant::default(), &key).await.unwrap();
        let joined = records.iter().find(|record| record.step.as_str() == "send").unwrap();
        let expected: Vec<String> = (1..=40).map(|parcel| format!("o-1:send#{parcel}")).collect();
        assert_eq!(serde_json::from_slice::<Vec<String>>(joined.output.as_deref().unwrap()).unwrap(), expected);
    }
}

/// One at a time they complete in the order of the list, and so they are undone from its end.
#[tokio::test]
async fn items_are_undone_in_the_reverse_order_of_their_completion() {
    let depot = Depot::refusing(&[0]);
    let (store, outcome) = run(&packing(1), &depot, 5).await;
    let Outcome::Compensated { failed_step, .. } = outcome else { panic!("{outcome}") };
    assert_eq!(failed_step, "bill");
    let undone: Vec<String> = (1..=5).rev().map(|parcel| format!("unpack {parcel}")).collect();
    assert_eq!(depot.happened(&store)[5..], undone);
    assert!(store.read(|table| table.get("packed 1").is_none()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_failed_item_lets_no_other_begin_and_undoes_those_that_took_effect() {
    const PARCELS: u32 = 50;
    for at_once in [1, 3] {
        for saga in [packing(at_once), sending(at_once)] {
            let depot = Depot::refusing(&[4]);
            let (store, outcome) = run(&saga, &depot, PARCELS).await;
            let Outcome::Compensated { failed_step, .. } = outcome else { panic!("{outcome}") };
            assert!(failed_step.ends_with("#4"), "{failed_step}");
            let happened = depot.happened(&store);
            let (undone, done): (Vec<_>, Vec<_>) = happened.into_iter().partition(|what| what.starts_with("un"));
            let as_undone: BTreeSet<String> = done.iter().map(|what| format!("un{what}")).collect();
            assert_eq!(undone.iter().cloned().collect::<BTreeSet<_>>(), as_undone);
            assert_eq!(undone.len(), done.len());
            // One at a time is exact. Side by side, others may begin until the refusal is written down, but never all.
            let most = if at_once == 1 { 4 } else { PARCELS as usize - 2 };
            assert!((4 - at_once..=most).contains(&done.len()), "{done:?}");
            assert!(store.read(|table| table.get("packed 1").is_none()));
        }
    }
}

/// A thousand items, eight at once: each is done once, and what is written for one does not grow with what they gave.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_thousand_items_are_done_and_undone() {
    const PARCELS: u32 = 1_000;
    for saga in [packing(8), sending(8)] {
        let depot = Depot::default();
        let (store, outcome) = run(&saga, &depot, PARCELS).await;
        assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
        let row = store.saga(&Tenant::default(), &"o-1".parse_key()).await.unwrap().unwrap();
        assert!(row.state.len() < 5_000, "the state has {} bytes", row.state.len());
    }
    let depot = Depot::refusing(&[0]);
    let (store, outcome) = run(&packing(8), &depot, PARCELS).await;
    assert!(matches!(outcome, Outcome::Compensated { .. }), "{outcome}");
    assert_eq!(depot.happened(&store).len(), 2 * PARCELS as usize);
    let row = store.saga(&Tenant::default(), &"o-1".parse_key()).await.unwrap().unwrap();
    assert!(row.state.len() < 5_000, "the state has {} bytes", row.state.len());
}

#[tokio::test]
async fn a_list_of_a_saga_that_was_undone_is_on_its_way_no_more() {
    for (refused, phase) in [(0, StepPhase::Undone), (1, StepPhase::Cancelled)] {
        let (store, saga, depot) = (MemoryStore::new(), packing(1), Depot::refusing(&[refused]));
        let runtime = runtime(&store, &saga, &depot).await;
        let running = runtime.start(&saga, "o-1", 2).await.unwrap();
        assert!(matches!(running.outcome().await.unwrap(), Outcome::Compensated { .. }));
        let status = runtime.status("o-1").await.unwrap().unwrap();
        assert_eq!((status.steps[1].step.as_str(), status.steps[1].phase), ("pack", phase));
        runtime.shutdown().await;
    }
}

#[tokio::test]
async fn a_person_gives_the_output_of_an_item_that_is_stuck() {
    #[saga_step(compensate = unweigh, retry(attempts = 1), on_exhausted = "compensate")]
    async fn weigh(_ctx: &StepContext, parcel: u32) -> Result<u32, StepError> {
        if parcel == 2 { Err(std::io::Error::other("no answer"))? } else { Ok(10 * parcel) }
    }
    #[saga_compensation]
    async fn unweigh(_ctx: &StepContext, _parcel: u32, _weight: u32) -> Result<(), StepError> {
        Ok(())
    }
    #[saga_step(no_compensation)]
    async fn sum(tx: &mut MemoryConn, weights: Vec<u32>) -> Result<(), StepError> {
        tx.put("weights", format!("{weights:?}").into_bytes())?;
        Ok(())
    }
    let saga = new()
        .for_each::<weigh, _>(2, |parcels: &u32| (1..=*parcels).collect())
        .step_from::<sum, _>(|_: &u32, Outputs(weights): Outputs<weigh>| weights)
        .build()
        .unwrap();
    let store = MemoryStore::new();
    let runtime = runtime(&store, &saga, &Depot::default()).await;
    let running = runtime.start(&saga, "o-1", 4).await.unwrap();
    let Outcome::Stuck { step, .. } = running.outcome().await.unwrap() else { panic!("not stuck") };
    assert_eq!(step, "weigh#2");
    let status = loop {
        let status = runtime.status("o-1").await.unwrap().unwrap();
        let under_way = |step: &&saga_core::engine::StepStatus| step.phase == StepPhase::Started;
        if status.steps.iter().filter(under_way).count() == 1 {
            break status;
        }
        tokio::task::yield_now().await;
    };
    let counts = status.steps[0].items.unwrap();
    assert_eq!((counts.all, counts.undone), (4, 0));
    assert!((1..=3).contains(&counts.done), "{counts:?}");
    assert_eq!(status.steps[1].step, "weigh#2");
    assert!(status.steps[1].stuck.is_some());
    let operator = || runtime.admin().control("o-1").at_revision(status.revision);
    let refused = operator().skip("lost").await.unwrap_err().to_string();
    assert!(refused.contains("takes the output of `weigh#2`"), "{refused}");
    let refused = operator().skip_with(&"heavy", "lost").await.unwrap_err().to_string();
    assert!(refused.contains("`weigh#2` cannot have this output"), "{refused}");
    operator().skip_with(&7_u32, "weighed by hand").await.unwrap();
    assert!(matches!(running.closed().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(store.read(|table| table.get("weights").unwrap().to_vec()), b"[10, 7, 30, 40]");
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_list_that_is_too_long_is_stuck_with_the_limit() {
    let (store, saga, depot) = (MemoryStore::new(), sending(2), Depot::default());
    let runtime =
        Runtime::builder(store.clone()).saga(&saga).state(depot.clone()).settings(|settings| settings.items_max = 9);
    let runtime = runtime.start().await.unwrap();
    let running = runtime.start(&saga, "o-1", 10).await.unwrap();
    let Outcome::Stuck { step, reason, .. } = running.outcome().await.unwrap() else { panic!("not stuck") };
    assert_eq!(step, "send");
    assert!(reason.contains("10 items; `items_max` allows 9"), "{reason}");
    assert!(depot.happened(&store).is_empty());
    runtime.shutdown().await;
}

/// One for-each behind another, and one in a branch beside a step.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lists_stand_in_branches_and_behind_each_other() {
    let saga = new()
        .step::<plan>()
        .parallel(|group| {
            group.branch(|branch| branch.for_each::<pack, _>(2, |_: &u32, Output(list): Output<plan>| list)).branch(
                |branch: Branch<_, u32>| branch.for_each::<send, _>(3, |parcels: &u32| (1..=*parcels).collect()),
            )
        })
        .step::<bill>()
        .build()
        .unwrap();
    for (refused, is_completed) in [(100, true), (3, false), (0, false)] {
        let depot = Depot::refusing(&[refused]);
        let (store, outcome) = run(&saga, &depot, 6).await;
        assert_eq!(matches!(outcome, Outcome::Completed { .. }), is_completed, "{refused}: {outcome}");
        let (undone, done): (Vec<_>, Vec<_>) =
            depot.happened(&store).into_iter().partition(|what| what.starts_with("un"));
        let expected = if is_completed { 0 } else { done.len() };
        assert_eq!(undone.len(), expected, "{done:?} {undone:?}");
    }
}

/// What one process left half done another one takes up, with the list as it was.
#[tokio::test]
async fn another_process_goes_on_with_the_list() {
    let (store, saga, depot) = (MemoryStore::new(), sending(3), Depot::default());
    let first = runtime(&store, &saga, &depot).await;
    let running = first.start(&saga, "o-1", 200).await.unwrap();
    while depot.happened(&store).len() < 20 {
        tokio::task::yield_now().await;
    }
    first.shutdown().await;
    drop(running);
    assert!(depot.happened(&store).len() < 200, "the first process is to leave something");
    let second = runtime(&store, &saga, &depot).await;
    let running = second.start(&saga, "o-1", 200).await.unwrap();
    assert!(matches!(running.outcome().await.unwrap(), Outcome::Completed { .. }));
    assert_eq!(depot.happened(&store).len(), 200);
    second.shutdown().await;
}

trait ParseKey {
    fn parse_key(&self) -> saga_core::Key;
}

impl ParseKey for str {
    fn parse_key(&self) -> saga_core::Key {
        saga_core::Key::new(self).unwrap()
    }
}

/// G8: its items have taken effect, and nobody takes the list that would be too long to be stored.
#[tokio::test]
async fn g8_a_list_that_nobody_takes_holds_up_no_saga() {
    let (store, depot) = (MemoryStore::new(), Depot::default());
    let sagas = [sending(2), packing(2)];
    let runtime = Runtime::builder(store.clone()).saga(&sagas[0]).state(depot.clone());
    let runtime = runtime.settings(|settings| settings.payload_bytes_max = 200).start().await.unwrap();
    let outcome = runtime.start(&sagas[0], "o-1", 40).await.unwrap().outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome}");
    let recorded = runtime.status("o-1").await.unwrap().unwrap();
    assert_eq!(recorded.steps[0].items.map(|items| items.done), Some(40));
    runtime.shutdown().await;
    // Where a later step takes it, there is no way round it.
    let runtime = Runtime::builder(MemoryStore::new()).saga(&sagas[1]).state(depot.clone());
    let runtime = runtime.settings(|settings| settings.payload_bytes_max = 200).start().await.unwrap();
    let outcome = runtime.start(&sagas[1], "o-1", 40).await.unwrap().outcome().await.unwrap();
    let Outcome::Stuck { step, reason, .. } = outcome else { panic!("{outcome}") };
    assert_eq!(step, "pack");
    assert!(reason.contains("the list of what its items gave cannot be stored"), "{reason}");
    runtime.shutdown().await;
}
