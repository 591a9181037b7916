//! Connections to PostgreSQL and to a server whose other end is gone without a word.

use std::sync::Arc;
use std::time::Duration;

use saga_reservations::grpc::{RemoteReservations, ReservationsService};
use saga_reservations::{
    Action, MemoryReservations, Operation, ReservationKey, Reservations as _, ReservationsError, Reserve, ResourceName,
    SqlReservations, State,
};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{advance, pause, resume, timeout};
use tonic::transport::server::TcpIncoming;

/// Passes connections on to a server. Those that are open when it is told so hear nothing any more, and are not closed.
struct Proxy {
    port: u16,
    silences: watch::Sender<u32>,
}

impl Proxy {
    async fn to(server: (String, u16)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let silences = watch::Sender::new(0);
        let sender = silences.clone();
        tokio::spawn(async move {
            loop {
                let (mut client, _) = listener.accept().await.unwrap();
                let mut server = TcpStream::connect(server.clone()).await.unwrap();
                let mut is_silent = sender.subscribe();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = copy_bidirectional(&mut client, &mut server) => {}
                        _ = is_silent.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { port, silences }
    }
}

fn reserve(name: &str) -> Operation {
    Operation::new(ReservationKey::new(name).unwrap(), Action::Reserve(Reserve::of("seat", 1)))
}

/// The operations behind a transaction that is never answered wait for it, and its connection is one of the pool's.
#[tokio::test]
async fn a_transaction_without_an_answer_ends_and_the_next_one_has_another_connection() {
    let database = saga_servers::shared::database("reservations").await.unwrap();
    let options: PgConnectOptions = database.url().parse().unwrap();
    let proxy = Proxy::to((options.get_host().to_owned(), options.get_port())).await;
    // The connection is silent from the first statement of the transaction on, and not when the pool tries it.
    let pool = PgPoolOptions::new().max_connections(1).test_before_acquire(false);
    let pool = pool.connect_with(options.host("127.0.0.1").port(proxy.port)).await.unwrap();
    let store = SqlReservations::on_postgres(pool.clone()).await.unwrap();
    store.set_capacity(&ResourceName::new("seat").unwrap(), 9).await.unwrap();
    let is_idle = async |count| {
        while pool.num_idle() != count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    is_idle(1).await;

    proxy.silences.send_modify(|count| *count += 1);
    let unanswered = tokio::spawn({
        let store = store.clone();
        async move { store.perform(reserve("unanswered")).await }
    });
    is_idle(0).await;
    pause();
    advance(Duration::from_secs(31)).await;
    resume();
    let unanswered = timeout(Duration::from_secs(10), unanswered).await.expect("nothing waits for ever").unwrap();
    assert!(matches!(unanswered, Err(ReservationsError::Unavailable { .. })), "{unanswered:?}");
    let next = timeout(Duration::from_secs(10), store.perform(reserve("next"))).await.expect("there is a connection");
    assert_eq!(next.unwrap().state, State::Held);
}

/// Without a keep-alive each call would be made on the silent connection, until the system gives it up.
#[tokio::test]
async fn a_connection_to_a_server_that_hears_nothing_is_replaced() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = ReservationsService::new(Arc::new(MemoryReservations::current().unwrap())).into_server();
    let server = tonic::transport::Server::builder().add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    let proxy = Proxy::to(("127.0.0.1".to_owned(), port)).await;
    let client = RemoteReservations::connect(&format!("http://127.0.0.1:{}", proxy.port)).unwrap();
    let seat = ResourceName::new("seat").unwrap();
    client.set_capacity(&seat, 1).await.unwrap();

    proxy.silences.send_modify(|count| *count += 1);
    let answered = async { while client.resource(&seat).await.is_err() {} };
    timeout(Duration::from_mins(1), answered).await.expect("there is a new connection");
}
