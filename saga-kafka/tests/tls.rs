//! `kafka+ssl://`: without the feature a sentence; with it messages to and from a broker whose certificate is trusted and names its host,
//! and a sentence where it is not, and where the address is of the other kind.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use saga_kafka::{KafkaOptions, KafkaTransport};

/// Why no connection comes about: one line without a password.
async fn refused(url: &str) -> String {
    let options = KafkaOptions::from_url(url).unwrap().connect_timeout(std::time::Duration::from_secs(8));
    let text = KafkaTransport::connect_with(options).await.expect_err(url).to_string();
    assert!(!text.contains("hunter2") && !text.contains('\n'), "{text}");
    text
}

#[cfg(not(feature = "tls"))]
#[tokio::test]
async fn without_the_feature_there_is_a_sentence() {
    let text = refused("kafka+ssl://me:hunter2@127.0.0.1:1").await;
    assert!(text.contains("the feature `tls` of saga-kafka"), "{text}");
}

#[cfg(feature = "tls")]
mod with_the_feature {
    use saga_core::transport::{Subscription, Transport as _};
    use saga_servers::{Certificate, Certificates};
    use tokio::task::JoinSet;

    use super::support::TlsBroker;
    use super::support::messages::{accept, message, publish, receive};
    use super::{KafkaOptions, KafkaTransport, refused};

    fn url(broker: &TlsBroker, authority: &std::path::Path) -> String {
        format!("kafka+ssl://localhost:{}?partitions=2&session_timeout=6&ca_file={}", broker.port, authority.display())
    }

    async fn a_message_arrives(url: &str) {
        let transport = KafkaTransport::connect_with(KafkaOptions::from_url(url).unwrap()).await.unwrap();
        let subscription = Subscription { name: "a".into(), topics: vec!["orders".into()], prefetch: 1 };
        let mut incoming = transport.subscribe(subscription).await.unwrap();
        let mut sent = message(7);
        sent.topic = "orders".into();
        publish(&transport, vec![sent.clone()]).await;
        let came = receive(&mut incoming, 1).await;
        accept(&mut incoming, &came).await;
        assert_eq!(came[0].message.as_ref().unwrap(), &sent);
        transport.close().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_trusted_broker_is_connected_to_and_no_other() {
        let certificates = Certificates::make().unwrap();
        let broker = TlsBroker::start(&certificates.broker(), None).await;
        let (trusted, port) = (url(&broker, &certificates.authority()), broker.port);
        a_message_arrives(&trusted).await;
        let mut refusals = JoinSet::new();
        for (url, hint) in [
            (url(&broker, &certificates.other_authority()), "an authority of `ssl.ca.location`"),
            (format!("kafka+ssl://localhost:{port}"), "an authority of `ssl.ca.location`"),
            (format!("kafka://me:hunter2@localhost:{port}"), "write kafka+ssl://"),
            (format!("kafka+ssl://{}", broker.tansu.brokers()), "write kafka://"),
        ] {
            refusals.spawn(async move {
                let text = refused(&url).await;
                assert!(text.contains(hint), "{url}: {text}");
            });
        }
        refusals.join_all().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_certificate_of_another_host_is_refused() {
        let certificates = Certificates::make().unwrap();
        let broker = TlsBroker::start(&certificates.of_another_host().unwrap(), None).await;
        let text = refused(&url(&broker, &certificates.authority())).await;
        assert!(text.contains("name the host that the client connects to"), "{text}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_broker_may_ask_for_a_certificate_of_the_client() {
        let certificates = Certificates::make().unwrap();
        let broker = TlsBroker::start(&certificates.broker(), Some(&certificates.authority())).await;
        let anonymous = url(&broker, &certificates.authority());
        let text = refused(&anonymous).await;
        assert!(text.contains("it may ask for a certificate"), "{text}");
        let Certificate { certificate, key } = certificates.of_another_host().unwrap();
        let own = format!("&certificate_file={}&key_file={}", certificate.display(), key.display());
        a_message_arrives(&format!("{anonymous}{own}")).await;
    }

    /// A key without its certificate, and a file that is none.
    #[tokio::test]
    async fn unusable_files_are_named() {
        let certificates = Certificates::make().unwrap();
        let Certificate { certificate, key } = certificates.broker();
        let foreign = certificates.of_another_host().unwrap();
        for (parameters, property) in [
            (format!("ca_file={}", key.display()), "ssl.ca.location"),
            (
                format!("certificate_file={}&key_file={}", certificate.display(), foreign.key.display()),
                "ssl.key.location",
            ),
            ("ca_file=/nowhere/hunter2.pem".to_owned(), "ssl.ca.location names cannot be read"),
        ] {
            let text = refused(&format!("kafka+ssl://me:hunter2@localhost:1?{parameters}")).await;
            assert!(text.contains(property), "{parameters}: {text}");
        }
    }
}
