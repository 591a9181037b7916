//! The services, the orchestrator, and what carries their messages.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context as _;
use saga_core::Saga;
use saga_core::memory::MemoryTransport;
use saga_sqlite::SqliteStore;
use tempfile::TempDir;

#[cfg(feature = "broker")]
use crate::broker::{Address, Broker};
use crate::held_replies::HeldReplies;
use crate::orchestrator::{InProcess, Orchestrator};
use crate::outside::Outside;
use crate::request::BookingRequest;
use crate::services::Services;
use crate::state::state_in;

/// Everything that takes part, on files in a temporary folder.
#[derive(Debug)]
pub struct Deployment {
    pub services: Services,
    pub outside: Outside,
    pub replies: HeldReplies,
    place: Place,
    /// Nothing while it is killed.
    orchestrator: Option<Box<dyn Orchestrator>>,
    booked: BTreeMap<String, BookingRequest>,
    // Dropped last: what the stores lie in.
    folder: TempDir,
}

/// Where the orchestrator runs.
#[derive(Debug)]
enum Place {
    /// In this process, with this definition.
    Here(Saga<SqliteStore, BookingRequest>),
    /// In a process of this program, which is connected to the broker.
    #[cfg(feature = "broker")]
    Process { program: PathBuf, broker: Address, seats: String },
}

impl Deployment {
    /// Everything in this process. The orchestrator runs this definition.
    pub async fn in_memory(saga: Saga<SqliteStore, BookingRequest>) -> anyhow::Result<Self> {
        Self::start(HeldReplies::over(MemoryTransport::new()), async |_| Ok(Place::Here(saga))).await
    }

    /// The orchestrator in a process of this `program`. A broker carries the messages.
    #[cfg(feature = "broker")]
    pub async fn on_broker(program: PathBuf, broker: Broker) -> anyhow::Result<Self> {
        let Broker { transport, address } = broker;
        let place = async |services: &Services| {
            Ok(Place::Process { program, broker: address, seats: services.seats.serve().await? })
        };
        Self::start(HeldReplies::over(transport), place).await
    }

    async fn start(
        replies: HeldReplies,
        place: impl AsyncFnOnce(&Services) -> anyhow::Result<Place>,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
        let outside = Outside::default();
        let services = Services::start(folder.path(), &replies, &outside).await?;
        let place = place(&services).await?;
        let (orchestrator, booked) = (None, BTreeMap::new());
        let mut deployment = Self { services, outside, replies, place, orchestrator, booked, folder };
        deployment.start_orchestrator().await?;
        Ok(deployment)
    }

    /// Asks the orchestrator for a booking.
    pub async fn book(&mut self, key: &str, request: &BookingRequest) -> anyhow::Result<()> {
        self.booked.insert(key.to_owned(), request.clone());
        self.orchestrator()?.book(key, request).await
    }

    /// The state of a saga, also while the orchestrator is killed.
    pub async fn state(&self, key: &str) -> anyhow::Result<&'static str> {
        state_in(&self.file(), key).await
    }

    /// Waits until the saga has ended or is stuck, and says how.
    pub async fn outcome(&self, key: &str) -> anyhow::Result<String> {
        self.orchestrator()?.outcome(key).await
    }

    /// Waits until the saga has ended, and says how.
    pub async fn closed(&self, key: &str) -> anyhow::Result<String> {
        self.orchestrator()?.closed(key).await
    }

    /// Whether the orchestrator is killed.
    pub fn is_killed(&self) -> bool {
        self.orchestrator.is_none()
    }

    /// Kills the orchestrator.
    pub async fn kill_orchestrator(&mut self) -> anyhow::Result<()> {
        self.orchestrator.take().context("the orchestrator does not run")?.kill().await
    }

    /// Starts the orchestrator. Its clients ask for what they asked for before, since they do not know what became of it.
    pub async fn start_orchestrator(&mut self) -> anyhow::Result<()> {
        let file = self.file();
        let orchestrator: Box<dyn Orchestrator> = match &self.place {
            Place::Here(saga) => {
                let seats = self.services.seats.client();
                Box::new(InProcess::start(&file, saga, self.replies.clone(), seats).await?)
            }
            #[cfg(feature = "broker")]
            Place::Process { program, broker, seats } => {
                Box::new(crate::orchestrator::Process::start(program, &file, broker, seats).await?)
            }
        };
        for (key, request) in &self.booked {
            orchestrator.book(key, request).await?;
        }
        self.orchestrator = Some(orchestrator);
        Ok(())
    }

    /// Stops the services. The orchestrator is not waited for.
    pub async fn close(self) {
        drop(self.orchestrator);
        self.services.shutdown().await;
    }

    fn orchestrator(&self) -> anyhow::Result<&dyn Orchestrator> {
        self.orchestrator.as_deref().context("the orchestrator does not run")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("orchestrator.db")
    }
}
