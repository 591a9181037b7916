//! What a lock that ends hands over, where requests name several entities.

use saga_core::store::{LockAnswer, LockRequest};

use super::semantic_locks::{ask, granted, having, request, three, unlock, waits};
use crate::check::{Outcome, ensure, ensure_eq};
use crate::fixture::Bench;
use crate::harness::StoreHarness;

pub(crate) async fn each_entity_of_a_lock_goes_to_its_own_next_saga<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, third] = three(&bench).await?;
    granted(&bench, request(&first, &[1, 2])).await?;
    waits(&bench, request(&second, &[1])).await?;
    waits(&bench, request(&third, &[2])).await?;
    unlock(&bench, &first).await?;
    ensure_eq!(having(&bench).await?, ["k-2", "k-3"], "the sagas that have a lock behind one of two entities");
    Ok(())
}

pub(crate) async fn a_request_gets_nothing_before_all_its_entities_are_free<H: StoreHarness>(
    bench: Bench<H>,
) -> Outcome {
    let [first, second, third] = three(&bench).await?;
    granted(&bench, request(&first, &[1])).await?;
    granted(&bench, request(&second, &[2])).await?;
    waits(&bench, request(&third, &[1, 2])).await?;
    unlock(&bench, &first).await?;
    ensure_eq!(having(&bench).await?, ["k-2"], "the sagas that have a lock while one of two entities is free");
    unlock(&bench, &second).await?;
    ensure_eq!(having(&bench).await?, ["k-3"], "the saga that waited for both entities");
    Ok(())
}

pub(crate) async fn a_request_that_gave_up_holds_up_no_other<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let [first, second, third] = three(&bench).await?;
    granted(&bench, request(&first, &[1])).await?;
    let short = LockRequest { within: bench.harness.timing().lease, ..request(&second, &[1, 2]) };
    waits(&bench, short.clone()).await?;
    // The entity 2 is free, but this request is behind one that waits for both.
    waits(&bench, request(&third, &[2])).await?;
    bench.outlast_lease().await;
    let answer = ask(&bench, short).await?;
    ensure!(matches!(answer, LockAnswer::TimedOut(_)), "a saga has waited long enough: {answer:?}");
    ensure_eq!(having(&bench).await?, ["k-1", "k-3"], "the sagas that have a lock behind one that gave up");
    Ok(())
}
