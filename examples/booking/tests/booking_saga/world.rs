//! What a scenario has: the services, the orchestrator, and those who want a seat.

use anyhow::{Context as _, bail};
#[cfg(feature = "rabbitmq")]
use booking::broker::Broker;
use booking::deployment::Deployment;
use booking::request::BookingRequest;
use cucumber::World;

use crate::carrier::Carrier;
use crate::run::Setting;

#[cfg(feature = "broker")]
const PROGRAM: &str = env!("CARGO_BIN_EXE_booking");

const CENTS: i64 = 4_900;

/// The world of a scenario.
#[derive(Debug, Default, World)]
pub(crate) struct Booking {
    /// Opened before the first step.
    deployment: Option<Deployment>,
    guests: Vec<Guest>,
    // Dropped last: the services and the orchestrator are connected to it.
    #[cfg(feature = "rabbitmq")]
    vhost: Option<saga_servers::shared::Vhost>,
}

/// A user, and the booking that the user wants.
#[derive(Debug, Clone)]
pub(crate) struct Guest {
    /// The key of the saga.
    pub(crate) key: String,
    pub(crate) request: BookingRequest,
}

impl Booking {
    pub(crate) async fn open(&mut self, setting: Setting) -> anyhow::Result<()> {
        self.deployment = Some(match setting.carrier {
            Carrier::Memory => Deployment::in_memory((setting.definition)()?).await?,
            #[cfg(feature = "rabbitmq")]
            Carrier::RabbitMq => {
                let vhost = self.vhost.insert(saga_servers::shared::vhost("booking").await?);
                Deployment::on_broker(PROGRAM.into(), Broker::connect(vhost.url()).await?).await?
            }
            #[cfg(feature = "sqs")]
            Carrier::Sqs => Deployment::on_broker(PROGRAM.into(), crate::sqs::broker().await?).await?,
        });
        Ok(())
    }

    pub(crate) async fn close(&mut self) {
        if let Some(deployment) = self.deployment.take() {
            deployment.close().await;
        }
    }

    pub(crate) fn deployment(&self) -> anyhow::Result<&Deployment> {
        self.deployment.as_ref().context("nothing runs")
    }

    pub(crate) fn deployment_mut(&mut self) -> anyhow::Result<&mut Deployment> {
        self.deployment.as_mut().context("nothing runs")
    }

    /// The wish for this seat.
    pub(crate) fn wants(&mut self, user: String, seat: String, card: &str) {
        let key = format!("booking-{}", self.guests.len() + 1);
        let request = BookingRequest { user, seat, card: card.to_owned(), cents: CENTS };
        self.guests.push(Guest { key, request });
    }

    /// The one that a scenario is about, if it names none.
    pub(crate) fn first(&self) -> anyhow::Result<&Guest> {
        self.guests.first().context("the scenario has no request for a seat yet")
    }

    pub(crate) fn guest(&self, user: &str) -> anyhow::Result<&Guest> {
        let guest = self.guests.iter().find(|guest| guest.request.user == user);
        guest.with_context(|| format!("{user} wants no seat"))
    }

    /// The card of the first one.
    pub(crate) fn pays_with(&mut self, card: &str) -> anyhow::Result<()> {
        let guest = self.guests.first_mut().context("the scenario has no request for a seat yet")?;
        card.clone_into(&mut guest.request.card);
        Ok(())
    }

    /// Waits for the next event of a service, which must be this one, and delivers it so often.
    pub(crate) async fn receives(&self, guest: &Guest, name: &str, service: &str, times: usize) -> anyhow::Result<()> {
        let deployment = self.deployment()?;
        let event = tokio::select! {
            event = deployment.replies.next(&guest.key) => event,
            outcome = self.ended(guest) => bail!("no service sends an event any more: the saga is {}", outcome?),
        };
        if (event.name, event.service.as_str()) != (name, &format!("{service}s")) {
            bail!("the next event is {} of the service `{}`", event.name, event.service);
        }
        deployment.replies.deliver(&guest.key, times);
        Ok(())
    }

    /// Delivers every event, until the saga has ended or is stuck.
    pub(crate) async fn receives_all(&self, guest: &Guest) -> anyhow::Result<()> {
        let deployment = self.deployment()?;
        loop {
            tokio::select! {
                _ = deployment.replies.next(&guest.key) => deployment.replies.deliver(&guest.key, 1),
                outcome = deployment.outcome(&guest.key) => return outcome.map(drop),
            }
        }
    }

    /// Waits until the saga is in this state. It fails as soon as the saga has come to rest in another one: nothing moves it
    /// while a service's event is not delivered, or behind its end.
    pub(crate) async fn comes_to(&self, guest: &Guest, expected: &str) -> anyhow::Result<()> {
        let deployment = self.deployment()?;
        let mut rests = false;
        loop {
            let state = deployment.state(&guest.key).await?;
            if state == expected {
                return Ok(());
            }
            if rests {
                bail!("the state is {state}");
            }
            tokio::select! {
                _ = deployment.replies.next(&guest.key) => {}
                outcome = self.at_end_of(guest, expected) => drop(outcome?),
            }
            rests = true;
        }
    }

    /// A saga that is stuck is expected to stay so, or to be moved by an operator.
    async fn at_end_of(&self, guest: &Guest, expected: &str) -> anyhow::Result<String> {
        let deployment = self.deployment()?;
        if expected == "NEEDS_OPERATOR" {
            deployment.outcome(&guest.key).await
        } else {
            deployment.closed(&guest.key).await
        }
    }

    /// While the orchestrator is killed, the saga does not end.
    async fn ended(&self, guest: &Guest) -> anyhow::Result<String> {
        let deployment = self.deployment()?;
        if deployment.is_killed() { std::future::pending().await } else { deployment.closed(&guest.key).await }
    }
}
