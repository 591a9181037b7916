//! Headers that no client should send.

use http::{HeaderValue, StatusCode};
use proptest::prelude::*;
use saga_core::memory::MemoryStore;

use crate::support::{Application, Order, request, send};

/// Bytes that a header may have, mostly those that matter to the grammar.
fn header() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => prop::sample::select(b"\"\\;=, \tabk7-_.*:?".to_vec()),
        1 => prop_oneof![Just(b'\t'), 0x20_u8..=0x7e, 0x80_u8..=0xff],
    ];
    prop_oneof![
        9 => prop::collection::vec(byte.clone(), 0..40),
        1 => prop::collection::vec(byte, 200..600),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// Whatever the headers are, the server does not fail, and what was accepted once is a replay the second time.
    #[test]
    fn no_header_makes_the_server_fail(
        keys in prop::collection::vec(header(), 0..3),
        prefer in prop::option::of(header()),
        content_type in prop::sample::select(vec!["application/json", "application/json; charset=utf-8", "application/problem+json"]),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let shop = Application::<MemoryStore>::start().await;
            let mut answers = Vec::new();
            for _ in 0..2 {
                let mut request = request("/payments", "k-1");
                let headers = request.headers_mut().unwrap();
                headers.remove("idempotency-key");
                headers.insert("content-type", content_type.parse().unwrap());
                for key in &keys {
                    headers.append("idempotency-key", HeaderValue::from_bytes(key).unwrap());
                }
                if let Some(prefer) = &prefer {
                    headers.insert("prefer", HeaderValue::from_bytes(prefer).unwrap());
                }
                answers.push(send(&shop.app, request, Order::of("rent").text()).await);
            }
            let [first, second] = &answers[..] else { panic!("two requests were sent") };
            let statuses = [StatusCode::OK, StatusCode::BAD_REQUEST];
            assert!(statuses.contains(&first.status), "{first:?}");
            assert_eq!(first.status, second.status);
            assert_eq!(first.status == StatusCode::OK, second.is_replayed());
            assert_eq!(shop.calls(), u32::from(first.status == StatusCode::OK));
            assert!(keys.len() == 1 || first.status == StatusCode::BAD_REQUEST);
        });
    }
}
