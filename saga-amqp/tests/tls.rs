//! `amqps://`: without a TLS feature a sentence, with one a connection to a broker whose certificate is trusted, and a
//! sentence where it is not.
//!
//! Which certificates a process trusts is decided by its environment, so the connections are made by processes of their
//! own: this one again, with the address as the argument.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use saga_amqp::{AmqpOptions, AmqpTransport};
use saga_core::transport::{Subscription, Transport as _};
use saga_servers::{Certificates, RabbitMqServer};

/// Whether one of the features is there.
const HAS_TLS: bool = cfg!(any(feature = "tls-ring", feature = "tls-aws-lc-rs", feature = "tls-native"));

#[tokio::main]
async fn main() {
    let address = std::env::args().skip(1).find(|argument| argument.starts_with("amqps://"));
    match address {
        Some(address) => connect(&address).await,
        None if HAS_TLS => a_trusted_broker_is_connected_to_and_no_other().await,
        None => without_a_feature_there_is_a_sentence().await,
    }
}

/// Connects and subscribes, or says why not.
async fn connect(address: &str) {
    let connected = AmqpTransport::connect_with(AmqpOptions::new(address)).await;
    let transport = connected.unwrap_or_else(|error| {
        println!("{error}");
        std::process::exit(1);
    });
    let subscription = Subscription { name: "a".into(), topics: vec!["orders".into()], prefetch: 1 };
    transport.subscribe(subscription).await.expect("one can subscribe");
    println!("connected");
}

async fn without_a_feature_there_is_a_sentence() {
    let error = AmqpTransport::connect("amqps://me:hunter2@localhost/").await.expect_err("there is no TLS");
    let text = error.to_string();
    assert!(["tls-ring", "tls-aws-lc-rs", "tls-native"].iter().all(|feature| text.contains(feature)), "{text}");
    assert!(!text.contains("hunter2") && !text.contains('\n'), "{text}");
    println!("test without_a_feature_there_is_a_sentence ... ok");
}

async fn a_trusted_broker_is_connected_to_and_no_other() {
    let certificates = Certificates::make().unwrap();
    let server = RabbitMqServer::start_with_tls(certificates.broker()).await.unwrap();
    let trusting = run_again(&server.tls_url(), &certificates.authority());
    assert_eq!(said(&trusting), "connected", "{trusting:?}");
    let other = run_again(&server.tls_url(), &certificates.other_authority());
    let text = said(&other);
    assert!(!other.status.success() && text.contains("cannot connect to the broker at localhost"), "{other:?}");
    assert!(!text.contains("guest:guest") && !text.contains('\n'), "{text}");
    println!("test a_trusted_broker_is_connected_to_and_no_other ... ok");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// This program again, trusting what the authority signed and nothing else.
fn run_again(address: &str, authority: &Path) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(address).env("SSL_CERT_FILE", authority).env_remove("SSL_CERT_DIR").output().unwrap()
}
