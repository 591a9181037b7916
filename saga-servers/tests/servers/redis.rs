//! Redis: what was answered survives SIGKILL, a replica follows, and three servers are a cluster.

use std::net::TcpStream;

use saga_servers::{Error, RedisCluster, RedisServer};

#[tokio::test]
async fn an_answered_write_survives_a_kill_and_a_stop() -> Result<(), Error> {
    let mut server = RedisServer::start().await?;
    assert_eq!(server.command(&["SET", "order", "1"]).await?, "OK");
    server.kill().await?;
    assert!(TcpStream::connect(("127.0.0.1", server.port())).is_err(), "a killed server answers");
    server.restart().await?;
    assert_eq!(server.command(&["INCR", "order"]).await?, "2");
    server.stop().await?;
    server.restart().await?;
    assert_eq!(server.command(&["GET", "order"]).await?, "2");
    assert_eq!(server.command(&["CONFIG", "GET", "maxmemory-policy"]).await?, "maxmemory-policy\nnoeviction");
    assert_eq!(server.log()?.matches("Ready to accept connections").count(), 3, "the log tells of each of its lives");
    Ok(())
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_command_are_refused() -> Result<(), Error> {
    let server = RedisServer::start_with(&[("requirepass", "right")]).await?;
    assert!(server.url().starts_with("redis://default:right@127.0.0.1:"), "{}", server.url());
    assert_eq!(server.command(&["PING"]).await?, "PONG");
    let refused = server.command(&["NONE"]).await.expect_err("there is no such command").to_string();
    assert!(refused.contains("unknown command"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn a_replica_takes_over() -> Result<(), Error> {
    let mut server = RedisServer::start().await?;
    server.command(&["SET", "order", "1"]).await?;
    let replica = server.start_replica().await?;
    let refused = replica.command(&["SET", "order", "2"]).await.expect_err("a replica is read only").to_string();
    assert!(refused.contains("READONLY"), "{refused}");
    server.kill().await?;
    replica.command(&["REPLICAOF", "NO", "ONE"]).await?;
    assert_eq!(replica.command(&["INCR", "order"]).await?, "2");
    Ok(())
}

#[tokio::test]
async fn three_servers_are_a_cluster() -> Result<(), Error> {
    let cluster = RedisCluster::start().await?;
    let slot: u16 = cluster.nodes()[0].command(&["CLUSTER", "KEYSLOT", "order"]).await?.parse().expect("a slot");
    let owner = usize::from(slot) * RedisCluster::NODES / 16_384;
    let other = (owner + 1) % RedisCluster::NODES;
    cluster.nodes()[owner].command(&["SET", "order", "1"]).await?;
    let moved = cluster.nodes()[other].command(&["GET", "order"]).await.expect_err("it is elsewhere").to_string();
    assert!(moved.contains("MOVED"), "{moved}");
    cluster.move_slot(slot, owner, other).await?;
    assert_eq!(cluster.nodes()[other].command(&["GET", "order"]).await?, "1");
    Ok(())
}
