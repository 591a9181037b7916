//! Starts the runtimes: that of the trips, and that of the hotels, which may be another process.

use std::sync::Arc;

use anyhow::Context as _;
use saga_core::transport::Transport;
use saga_core::{Runtime, Saga};
use saga_sql::SqlStore;

use crate::providers::Providers;
use crate::trip::{Itinerary, Trip};
use crate::{hotels, saga, steps};

/// The service for trips.
pub struct Trips<S: SqlStore> {
    pub runtime: Runtime<S>,
    pub book_trip: Saga<S, Trip, Itinerary>,
}

/// Starts the runtime for trips.
pub async fn start_trips<S: SqlStore>(
    store: S,
    transport: impl Transport,
    providers: Providers,
) -> anyhow::Result<Arc<Trips<S>>> {
    let set_up = store.transaction(async |conn| Ok::<_, anyhow::Error>(steps::create_tables(conn).await?));
    set_up.await.context("cannot set up the tables of the trips")?;
    let book_trip = saga::book_trip()?;
    let runtime = Runtime::builder(store)
        .transport(transport)
        .saga(&book_trip)
        .state(providers)
        .settings(|settings| settings.service = Some("trips".to_owned()))
        .start()
        .await?;
    Ok(Arc::new(Trips { runtime, book_trip }))
}

/// Starts the runtime that books rooms for the sagas of others.
pub async fn start_hotels<S: SqlStore>(store: S, transport: impl Transport) -> anyhow::Result<Runtime<S>> {
    let set_up = store.transaction(async |conn| Ok::<_, anyhow::Error>(hotels::create_tables(conn).await?));
    set_up.await.context("cannot set up the tables of the hotels")?;
    Ok(Runtime::builder(store).transport(transport).service(&hotels::hotels()?).start().await?)
}
