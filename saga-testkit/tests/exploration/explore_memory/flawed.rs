//! Each of several broken sagas is found.

use saga_testkit::explore::{Failures, explore};

use super::shop::*;

fn found_in(failures: &Failures, disturbance: &str) -> bool {
    failures.broken.iter().any(|broken| broken.disturbance.contains(disturbance))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_does_not_honour_keys_is_found() {
    let failures = explore(Shop::GatewayForgets).await.unwrap_err();
    assert!(found_in(&failures, "crash behind charge"), "{failures}");
    assert!(found_in(&failures, "run twice: behind charge"), "{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_is_not_idempotent_is_found() {
    let failures = explore(Shop::StockByHand).await.unwrap_err();
    assert!(found_in(&failures, "crash behind take-out"), "{failures}");
    assert!(found_in(&failures, "run twice: behind take-out:undo"), "{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_is_asked_about_the_way_back_too() {
    let failures = explore(Shop::AuditDisagrees).await.unwrap_err();
    assert!(failures.broken.iter().all(|broken| broken.problem.contains("does not like it")), "{failures}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disturbance_before_an_audit_that_panics_is_named() {
    let failures = explore(Shop::AuditPanics).await.unwrap_err();
    assert!(failures.broken.iter().all(|broken| broken.problem.contains("the audit asserts")), "{failures}");
    let named = ["undisturbed, while charge rejects", "an error each time before take-out"];
    assert!(named.iter().all(|disturbance| found_in(&failures, disturbance)), "{failures}");
}

/// Its step and its reason are named, and an operator does not try it again for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_undo_that_never_succeeds_is_found_at_once() {
    let failures = explore(Shop::UndoRejects).await.unwrap_err();
    let stuck = "is stuck at `take-out`: the shelf is full";
    assert!(failures.broken.iter().any(|broken| broken.problem.contains(stuck)), "{failures}");
    assert!(!failures.broken.iter().any(|broken| broken.problem.contains("within 120s")), "{failures}");
}
