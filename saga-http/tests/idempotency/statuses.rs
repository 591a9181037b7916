//! Which responses are kept, and with what.

use http::StatusCode;

use crate::support::{Application, Ledger, Order, on_each_store};

on_each_store!(
    success_keeps_writes_and_response,
    a_kept_refusal_undoes_the_writes,
    what_may_change_is_not_kept,
    a_panic_keeps_nothing,
    a_handler_that_broke_its_transaction_keeps_nothing,
);

pub(crate) async fn success_keeps_writes_and_response<S: Ledger>(shop: Application<S>) {
    for status in [200, 201, 204, 303] {
        let (name, key) = (format!("paid-{status}"), format!("k-{status}"));
        let order = Order { status, ..Order::of(&name) };
        let first = shop.pay(&key, &order).await;
        let again = shop.pay(&key, &order).await;
        assert_eq!((first.status.as_u16(), again.status, again.is_replayed()), (status, first.status, true));
        assert_eq!((shop.store.payments(&name).await, again.body), (1, first.body));
    }
}

pub(crate) async fn a_kept_refusal_undoes_the_writes<S: Ledger>(shop: Application<S>) {
    for status in [400, 402, 410, 422] {
        let (name, key) = (format!("refused-{status}"), format!("k-{status}"));
        let order = Order { status, ..Order::of(&name) };
        let first = shop.pay(&key, &order).await;
        let again = shop.pay(&key, &order).await;
        assert_eq!((first.status.as_u16(), again.status, again.is_replayed()), (status, first.status, true));
        assert_eq!((shop.store.payments(&name).await, again.body), (0, first.body));
    }
    assert_eq!(shop.calls(), 4);
}

pub(crate) async fn what_may_change_is_not_kept<S: Ledger>(shop: Application<S>) {
    for status in [401, 403, 404, 408, 409, 425, 429, 500, 502, 503] {
        let (name, key) = (format!("failed-{status}"), format!("k-{status}"));
        let failed = shop.pay(&key, &Order { status, ..Order::of(&name) }).await;
        assert_eq!((failed.status.as_u16(), shop.store.payments(&name).await), (status, 0));
        // The key is free, for another request too.
        let paid = shop.pay(&key, &Order::of(&name)).await;
        assert_eq!((paid.status, paid.is_replayed()), (StatusCode::OK, false), "{status}");
        assert_eq!(shop.store.payments(&name).await, 1);
    }
}

pub(crate) async fn a_panic_keeps_nothing<S: Ledger>(shop: Application<S>) {
    let order = Order { panics: true, ..Order::of("rent") };
    for calls in 1..=2 {
        let failed = shop.pay("k-1", &order).await;
        assert_eq!((failed.status, failed.is_replayed()), (StatusCode::INTERNAL_SERVER_ERROR, false));
        assert_eq!((failed.json()["status"].as_u64(), shop.calls()), (Some(500), calls));
    }
    assert_eq!(shop.store.payments("rent").await, 0);
    assert_eq!(shop.pay("k-1", &Order::of("rent")).await.status, StatusCode::OK);
}

pub(crate) async fn a_handler_that_broke_its_transaction_keeps_nothing<S: Ledger>(shop: Application<S>) {
    let order = Order { fails: true, ..Order::of("rent") };
    let failed = shop.pay("k-1", &order).await;
    assert_eq!((failed.status, failed.is_replayed()), (StatusCode::INTERNAL_SERVER_ERROR, false));
    assert_eq!(shop.store.payments("rent").await, 0);
    // A refusal rolls back anyway.
    let refused = shop.pay("k-2", &Order { fails: true, status: 404, ..Order::of("rent") }).await;
    assert!(refused.status == StatusCode::NOT_FOUND || refused.status.is_server_error(), "{refused:?}");
    assert_eq!(shop.pay("k-1", &Order::of("rent")).await.body, b"1 of rent");
}
