//! Calls that are made at the same time share a call of Redis, and not each other's faults.

use std::time::Duration;

use saga_redis::{LockError, LockService as _};
use saga_servers::{FaultProxy, RedisServer, Traffic};

use crate::support::{acquire_at_once, assert_unavailable, connect, granted, options, request, scripts_run, token};

#[tokio::test]
async fn calls_at_once_share_a_call_of_redis() {
    let server = RedisServer::start().await.unwrap();
    let locks = connect(options(&server.url())).await;
    let mut last = Vec::new();
    // In the first round the slots get their epochs.
    for round in 0..2 {
        let before = scripts_run(&server).await;
        let answers = acquire_at_once(&locks, 60).await;
        let asked = scripts_run(&server).await - before;
        assert!(round == 0 || asked < 10, "60 locks took {asked} calls");
        let locked: Vec<_> = answers.into_iter().map(|answer| answer.unwrap().granted().expect("it is free")).collect();
        for (number, lock) in locked.iter().enumerate() {
            assert_eq!(lock.request().holder(), format!("holder-{number}"));
            assert!(last.get(number).is_none_or(|before| token(lock) > *before), "{lock:?} after {last:?}");
            locks.renew(lock).await.unwrap();
        }
        last = locked.iter().map(token).collect();
        for lock in &locked {
            locks.release(lock).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_key_of_another_type_is_refused_to_its_caller_only() {
    let server = RedisServer::start().await.unwrap();
    let locks = connect(options(&server.url())).await;
    server.command(&["SET", "{saga:7}:queue:\u{1f}account\u{1f}7", "no queue"]).await.unwrap();
    for (number, answer) in acquire_at_once(&locks, 40).await.into_iter().enumerate() {
        match answer {
            Ok(answer) => assert!(number != 7 && answer.granted().is_some(), "account {number}"),
            Err(error) => {
                assert!(matches!(error, LockError::Refused { .. }), "{error:?}");
                assert!(number == 7 && error.to_string().contains("WRONGTYPE"), "account {number}: {error}");
            }
        }
    }
}

/// Each would wait until all calls before it have timed out.
#[tokio::test]
async fn calls_that_wait_for_one_without_an_answer_fail_with_it() {
    let server = RedisServer::start().await.unwrap();
    let proxy = FaultProxy::start(&server.url()).await.unwrap();
    let locks = connect(options(proxy.url()).response_timeout(Duration::from_secs(2))).await;
    let lock = granted(&locks, &request("before")).await;
    proxy.set_traffic(Traffic::Stalls);

    let before = proxy.counts().connections;
    for answer in acquire_at_once(&locks, 300).await {
        assert_unavailable(answer, &proxy.address().to_string());
    }
    assert_eq!(proxy.counts().connections - before, 0, "some calls were made after the first ones had failed");

    proxy.set_traffic(Traffic::Flows);
    locks.renew(&lock).await.expect("a later call connects again");
}

#[tokio::test]
async fn each_call_of_a_shared_one_needs_its_replicas() {
    let server = RedisServer::start().await.unwrap();
    let locks = connect(options(&server.url()).replicas(1).confirm_timeout(Duration::from_millis(10))).await;
    for answer in acquire_at_once(&locks, 20).await {
        let error = answer.unwrap_err();
        assert!(matches!(error, LockError::Unconfirmed { confirmed: 0, wanted: 1, .. }), "{error:?}");
    }
}
