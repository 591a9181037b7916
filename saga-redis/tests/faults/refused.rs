//! What is refused, and why.

use std::time::Duration;

use saga_core::Entity;
use saga_redis::{
    AcquireRequest, LockError, LockService as _, LockServiceExt as _, MemoryEpochs, RedisLocks, RedisOptions,
};
use saga_servers::RedisServer;

use crate::support::{account, connect, granted, options, request, token, waits};

async fn refused(options: RedisOptions) -> String {
    let error = RedisLocks::connect(options, MemoryEpochs::default()).await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn a_server_that_may_forget_locks_is_refused() {
    let server = RedisServer::start_with(&[("maxmemory-policy", "allkeys-lru")]).await.unwrap();
    let text = refused(options(&server.url())).await;
    assert!(text.contains("maxmemory-policy is allkeys-lru") && text.contains("noeviction"), "{text}");
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_not_shown() {
    let server = RedisServer::start_with(&[("requirepass", "right")]).await.unwrap();
    let url = server.url().replace("right", "wrong-secret");
    let text = refused(options(&url)).await;
    assert!(text.contains("refuses") && !text.contains("wrong-secret"), "{text}");
}

#[tokio::test]
async fn a_full_server_refuses_and_keeps_what_is_held() {
    let server = RedisServer::start().await.unwrap();
    let locks = connect(options(&server.url())).await;
    let lock = granted(&locks, &request("a")).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).await.unwrap();
    let error = locks.acquire(&request("b")).await.unwrap_err();
    assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
    assert!(error.to_string().contains("OOM"), "{error}");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).await.unwrap();
    locks.renew(&lock).await.unwrap();
    waits(&locks, &request("b")).await;
}

/// A failover leaves a server with too few replicas for a while.
#[tokio::test]
async fn a_server_without_enough_replicas_is_unavailable() {
    let server = RedisServer::start().await.unwrap();
    let locks = connect(options(&server.url())).await;
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]).await.unwrap();
    let error = locks.acquire(&request("a")).await.unwrap_err();
    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "0"]).await.unwrap();
    granted(&locks, &request("a")).await;
}

#[tokio::test]
async fn a_request_that_cannot_be_served_is_refused_before_redis_sees_it() {
    let server = RedisServer::start().await.unwrap();
    let locks = connect(options(&server.url())).await;
    for request in [AcquireRequest::new([], "a"), AcquireRequest::new([Entity::new("", 1)], "a"), request("")] {
        let error = locks.acquire(&request).await.unwrap_err();
        assert!(matches!(error, LockError::Invalid(_)), "{error:?}");
        let error = locks.withdraw(&request).await.unwrap_err();
        assert!(matches!(error, LockError::Invalid(_)), "{error:?}");
    }
    assert_eq!(server.command(&["DBSIZE"]).await.unwrap(), "0");
}

#[tokio::test]
async fn a_wait_that_ends_leaves_the_queue() {
    let server = RedisServer::start().await.unwrap();
    let locks = connect(options(&server.url())).await;
    let lock = granted(&locks, &request("a")).await;
    let error = locks.acquire_within(&request("b"), Duration::from_millis(20)).await.unwrap_err();
    assert!(matches!(error, LockError::TimedOut { .. }), "{error:?}");
    locks.release(&lock).await.unwrap();
    granted(&locks, &request("c")).await;
}

/// An epoch has 2^40 tokens of a slot.
#[tokio::test]
async fn a_counter_at_its_end_begins_a_new_epoch() {
    let server = RedisServer::start().await.unwrap();
    let locks = connect(options(&server.url())).await;
    let first = granted(&locks, &request("a")).await;
    locks.release(&first).await.unwrap();
    let counter = server.command(&["KEYS", "*:counter"]).await.unwrap();
    server.command(&["SET", &counter, &((1_u64 << 40) - 2).to_string()]).await.unwrap();
    let mut last = token(&first);
    for holder in ["b", "c", "d"] {
        let lock = granted(&locks, &request(holder)).await;
        assert!(token(&lock) > last, "{lock:?}");
        last = token(&lock);
        locks.release(&lock).await.unwrap();
    }
    assert_eq!(last >> 40, (token(&first) >> 40) + 1, "the second of them began an epoch");
}

#[tokio::test]
async fn names_with_any_text_are_served() {
    let server = RedisServer::start().await.unwrap();
    let locks = connect(options(&server.url())).await;
    let names = ["{a}", "}{", "1:2:3", "ä ü", "%s%d", "\\\"'"];
    for name in names {
        let entity = Entity::new(name, name);
        let request = AcquireRequest::new([entity.clone()], name).lease_ttl(Duration::from_mins(1));
        let lock = granted(&locks, &request).await;
        assert_eq!(token(&granted(&locks, &request).await), token(&lock), "{name}");
        locks.renew(&lock).await.unwrap();
        waits(&locks, &AcquireRequest::new([entity.clone()], "other")).await;
        locks.release(&lock).await.unwrap();
        granted(&locks, &AcquireRequest::new([entity], "other")).await;
    }
    assert!(granted(&locks, &request("a")).await.token_of(&account()).is_some());
}
