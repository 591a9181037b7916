//! A replica takes over.

use std::time::Duration;

use saga_redis::{HeldLock, LockError, LockService as _, MemoryEpochs, RedisLocks};
use saga_servers::RedisServer;

use crate::support::{account, granted, options, request, token, waits};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// The service at the address of the primary and at that of the replica: an application has one address that moves.
async fn both(primary: &RedisServer, replica: &RedisServer, replicas: u32) -> (RedisLocks, RedisLocks) {
    let epochs = MemoryEpochs::default();
    // A slow replica is no fault.
    let wants = |server: &RedisServer, replicas| {
        options(&server.url()).replicas(replicas).confirm_timeout(Duration::from_mins(1))
    };
    let before = RedisLocks::connect(wants(primary, replicas), epochs.clone()).await.unwrap();
    let after = RedisLocks::connect(wants(replica, 0), epochs).await.unwrap();
    (before, after)
}

/// Grants the last lock that the replica hears of, and releases it. The replica follows no server afterwards, and keeps what it has.
async fn lock_before_the_replica_lags(locks: &RedisLocks, primary: &RedisServer, replica: &RedisServer) -> HeldLock {
    let lock = granted(locks, &request("a")).await;
    locks.release(&lock).await.unwrap();
    let counter = primary.command(&["KEYS", "*:counter"]).await.unwrap();
    // It hears of the release as well: the lock would stay held otherwise.
    while replica.command(&["GET", &counter]).await.unwrap().is_empty()
        || !replica.command(&["KEYS", "*:lock:*"]).await.unwrap().is_empty()
    {
        tokio::time::sleep(PAUSE).await;
    }
    replica.command(&["REPLICAOF", "127.0.0.1", "1"]).await.unwrap();
    lock
}

#[tokio::test]
async fn tokens_grow_when_a_replica_that_lags_takes_over() {
    let mut primary = RedisServer::start().await.unwrap();
    let replica = primary.start_replica().await.unwrap();
    let (before, after) = both(&primary, &replica, 0).await;
    let first = lock_before_the_replica_lags(&before, &primary, &replica).await;
    let mut highest = token(&first);
    for holder in ["b", "c", "d"] {
        let lock = granted(&before, &request(holder)).await;
        highest = token(&lock);
        before.release(&lock).await.unwrap();
    }
    let lost = granted(&before, &request("e")).await;
    primary.kill().await.unwrap();
    replica.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();

    let lock = granted(&after, &request("f")).await;
    assert!(token(&lost) > highest && token(&lock) > token(&lost), "{lost:?} {lock:?}");
    let error = after.renew(&lost).await.unwrap_err();
    assert!(matches!(error, LockError::Lost { .. }), "{error:?}");
}

/// The old primary never stopped, and has its epoch again by way of the replica: only the counters of the last locks are gone.
#[tokio::test]
async fn tokens_grow_when_the_old_primary_takes_over_again() {
    let primary = RedisServer::start().await.unwrap();
    let replica = primary.start_replica().await.unwrap();
    let (before, _) = both(&primary, &replica, 0).await;
    let first = lock_before_the_replica_lags(&before, &primary, &replica).await;
    let lost = granted(&before, &request("b")).await;
    replica.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    // The replica does not see a request before it gives way again.
    let (host, port) = ("127.0.0.1", replica.port().to_string());
    primary.command(&["REPLICAOF", host, &port]).await.unwrap();
    let has_lost = async || primary.command(&["KEYS", "*:lock:*"]).await.unwrap().is_empty();
    while !(primary.command(&["INFO", "replication"]).await.unwrap().contains("master_link_status:up")
        && has_lost().await)
    {
        tokio::time::sleep(PAUSE).await;
    }
    primary.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();

    let lock = granted(&before, &request("c")).await;
    assert!(token(&lost) > token(&first) && token(&lock) > token(&lost), "{first:?} {lost:?} {lock:?}");
}

#[tokio::test]
async fn a_grant_counts_when_the_replica_has_it_and_survives_the_failover() {
    let mut primary = RedisServer::start().await.unwrap();
    let mut replica = primary.start_replica().await.unwrap();
    let (before, after) = both(&primary, &replica, 1).await;
    let first = granted(&before, &request("a")).await;
    before.release(&first).await.unwrap();

    replica.freeze().unwrap();
    let impatient = options(&primary.url()).replicas(1).confirm_timeout(Duration::from_millis(20));
    let epochs = MemoryEpochs::default();
    let hurried = RedisLocks::connect(impatient.prefix("hurried"), epochs).await.unwrap();
    let error = hurried.acquire(&request("b")).await.unwrap_err();
    assert!(matches!(error, LockError::Unconfirmed { confirmed: 0, wanted: 1, .. }), "{error:?}");
    replica.resume().unwrap();

    let lock = granted(&before, &request("b")).await;
    assert!(token(&lock) > token(&first));
    primary.kill().await.unwrap();
    replica.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    waits(&after, &request("c")).await;
    after.renew(&lock).await.expect("the lock survived the failover");
    after.release(&lock).await.unwrap();
    assert!(token(&granted(&after, &request("c")).await) > token(&lock));
}

/// A token of the epoch of a process that was slow: it raised the epoch, and begins it in Redis after a later one was lost.
#[tokio::test]
async fn an_epoch_that_is_not_the_last_one_is_not_used() {
    let server = RedisServer::start().await.unwrap();
    let epochs = MemoryEpochs::default();
    let connect = async || RedisLocks::connect(options(&server.url()), epochs.clone()).await.unwrap();
    let locks = connect().await;
    let first = granted(&locks, &request("a")).await;
    let incarnation = server.command(&["KEYS", "*:incarnation"]).await.unwrap();
    let slow = server.command(&["GET", &incarnation]).await.unwrap();
    server.command(&["FLUSHALL"]).await.unwrap();
    let second = granted(&locks, &request("b")).await;
    server.command(&["FLUSHALL"]).await.unwrap();
    server.command(&["SET", &incarnation, &slow]).await.unwrap();
    for locks in [connect().await, locks] {
        let lock = granted(&locks, &request("c")).await;
        assert!(token(&lock) > token(&second) && token(&second) > token(&first), "{lock:?}");
    }
}

#[tokio::test]
async fn a_replica_is_unavailable_until_it_takes_over() {
    let primary = RedisServer::start().await.unwrap();
    let replica = primary.start_replica().await.unwrap();
    let (_, after) = both(&primary, &replica, 0).await;
    let error = after.acquire(&request("a")).await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    replica.command(&["REPLICAOF", "NO", "ONE"]).await.unwrap();
    let lock = granted(&after, &request("a")).await;
    assert!(lock.token_of(&account()).is_some());
}
