//! The program with its holds in Redis.

use saga_reservations::{ReservationsClient, Reserve, State};
use saga_servers::RedisServer;

use crate::program::Program;

/// What a client is answered.
async fn answer(program: &Program) -> String {
    let client = ReservationsClient::connect(&program.grpc).await.unwrap();
    match client.resource("seat").await {
        Ok(_) => "serves".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn holds_are_in_redis_and_outlive_the_program() {
    let mut redis = RedisServer::start_with(&[("requirepass", "secret")]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("reservations.db").display());
    let url = redis.url();
    let mut program = Program::serve_with(&store, &["--redis", &url]).await;
    let client = ReservationsClient::connect(&program.grpc).await.unwrap();
    client.set_capacity("seat", 2).await.unwrap();
    let held = client.reserve(Reserve::of("seat", 2).key("order-7")).await.unwrap();
    program.child.kill().await.unwrap();

    let next = Program::serve_with(&store, &["--redis", &url]).await;
    let client = ReservationsClient::connect(&next.grpc).await.unwrap();
    let again = client.reserve(Reserve::of("seat", 2).key("order-7")).await.unwrap();
    assert_eq!(again.reservation(), held.reservation());
    assert_eq!(again.confirm().await.unwrap().state, State::Confirmed);
    assert_eq!(answer(&next).await, "serves");

    redis.kill().await.unwrap();
    let said = answer(&next).await;
    assert!(said != "serves" && !said.contains("secret"), "{said}");
}
