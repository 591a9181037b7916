//! Starts the services. In a company each of them is a program of its own.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use saga_core::transport::Transport;
use saga_core::{Runtime, Service};
use saga_sql::SqlStore as _;
use saga_sqlite::SqliteStore;

use super::seats::SeatMap;
use super::{bookings, notifications, payments};
use crate::outside::Outside;

/// The running services.
#[derive(Debug)]
pub struct Services {
    pub bookings: Runtime<SqliteStore>,
    pub payments: Runtime<SqliteStore>,
    pub notifications: Runtime<SqliteStore>,
    pub seats: SeatMap,
}

impl Services {
    /// Starts all of them on files in this folder.
    pub async fn start(folder: &Path, transport: &(impl Transport + Clone), outside: &Outside) -> anyhow::Result<Self> {
        let start = async |service: &Service<SqliteStore>| {
            let name = service.name();
            let file = folder.join(format!("{name}.db"));
            let store = Arc::new(SqliteStore::open(file).await?);
            let builder = Runtime::builder(Arc::clone(&store)).transport(transport.clone()).service(service);
            let builder = builder.state(outside.cards.clone()).state(outside.mail.clone());
            builder.start().await.with_context(|| format!("cannot start the service `{name}`"))
        };
        let seats = SeatMap::open(&folder.join("seats.db")).await?;
        let bookings = start(&bookings::service()?).await?;
        let set_up = bookings.store().transaction(async |conn| anyhow::Ok(bookings::create_tables(conn).await?));
        set_up.await.context("cannot set up the tables of the bookings")?;
        let payments = start(&payments::service()?).await?;
        let notifications = start(&notifications::service()?).await?;
        Ok(Self { bookings, payments, notifications, seats })
    }

    /// Stops the three services.
    pub async fn shutdown(&self) {
        for runtime in [&self.bookings, &self.payments, &self.notifications] {
            runtime.shutdown().await;
        }
    }
}
