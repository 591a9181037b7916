//! `rediss://`: without the feature a sentence; with it a connection to a server whose certificate is trusted, and a sentence
//! where it is not, and where the address is of the other kind.
//!
//! Which certificates a process trusts is decided by its environment, so the connections are made by processes of their own:
//! this one again, with the address as the argument.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use saga_core::Entity;
use saga_redis::{AcquireRequest, Acquired, LockService as _, MemoryEpochs, RedisLocks, RedisOptions};
use saga_servers::{Certificates, RedisServer};

#[tokio::main]
async fn main() {
    let address = std::env::args().skip(1).find(|argument| argument.starts_with("redis"));
    match address {
        Some(address) => lock(&address).await,
        None if cfg!(feature = "tls-ring") => a_trusted_server_is_connected_to_and_no_other().await,
        None => without_the_feature_there_is_a_sentence().await,
    }
}

/// Connects and takes a lock, or says why not.
async fn lock(address: &str) {
    let connected = RedisLocks::connect(RedisOptions::new(address), MemoryEpochs::default()).await;
    let locks = connected.unwrap_or_else(|error| {
        println!("{error}");
        std::process::exit(1);
    });
    let acquired = locks.acquire(&AcquireRequest::new([Entity::new("account", 7)], "one")).await.unwrap();
    assert!(matches!(acquired, Acquired::Granted(_)), "{acquired:?}");
    println!("locked");
}

async fn without_the_feature_there_is_a_sentence() {
    let options = RedisOptions::new("rediss://:hunter2@localhost");
    let text = RedisLocks::connect(options, MemoryEpochs::default()).await.expect_err("there is no TLS").to_string();
    assert!(text.contains("`tls-ring`") && !text.contains("hunter2") && !text.contains('\n'), "{text}");
    println!("test without_the_feature_there_is_a_sentence ... ok");
}

async fn a_trusted_server_is_connected_to_and_no_other() {
    let certificates = Certificates::make().unwrap();
    let settings = [("requirepass", "hunter2")];
    let server = RedisServer::start_with_tls(&certificates.broker(), &settings).await.unwrap();
    let tls_url = server.tls_url().unwrap();
    let trusting = run_again(&tls_url, &certificates.authority());
    assert_eq!(said(&trusting), "locked", "{trusting:?}");
    let plain_at_tls = tls_url.replace("rediss:", "redis:").replace("localhost", "127.0.0.1");
    let tls_at_plain = server.url().replace("redis:", "rediss:").replace("127.0.0.1", "localhost");
    for (address, authority, hint) in [
        (&tls_url, certificates.other_authority(), "certificate"),
        (&plain_at_tls, certificates.authority(), "write rediss://"),
        (&tls_at_plain, certificates.authority(), "write redis://"),
    ] {
        let refused = run_again(address, &authority);
        let text = said(&refused);
        assert!(!refused.status.success() && text.contains("cannot connect: Redis at"), "{refused:?}");
        assert!(text.contains(hint), "{hint}: {text}");
        assert!(!text.contains("hunter2") && !text.contains('\n'), "{text}");
    }
    println!("test a_trusted_server_is_connected_to_and_no_other ... ok");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// This program again, trusting what the authority signed and nothing else.
fn run_again(address: &str, authority: &Path) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(address).env("SSL_CERT_FILE", authority).env_remove("SSL_CERT_DIR").output().unwrap()
}
