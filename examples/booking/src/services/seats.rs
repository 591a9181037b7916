//! The seat map. Each seat is a resource with one unit, and `saga-reservations` gives it to one booking at a time.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use saga_reservations::{FencingToken, ReservationsClient, Reserve, SqlReservations};

/// The seats that there are.
pub const SEATS: [&str; 6] = ["12A", "12B", "12C", "12D", "12E", "12F"];

/// How long a seat is held. The saga releases it by itself if it is undone, and confirms it behind the payment: until then the
/// seat must be there.
const HELD: Duration = Duration::from_hours(24);

/// The seat map, with a database of its own.
#[derive(Debug, Clone)]
pub struct SeatMap(SqlReservations);

impl SeatMap {
    /// Opens the seat map in this file.
    pub async fn open(file: &Path) -> anyhow::Result<Self> {
        let seats = Self(SqlReservations::open_sqlite(file).await?);
        for seat in SEATS {
            seats
                .client()
                .set_capacity(&resource_of(seat), 1)
                .await
                .with_context(|| format!("cannot add seat {seat}"))?;
        }
        Ok(seats)
    }

    /// A client in this process.
    pub fn client(&self) -> ReservationsClient {
        ReservationsClient::new(self.0.clone())
    }

    /// Whether nothing holds the seat, and nothing has it.
    pub async fn is_free(&self, seat: &str) -> anyhow::Result<bool> {
        let found = self.client().resource(&resource_of(seat)).await?;
        Ok(found.with_context(|| format!("there is no seat {seat}"))?.free() == 1)
    }

    /// How many seats are confirmed, and how many are free.
    pub async fn count(&self) -> anyhow::Result<(usize, usize)> {
        let (mut confirmed, mut free) = (0, 0);
        for seat in SEATS {
            if let Some(found) = self.client().resource(&resource_of(seat)).await? {
                confirmed += usize::from(found.confirmed == 1);
                free += usize::from(found.free() == 1);
            }
        }
        Ok((confirmed, free))
    }

    /// Takes a seat outside all sagas.
    pub async fn take(&self, seat: &str) -> anyhow::Result<FencingToken> {
        let held = self.client().reserve(reservation_of(seat).key(format!("counter-{seat}"))).await?;
        Ok(held.confirm().await?.token)
    }

    /// Serves it to other processes, and returns the address. In a company that is `saga-reservations serve`.
    #[cfg(feature = "broker")]
    pub async fn serve(&self) -> anyhow::Result<String> {
        use std::sync::Arc;

        use saga_reservations::grpc::ReservationsService;
        use tonic::transport::{Server, server::TcpIncoming};

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.context("the seat map cannot be served")?;
        let url = format!("http://{}", listener.local_addr()?);
        let service = ReservationsService::new(Arc::new(self.0.clone())).into_server();
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(TcpIncoming::from(listener)));
        Ok(url)
    }
}

/// The request that the seat be held.
pub fn reservation_of(seat: &str) -> Reserve {
    Reserve::of(resource_of(seat), 1).ttl(HELD)
}

fn resource_of(seat: &str) -> String {
    format!("seat/{seat}")
}
