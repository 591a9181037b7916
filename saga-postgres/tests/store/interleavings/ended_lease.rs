//! A lease that ends inside a batch: the row lock is the claim, and a taker skips it (G2, G7).

use std::sync::Arc;
use std::time::Duration;

use saga_core::store::{ClaimRequest, Claimed, Status, Work as _};

use crate::support::{Body, Meeting, Notes as _, Place, begun, definition, member, status};

/// A batch whose leases end while it runs; what another replica then claims, and whether the batch committed.
async fn a_lease_ends_inside_a_batch(place: &Place) -> (Claimed, bool) {
    let (one, other) = (place.open().await, place.open().await);
    let mut claims = [begun(&one, "k-1").await, begun(&one, "k-2").await];
    let short = member(&one, Duration::from_millis(1)).await;
    let request = ClaimRequest { lease: short, limit: 10, definitions: [definition()].into(), takes_over: true };
    for work in one.claim(request).await.unwrap().work {
        claims.iter_mut().filter(|claim| claim.saga == work.saga).for_each(|claim| claim.work = work.work);
    }
    let meeting = Arc::new(Meeting::default());
    let body = Body::new(&claims).note("one").note_and_meet("two", &meeting);
    let running = tokio::spawn({
        let one = one.clone();
        async move { body.transact(&one).await }
    });
    meeting.entered.notified().await;
    let mut conn = place.connection().await;
    let ended = format!("SELECT bool_and(leased_until < clock_timestamp()) FROM {}.work", place.schema);
    while !sqlx::query_scalar::<_, bool>(sqlx::AssertSqlSafe(ended.clone())).fetch_one(&mut conn).await.unwrap() {
        tokio::task::yield_now().await;
    }
    let lease = member(&other, Duration::from_hours(1)).await;
    let taken = other
        .claim(ClaimRequest { lease, limit: 10, definitions: [definition()].into(), takes_over: true })
        .await
        .unwrap();
    meeting.go_on.notify_one();
    let committed = running.await.unwrap().is_ok();
    if committed {
        for key in ["k-1", "k-2"] {
            assert_eq!(status(&other, key).await, Some(Status::Completed));
        }
    }
    one.close().await;
    other.close().await;
    (taken, committed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g7_a_lease_that_ends_inside_a_batch_changes_nothing() {
    let place = Place::new().await;
    let (taken, committed) = a_lease_ends_inside_a_batch(&place).await;
    assert!(taken.work.is_empty(), "another replica took rows of a running batch: {taken:?}");
    assert_eq!(taken.next_due_in, None, "it would look again at once, and spin until the batch ends");
    assert!(committed);
    assert_eq!(place.notes().await, ["one", "two"]);
    place.remove().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_row_lock_the_batch_is_lost() {
    let place = Place::new().await;
    place.open().await.close().await;
    place.spoil("grant_claims_of_tenants", "FOR UPDATE SKIP LOCKED", "").await;
    let (taken, committed) = a_lease_ends_inside_a_batch(&place).await;
    assert_eq!(taken.work.len(), 2);
    assert!(!committed);
    place.remove().await;
}
