//! Three nodes with the slots among them.

use std::time::Duration;

use saga_core::Entity;
use saga_redis::{AcquireRequest, HeldLock, LockError, LockService as _, MemoryEpochs, RedisLocks, RedisOptions};
use saga_servers::RedisCluster;

use crate::support::{LONG, acquire_at_once, granted, scripts_run, token, waits};

const ENTITIES: u32 = 24;
/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

fn order(id: u32, holder: &str) -> AcquireRequest {
    AcquireRequest::new([Entity::new("order", id)], holder).lease_ttl(LONG).wait_ttl(LONG)
}

async fn connect(cluster: &RedisCluster) -> RedisLocks {
    RedisLocks::connect(RedisOptions::cluster(cluster.urls()), MemoryEpochs::default()).await.unwrap()
}

async fn scripts_run_on(cluster: &RedisCluster) -> u64 {
    let mut run = 0;
    for node in cluster.nodes() {
        run += scripts_run(node).await;
    }
    run
}

/// Where a key is.
async fn slot_of(cluster: &RedisCluster, key: &str) -> (u16, usize) {
    let slot: u16 = cluster.nodes()[0].command(&["CLUSTER", "KEYSLOT", key]).await.unwrap().parse().unwrap();
    for (nth, node) in cluster.nodes().iter().enumerate() {
        if node.command(&["EXISTS", key]).await.is_ok() {
            return (slot, nth);
        }
    }
    panic!("no node has the slot of {key}");
}

#[tokio::test]
async fn locks_are_on_all_nodes_and_a_lock_on_several_entities_spans_them() {
    let cluster = RedisCluster::start().await.unwrap();
    let locks = connect(&cluster).await;
    let all: Vec<Entity> = (0..ENTITIES).map(|id| Entity::new("order", id)).collect();
    let request = AcquireRequest::new(all, "a").lease_ttl(LONG).wait_ttl(LONG);
    let lock = granted(&locks, &request).await;
    assert_eq!(lock.tokens().count(), ENTITIES as usize);
    for node in cluster.nodes() {
        let keys = node.command(&["KEYS", "*:lock:*"]).await.unwrap();
        assert!(keys.lines().count() > 0, "each node has some of the locks");
    }
    for id in 0..ENTITIES {
        waits(&locks, &order(id, "b")).await;
    }
    locks.renew(&lock).await.unwrap();
    locks.release(&lock).await.unwrap();
    for id in 0..ENTITIES {
        granted(&locks, &order(id, "b")).await;
    }
}

#[tokio::test]
async fn calls_at_once_share_a_call_if_they_are_of_one_slot() {
    let cluster = RedisCluster::start().await.unwrap();
    let locks = connect(&cluster).await;
    for round in 0..2 {
        let before = scripts_run_on(&cluster).await;
        // There are 64 slots, so several accounts are in one.
        let answers = acquire_at_once(&locks, 300).await;
        let asked = scripts_run_on(&cluster).await - before;
        // In the first round the slots get their epochs.
        assert!(round == 0 || asked < 300, "300 locks took {asked} calls");
        for answer in answers {
            locks.release(&answer.unwrap().granted().expect("it is free")).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_slot_that_moves_keeps_its_locks_and_tokens_grow() {
    let cluster = RedisCluster::start().await.unwrap();
    let locks = connect(&cluster).await;
    let first = granted(&locks, &order(1, "a")).await;
    waits(&locks, &order(1, "b")).await;
    let mut keys = String::new();
    for node in cluster.nodes() {
        keys.push_str(&node.command(&["KEYS", "*:lock:*"]).await.unwrap());
    }
    let (slot, owner) = slot_of(&cluster, keys.trim()).await;
    cluster.move_slot(slot, owner, (owner + 1) % RedisCluster::NODES).await.unwrap();

    locks.renew(&first).await.expect("the lock moved with its slot");
    waits(&locks, &order(1, "c")).await;
    locks.release(&first).await.unwrap();
    waits(&locks, &order(1, "c")).await;
    let second = granted(&locks, &order(1, "b")).await;
    assert!(token(&second) > token(&first), "{second:?}");
}

#[tokio::test]
async fn a_node_that_is_killed_takes_only_its_entities_along() {
    let mut cluster = RedisCluster::start().await.unwrap();
    // Its other nodes serve their slots also while it is not whole.
    for node in cluster.nodes() {
        node.command(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]).await.unwrap();
    }
    let options = RedisOptions::cluster(cluster.urls()).response_timeout(Duration::from_secs(3));
    let locks = RedisLocks::connect(options, MemoryEpochs::default()).await.unwrap();
    let mut held: Vec<HeldLock> = Vec::new();
    for id in 0..ENTITIES {
        held.push(granted(&locks, &order(id, "a")).await);
    }
    cluster.nodes_mut()[0].kill().await.unwrap();
    let (mut gone, mut there) = (Vec::new(), 0);
    for lock in &held {
        // Once the node is gone it takes the whole time to see; one is enough.
        if gone.is_empty() || there == 0 {
            match locks.renew(lock).await {
                Ok(()) => there += 1,
                Err(error) => {
                    assert!(matches!(error, LockError::Unavailable { .. }), "{error:?}");
                    gone.push(lock);
                }
            }
        }
    }
    assert!(there > 0 && !gone.is_empty(), "{there} are there, {} are gone", gone.len());

    cluster.nodes_mut()[0].restart().await.unwrap();
    cluster.settled().await.unwrap();
    for lock in gone {
        let mut renewed = locks.renew(lock).await;
        // The client may not have found the node again yet.
        for _ in 0..100 {
            if renewed.is_ok() {
                break;
            }
            tokio::time::sleep(PAUSE).await;
            renewed = locks.renew(lock).await;
        }
        renewed.expect("the lock survived");
        locks.release(lock).await.unwrap();
        let (id, _) = lock.tokens().next().unwrap();
        let id: u32 = id.id().parse().unwrap();
        assert!(token(&granted(&locks, &order(id, "b")).await) > token(lock));
    }
}
