//! `kafka+ssl://` where the client was built without TLS. No broker of the tests has TLS, so a connection with it is not tested.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(not(any(feature = "tls", feature = "tls-vendored")))]
#[tokio::test]
async fn without_a_feature_there_is_a_sentence_and_no_password() {
    use saga_kafka::{KafkaOptions, KafkaTransport};

    let options = KafkaOptions::from_url("kafka+ssl://me:hunter2@127.0.0.1:1").unwrap();
    let text = KafkaTransport::connect_with(options).await.expect_err("there is no TLS").to_string();
    assert!(text.contains("security.protocol"), "{text}");
    assert!(!text.contains("hunter2") && !text.contains('\n'), "{text}");
}
