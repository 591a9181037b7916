//! `kafka+ssl://`: without a TLS feature a sentence, with one a connection to a broker whose certificate is trusted, and a sentence where it
//! is not.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use saga_kafka::{KafkaOptions, KafkaTransport};

/// A property that no error may show the value of.
fn with_password(options: KafkaOptions) -> KafkaOptions {
    options.property("sasl.password", "hunter2")
}

#[cfg(not(any(feature = "tls", feature = "tls-vendored")))]
#[tokio::test]
async fn without_a_feature_there_is_a_sentence() {
    let options = with_password(KafkaOptions::from_url("kafka+ssl://127.0.0.1:1").unwrap());
    let text = KafkaTransport::connect_with(options).await.expect_err("there is no TLS").to_string();
    assert!(text.contains("security.protocol"), "{text}");
    assert!(!text.contains("hunter2") && !text.contains('\n'), "{text}");
}

#[cfg(any(feature = "tls", feature = "tls-vendored"))]
#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_broker_is_connected_to_and_no_other() {
    use std::path::PathBuf;
    use std::time::Duration;

    use saga_servers::{Certificates, TansuServer};

    use self::support::messages::{message, publish, subscribe, take};

    let certificates = Certificates::make().unwrap();
    let server = TansuServer::start_with_tls(certificates.broker()).await.unwrap();
    let options = |authority: PathBuf| {
        let options = KafkaOptions::from_url(&format!("kafka+ssl://{}?partitions=2", server.brokers())).unwrap();
        let options = with_password(options).connect_timeout(Duration::from_secs(5));
        options.property("ssl.ca.location", authority.display().to_string())
    };
    let transport = KafkaTransport::connect_with(options(certificates.authority())).await.unwrap();
    let mut incoming = subscribe(&transport, "a", 1).await;
    publish(&transport, vec![message(1)]).await;
    assert_eq!(take(&mut incoming, 1).await, [1]);
    let refused = KafkaTransport::connect_with(options(certificates.other_authority())).await;
    let text = refused.expect_err("another authority signed it").to_string();
    assert!(text.contains("certificate verify failed"), "{text}");
    assert!(!text.contains("hunter2") && !text.contains('\n'), "{text}");
    // A client without TLS is no client of this broker.
    let plain = with_password(KafkaOptions::new(server.brokers()).connect_timeout(Duration::from_secs(5)));
    let text = KafkaTransport::connect_with(plain).await.expect_err("it is encrypted").to_string();
    assert!(!text.contains("hunter2") && !text.contains('\n'), "{text}");
}
