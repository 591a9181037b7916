//! The clock of the server jumps beyond a lease and back.

use saga_redis::{LockError, LockService as _};
use saga_servers::RedisServer;

use crate::support::{LONG, connect, granted, options, request, token, waits};

/// `L-1`, `L-2`: a jump forward ends a lease early, and the next holder has a higher token. The earlier holder learns of it.
#[tokio::test]
async fn a_jump_beyond_a_lease_and_back_grants_no_lock_twice() {
    let server = RedisServer::start_with_clock().await.unwrap();
    let locks = connect(options(&server.url())).await;
    let jump = i64::try_from(2 * LONG.as_secs()).unwrap();
    let first = granted(&locks, &request("first")).await;
    waits(&locks, &request("second")).await;

    server.set_clock(jump).unwrap();
    let second = granted(&locks, &request("second")).await;
    assert!(token(&second) > token(&first));
    let lost = locks.renew(&first).await.unwrap_err();
    assert!(matches!(lost, LockError::Lost { .. }), "{lost:?}");
    locks.release(&first).await.unwrap();

    server.set_clock(0).unwrap();
    waits(&locks, &request("third")).await;
    locks.renew(&second).await.expect("the lease is longer now, and not over");
    assert_eq!(token(&granted(&locks, &request("second")).await), token(&second), "the same grant");
    locks.release(&second).await.unwrap();
    let third = granted(&locks, &request("third")).await;
    assert!(token(&third) > token(&second));
}

/// `L-1`: a jump back lets a lease last longer, and no other saga gets the lock.
#[tokio::test]
async fn a_jump_back_ends_no_lease() {
    let server = RedisServer::start_with_clock().await.unwrap();
    let locks = connect(options(&server.url())).await;
    let first = granted(&locks, &request("first")).await;
    for jump in [-60, -3_600, -86_400] {
        server.set_clock(jump).unwrap();
        waits(&locks, &request("second")).await;
        locks.renew(&first).await.unwrap();
    }
    locks.release(&first).await.unwrap();
    assert!(token(&granted(&locks, &request("second")).await) > token(&first));
}
