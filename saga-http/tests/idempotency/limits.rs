//! How long requests and responses may be.

use http::StatusCode;

use crate::support::{Application, Ledger, Order, on_each_store, request, send};

on_each_store!(a_request_has_a_longest_length, a_response_that_cannot_be_kept_undoes_all);

pub(crate) async fn a_request_has_a_longest_length<S: Ledger>(shop: Application<S>) {
    let padded = |bytes: usize| {
        let order = Order::of("rent").text();
        format!("{order}{}", " ".repeat(bytes - order.len()))
    };
    let refused = send(&shop.app, request("/payments", "k-1"), padded((1 << 20) + 1)).await;
    assert_eq!((refused.status, &refused.json()["status"]), (StatusCode::PAYLOAD_TOO_LARGE, &413.into()));
    let fits = send(&shop.app, request("/payments", "k-1"), padded(1 << 20)).await;
    assert_eq!((fits.status, shop.calls()), (StatusCode::OK, 1));
}

pub(crate) async fn a_response_that_cannot_be_kept_undoes_all<S: Ledger>(shop: Application<S>) {
    let rest = "1 of rent".len();
    let short = |idempotency: saga_http::Idempotency<S>| idempotency.response_bytes_max(rest + 10);
    let app = shop.with(short);
    for order in [
        Order { bytes: 11, ..Order::of("rent") },
        Order { streams: true, ..Order::of("rent") },
        Order { streams: true, status: 422, ..Order::of("rent") },
    ] {
        let failed = send(&app, request("/payments", "k-1"), order.text()).await;
        assert_eq!(failed.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(failed.json()["detail"].as_str().unwrap().contains("cannot be kept"), "{failed:?}");
        assert_eq!(shop.store.payments("rent").await, 0);
    }
    let longest = Order { bytes: 10, ..Order::of("rent") };
    let kept = send(&app, request("/payments", "k-1"), longest.text()).await;
    let again = send(&app, request("/payments", "k-1"), longest.text()).await;
    assert_eq!((kept.status, again.is_replayed(), again.body), (StatusCode::OK, true, kept.body));
    // By default it is 256 KiB.
    let order = Order { bytes: (256 << 10) - rest, ..Order::of("food") };
    assert_eq!(shop.pay("k-2", &order).await.status, StatusCode::OK);
    let order = Order { bytes: (256 << 10) - rest + 1, ..Order::of("food") };
    assert_eq!(shop.pay("k-3", &order).await.status, StatusCode::INTERNAL_SERVER_ERROR);
}
