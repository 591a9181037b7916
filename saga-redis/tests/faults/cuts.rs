//! A connection that ends at each byte of an acquisition.

use saga_redis::LockService as _;
use saga_servers::{Cut, Direction, FaultProxy, RedisServer};

use crate::support::{connect, granted, options, request, token, waits};

/// More than an acquisition has in either direction.
const BYTES_MAX: u64 = 4_000;

async fn cut_at_each_byte(direction: Direction) {
    // It stays up, so nothing waits for the disk.
    let server = RedisServer::start_with(&[("appendfsync", "no")]).await.unwrap();
    let direct = connect(options(&server.url())).await;
    let proxy = FaultProxy::start(&server.url()).await.unwrap();
    let behind = connect(options(proxy.url())).await;
    // The scripts are known, so that an acquisition is one exchange.
    direct.release(&granted(&direct, &request("before")).await).await.unwrap();
    let mut last = 0;
    for bytes in 0..BYTES_MAX {
        let holder = format!("holder-{bytes:06}");
        behind.release(&granted(&behind, &request(&format!("open-{bytes:06}"))).await).await.unwrap();
        proxy.cut(Cut::after(direction, bytes));
        // It may fail. Repeated, it is granted, once.
        let answer = behind.acquire(&request(&holder)).await;
        let was_cut = !proxy.disarm();
        let lock = granted(&behind, &request(&holder)).await;
        if let Ok(answer) = answer {
            assert_eq!(token(&answer.granted().expect("it is free")), token(&lock), "cut after {bytes} bytes");
        }
        assert!(token(&lock) > last, "cut after {bytes} bytes");
        last = token(&lock);
        waits(&direct, &request("other")).await;
        direct.withdraw(&request("other")).await.unwrap();
        behind.release(&lock).await.unwrap();
        if !was_cut {
            assert!(bytes > 20, "the acquisition has {bytes} bytes only");
            return;
        }
    }
    panic!("an acquisition has more than {BYTES_MAX} bytes");
}

#[tokio::test]
async fn an_acquisition_that_is_cut_at_any_byte_on_its_way_is_granted_once() {
    cut_at_each_byte(Direction::ToServer).await;
}

#[tokio::test]
async fn an_acquisition_whose_answer_is_cut_at_any_byte_is_granted_once() {
    cut_at_each_byte(Direction::ToClient).await;
}
