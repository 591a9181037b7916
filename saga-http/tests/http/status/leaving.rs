//! Clients that leave while they wait.

use axum::Router;
use axum::http::{Request, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use saga_core::engine::SagaAdmin;
use tokio::net::TcpListener;

use crate::status::fixture::{Shop, User, get, routes};
use crate::status::stores::{Fresh, on_every_store};

async fn log_in(mut request: Request<axum::body::Body>, next: Next) -> Response {
    request.extensions_mut().insert(User("operator"));
    next.run(request).await
}

/// A server with room for one client that waits, over real connections.
async fn a_client_that_leaves_makes_room<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    shop.start("ada-1", 3).await;
    let bare = SagaAdmin::new(shop.store.clone()).saga(&shop.order);
    for admin in [shop.runtime.admin(), bare] {
        let app: Router = Router::new().merge(routes(admin).waiting_max(1)).layer(from_fn(log_in));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move { axum::serve(listener, app).await });
        let client = reqwest::Client::new();
        let follow = async || client.get(format!("{address}/sagas/ada-1/events")).send().await.unwrap();

        let first = follow().await;
        assert_eq!(first.status(), StatusCode::OK);
        let refused = follow().await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "2");
        assert!(refused.text().await.unwrap().contains("too many clients wait for changes"));
        // A client that does not wait needs no room.
        let looks = client.get(format!("{address}/sagas/ada-1")).send().await.unwrap();
        assert_eq!(looks.status(), StatusCode::OK);

        drop(first);
        while follow().await.status() != StatusCode::OK {
            tokio::task::yield_now().await;
        }
        server.abort();
    }
    shop.gate.open(2);
    shop.runtime.shutdown().await;
}

/// The saga goes on without its client.
async fn a_saga_does_not_need_the_client_that_waits_for_it<S: Fresh>() {
    let shop = Shop::<S>::new().await;
    let handle = shop.start("ada-1", 3).await;
    for app in [&shop.app, &shop.without_runtime()] {
        let waits = get(app, "/sagas/ada-1", &[("prefer", "wait=60")]);
        tokio::select! {
            biased;
            _ = waits => panic!("the gate is closed"),
            () = tokio::task::yield_now() => {}
        }
    }
    shop.gate.open(2);
    handle.outcome().await.unwrap();
    assert_eq!(shop.get("/sagas/ada-1").await.json()["status"], "completed");
    shop.runtime.shutdown().await;
}

on_every_store! {
    a_saga_does_not_need_the_client_that_waits_for_it,
}

/// Not in virtual time, which does not wait for connections.
mod over_tcp {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_client_that_leaves_makes_room() {
        crate::status::stores::within(super::a_client_that_leaves_makes_room::<saga_core::memory::MemoryStore>()).await;
    }
}
