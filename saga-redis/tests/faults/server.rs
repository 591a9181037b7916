//! One server: emptied, killed, frozen, unreachable.

use std::time::Duration;

use saga_redis::{LockError, LockService as _, MemoryEpochs, RedisLocks, RedisOptions};
use saga_servers::{FaultProxy, RedisServer, Traffic};
use tokio::task::JoinSet;

use crate::support::{assert_unavailable, connect, granted, options, request, token, waits};

#[tokio::test]
async fn tokens_grow_through_a_flush_and_the_older_holder_learns_of_it() {
    let server = RedisServer::start().await.unwrap();
    let locks = connect(options(&server.url())).await;
    let mut highest = 0;
    for round in 0..3 {
        let first = granted(&locks, &request(&format!("a{round}"))).await;
        waits(&locks, &request("z")).await;
        server.command(&["FLUSHALL"]).await.unwrap();
        server.command(&["SCRIPT", "FLUSH"]).await.unwrap();
        let second = granted(&locks, &request(&format!("b{round}"))).await;
        assert!(token(&first) > highest && token(&second) > token(&first), "{first:?} {second:?}");
        let lost = locks.renew(&first).await.unwrap_err();
        assert!(matches!(lost, LockError::Lost { .. }), "{lost:?}");
        assert!(lost.to_string().contains("account 7"), "{lost}");
        locks.release(&first).await.unwrap();
        locks.renew(&second).await.expect("the release of a lost lock changes nothing");
        locks.release(&second).await.unwrap();
        highest = token(&second);
    }
}

#[tokio::test]
async fn locks_and_turns_survive_a_kill_and_tokens_grow() {
    let mut server = RedisServer::start().await.unwrap();
    let locks = connect(options(&server.url())).await;
    let first = granted(&locks, &request("a")).await;
    for holder in ["c", "b"] {
        waits(&locks, &request(holder)).await;
    }
    server.kill().await.unwrap();
    let address = format!("127.0.0.1:{}", server.port());
    assert_unavailable(locks.acquire(&request("b")).await, &address);
    assert_unavailable(locks.renew(&first).await, &address);
    assert_unavailable(locks.release(&first).await, &address);
    assert_unavailable(locks.withdraw(&request("b")).await, &address);

    server.restart().await.unwrap();
    locks.renew(&first).await.expect("the lock survived");
    assert_eq!(token(&granted(&locks, &request("a")).await), token(&first));
    locks.release(&first).await.unwrap();
    waits(&locks, &request("b")).await;
    let second = granted(&locks, &request("c")).await;
    assert!(token(&second) > token(&first));
}

/// What `appendfsync everysec` does to a server that crashes, and a snapshot to one that is restored from it.
#[tokio::test]
async fn tokens_grow_when_a_server_comes_back_with_older_data() {
    let mut server = RedisServer::start_with(&[("appendonly", "no")]).await.unwrap();
    let locks = connect(options(&server.url())).await;
    let first = granted(&locks, &request("a")).await;
    locks.release(&first).await.unwrap();
    server.command(&["SAVE"]).await.unwrap();
    let mut highest = token(&first);
    for round in 0..3 {
        let lock = granted(&locks, &request(&format!("b{round}"))).await;
        assert!(token(&lock) > highest, "{lock:?}");
        highest = token(&lock);
        locks.release(&lock).await.unwrap();
    }
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    let lock = granted(&locks, &request("c")).await;
    assert!(token(&lock) > highest, "{lock:?}");
}

#[tokio::test]
async fn a_frozen_server_is_unavailable_and_a_repeated_call_is_granted_once() {
    let mut server = RedisServer::start().await.unwrap();
    let patient = connect(options(&server.url())).await;
    let impatient = options(&server.url()).response_timeout(Duration::from_secs(2));
    let impatient = impatient.confirm_timeout(Duration::ZERO);
    let locks = RedisLocks::connect(impatient, MemoryEpochs::default()).await.unwrap();
    drop(granted(&patient, &request("before")).await);
    patient.withdraw(&request("before")).await.unwrap();

    server.freeze().unwrap();
    let address = format!("127.0.0.1:{}", server.port());
    assert_unavailable(locks.acquire(&request("a")).await, &address);
    server.resume().unwrap();
    // The first question is still on its way, and may come before or after this one.
    let first = granted(&patient, &request("a")).await;
    waits(&patient, &request("b")).await;
    assert_eq!(token(&granted(&patient, &request("a")).await), token(&first));
    patient.renew(&first).await.unwrap();
    patient.release(&first).await.unwrap();
    granted(&patient, &request("b")).await;
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named_without_its_password() {
    let server = RedisServer::start_with(&[("requirepass", "secret")]).await.unwrap();
    let proxy = FaultProxy::start(&server.url()).await.unwrap();
    let address = proxy.address().to_string();
    let locks = connect(options(proxy.url())).await;
    let lock = granted(&locks, &request("a")).await;

    proxy.set_traffic(Traffic::RefusesNew);
    proxy.cut_all();
    let error = locks.renew(&lock).await.unwrap_err();
    assert!(!format!("{error} {error:?} {locks:?}").contains("secret"), "{error:?}");
    assert_unavailable(locks.acquire(&request("b")).await, &address);
    let error = RedisLocks::connect(options(proxy.url()), MemoryEpochs::default()).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");

    proxy.set_traffic(Traffic::Flows);
    locks.renew(&lock).await.expect("the lock is still there");
    waits(&locks, &request("b")).await;
}

/// Each waited for the attempts to connect of all callers before it.
#[tokio::test]
async fn callers_at_once_wait_for_one_attempt_to_connect() {
    let server = RedisServer::start().await.unwrap();
    let proxy = FaultProxy::start(&server.url()).await.unwrap();
    let locks = connect(options(proxy.url()).connect_timeout(Duration::from_secs(3))).await;
    let lock = granted(&locks, &request("before")).await;
    proxy.set_traffic(Traffic::Stalls);
    proxy.cut_all();

    let before = proxy.counts().connections;
    let mut asking = JoinSet::new();
    for nth in 0..20 {
        let locks = locks.clone();
        asking.spawn(async move { locks.acquire(&request(&nth.to_string())).await });
    }
    for answer in asking.join_all().await {
        assert_unavailable(answer, &proxy.address().to_string());
    }
    assert_eq!(proxy.counts().connections - before, 1);

    proxy.set_traffic(Traffic::Flows);
    locks.renew(&lock).await.expect("a later call connects again");
}

#[tokio::test]
async fn nothing_is_granted_without_a_server() {
    let options = RedisOptions::new("redis://127.0.0.1:1").connect_timeout(Duration::from_secs(1));
    let connected = RedisLocks::connect(options, MemoryEpochs::default()).await;
    assert_unavailable(connected, "127.0.0.1:1");
}
