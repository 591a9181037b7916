//! The program with its holds in Redis.

use saga_reservations::{ReservationsClient, Reserve, State};
use saga_servers::{Certificates, RedisServer};
use tonic::transport::Channel;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::program::{Program, program};

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

/// Reads what the program tells those who watch, until it is this.
async fn told(watched: &mut tonic::Streaming<HealthCheckResponse>, status: ServingStatus) {
    while watched.message().await.unwrap().expect("the program still serves").status() != status {}
}

#[tokio::test]
async fn the_health_follows_redis() {
    let mut redis = RedisServer::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("reservations.db").display());
    let program = Program::serve_with(&store, &["--redis", &redis.url()]).await;
    let channel = Channel::from_shared(program.grpc.clone()).unwrap().connect().await.unwrap();
    let mut watched = Vec::new();
    for service in ["", "saga.reservations.v1.Reservations"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        watched.push(HealthClient::new(channel.clone()).watch(request).await.unwrap().into_inner());
    }
    for (is_there, status) in
        [(true, ServingStatus::Serving), (false, ServingStatus::NotServing), (true, ServingStatus::Serving)]
    {
        if is_there {
            redis.restart().await.unwrap();
        } else {
            redis.kill().await.unwrap();
        }
        for watched in &mut watched {
            told(watched, status).await;
        }
    }
    assert_eq!(answer(&program).await, "serves");
}

#[tokio::test]
async fn redis_may_have_tls() {
    let certificates = Certificates::make().unwrap();
    let redis = RedisServer::start_with_tls(&certificates.broker(), &[("requirepass", "secret")]).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("reservations.db").display());
    let url = redis.tls_url().unwrap();
    let serve = ["serve", "--store", &store, "--redis", &url, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];
    let mut untrusting = program(&serve);
    let said = untrusting.env("SSL_CERT_FILE", certificates.other_authority()).output().await.unwrap();
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("the holds in Redis cannot be opened") && said.contains("certificate"), "{said}");
    assert!(!said.contains("secret"), "{said}");

    let mut trusting = program(&serve);
    trusting.env("SSL_CERT_FILE", certificates.authority());
    let program = Program::started(trusting).await;
    let client = ReservationsClient::connect(&program.grpc).await.unwrap();
    client.set_capacity("seat", 2).await.unwrap();
    client.reserve(Reserve::of("seat", 2).key("order-7")).await.unwrap();
    assert_eq!(answer(&program).await, "serves");
}
