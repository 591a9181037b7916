//! Planted mistakes: each is found by the test of the rule that it breaks.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{OriginalUri, Request};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use http::HeaderValue;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_testkit::StoreHarness as _;
use saga_testkit::faulty::{FaultyHarness, FaultyStore, StoreFlaw};

use crate::support::{Application, Ledger};
use crate::{doubt, in_flight, rules, statuses};

/// A rule that does not end is broken.
const PATIENCE: Duration = Duration::from_secs(10);

impl Ledger for FaultyStore {
    type Place = ();

    async fn fresh() -> (Self, ()) {
        (FaultyHarness::default().fresh().await, ())
    }

    async fn pay(conn: &mut MemoryConn, name: &str) -> Result<i64, String> {
        MemoryStore::pay(conn, name).await
    }

    async fn fail(conn: &mut MemoryConn) {
        MemoryStore::fail(conn).await;
    }

    async fn payments(&self, name: &str) -> i64 {
        self.memory().payments(name).await
    }

    fn doubtful(&self, commits: bool) -> Self {
        FaultyHarness::default().doubtful(self, commits).unwrap()
    }
}

async fn with(flaw: Option<StoreFlaw>) -> Application<FaultyStore> {
    let store = FaultyHarness { store: flaw, transport: None }.fresh().await;
    Application::on(store, ()).await
}

/// Whether the test of the rule fails.
async fn is_found(rule: impl Future<Output = ()> + Send + 'static) -> bool {
    let mut running = tokio::spawn(rule);
    let ended = tokio::time::timeout(PATIENCE, &mut running).await;
    running.abort();
    !matches!(ended, Ok(Ok(())))
}

macro_rules! planted_in_the_store {
    ($($test:ident: $flaw:ident is found by $rule:path;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread")]
            async fn $test() {
                assert!(!is_found($rule(with(None).await)).await, "without the mistake the rule holds");
                assert!(is_found($rule(with(Some(StoreFlaw::$flaw)).await)).await, "the mistake was not found");
            }
        )*
    };
}

planted_in_the_store! {
    a_response_outside_of_the_commit_is_found: CommitsResponsesLater is found by doubt::an_unknown_commit_is_found_out;
    keys_without_a_principal_are_found: IgnoresPrincipals is found by rules::a_key_is_of_one_principal;
    a_claim_that_is_kept_after_a_404_is_found: KeepsFailedKeys is found by statuses::what_may_change_is_not_kept;
    waiting_instead_of_409_is_found: WaitsForTheKey is found by in_flight::a_key_in_flight_is_refused;
    payloads_that_are_not_compared_are_found:
        IgnoresTheFingerprint is found by rules::another_request_under_the_key_is_refused;
    refusals_that_keep_their_writes_are_found:
        KeepsRefusedWrites is found by statuses::a_kept_refusal_undoes_the_writes;
}

/// As if the path were no part of the fingerprint.
async fn without_path(mut request: Request, next: Next) -> Result<Response, Infallible> {
    let query = request.uri().query().map_or(String::new(), |query| format!("?{query}"));
    let uri = format!("/{query}").parse().unwrap();
    request.extensions_mut().insert(OriginalUri(uri));
    Ok(next.run(request).await)
}

/// As if a replay had the cookie of the first response.
async fn with_cookies(request: Request, next: Next) -> Result<Response, Infallible> {
    let mut response = next.run(request).await;
    if response.headers().contains_key("idempotent-replayed") {
        response.headers_mut().insert("set-cookie", HeaderValue::from_static("session=1"));
    }
    Ok(response)
}

#[tokio::test]
async fn a_path_that_is_not_compared_is_found() {
    let mut shop = Application::<MemoryStore>::start().await;
    shop.app = shop.app.layer(from_fn(without_path));
    assert!(is_found(rules::another_request_under_the_key_is_refused(shop)).await);
}

#[tokio::test]
async fn a_cookie_that_is_replayed_is_found() {
    let mut shop = Application::<MemoryStore>::start().await;
    shop.app = shop.app.layer(from_fn(with_cookies));
    assert!(is_found(rules::a_retry_gets_the_same_response(shop)).await);
}
