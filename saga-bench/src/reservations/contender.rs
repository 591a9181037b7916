//! Who carries out the operations.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use saga_postgres::sqlx::postgres::PgPoolOptions;
use saga_postgres::sqlx::{self, PgPool};
use saga_reservations::grpc::{RemoteReservations, ReservationsService};
use saga_reservations::{Operation, Reservation, Reservations, ReservationsError, SqlReservations, perform_in};
use tokio::net::TcpListener;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// The connections of each contender, as many as the crate has by itself.
const CONNECTIONS: u32 = 16;

/// Something that reserves.
#[derive(Clone)]
pub(super) enum Contender {
    /// One transaction for each operation, by the same code.
    OneEach(PgPool),
    /// The crate, in this process or at a server.
    Crate(Arc<dyn Reservations>),
}

impl Contender {
    pub(super) async fn one_each(url: &str) -> Result<Self> {
        Ok(Self::OneEach(pool(url).await?))
    }

    pub(super) async fn in_process(url: &str) -> Result<(Self, SqlReservations)> {
        let store = SqlReservations::on_postgres(pool(url).await?).await?;
        Ok((Self::Crate(Arc::new(store.clone())), store))
    }

    /// A server in this process, and its client.
    pub(super) async fn over_grpc(store: SqlReservations) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("the server cannot listen")?;
        let url = format!("http://{}", listener.local_addr()?);
        let service = ReservationsService::new(Arc::new(store)).into_server();
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
        Ok(Self::Crate(Arc::new(RemoteReservations::connect(&url)?)))
    }

    pub(super) async fn perform(&self, operation: Operation) -> Result<Reservation, ReservationsError> {
        match self {
            Self::OneEach(pool) => one_each(pool, &operation).await,
            Self::Crate(reservations) => reservations.perform(operation).await,
        }
    }
}

async fn one_each(pool: &PgPool, operation: &Operation) -> Result<Reservation, ReservationsError> {
    let failed = |source: sqlx::Error| ReservationsError::Unavailable {
        operation: "change a reservation",
        source: Box::new(source),
    };
    let mut tx = pool.begin().await.map_err(failed)?;
    let reservation = perform_in(&mut *tx, operation).await?;
    tx.commit().await.map_err(failed)?;
    Ok(reservation)
}

pub(super) async fn pool(url: &str) -> Result<PgPool> {
    let pool = PgPoolOptions::new().max_connections(CONNECTIONS).min_connections(CONNECTIONS);
    pool.connect(url).await.context("cannot connect to the benchmark's PostgreSQL")
}
