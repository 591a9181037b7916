//! What a scenario has: the services, the orchestrator, and one booking.

use anyhow::{Context as _, bail};
use booking::deployment::Deployment;
use booking::outside::GOOD;
use booking::request::BookingRequest;
use cucumber::World;

use crate::carrier::Carrier;
use crate::run::Setting;

/// The key of the booking.
pub(crate) const KEY: &str = "booking-1";

const CENTS: i64 = 4_900;

/// The world of a scenario.
#[derive(Debug, Default, World)]
pub(crate) struct Booking {
    /// Opened before the first step.
    deployment: Option<Deployment>,
    pub(crate) request: Option<BookingRequest>,
    // Dropped last: the services and the orchestrator are connected to it.
    #[cfg(feature = "rabbitmq")]
    vhost: Option<saga_servers::shared::Vhost>,
}

impl Booking {
    pub(crate) async fn open(&mut self, setting: Setting) -> anyhow::Result<()> {
        self.deployment = Some(match setting.carrier {
            Carrier::Memory => Deployment::in_memory((setting.definition)()?).await?,
            #[cfg(feature = "rabbitmq")]
            Carrier::RabbitMq => {
                let vhost = self.vhost.insert(saga_servers::shared::vhost("booking").await?);
                Deployment::on_rabbitmq(env!("CARGO_BIN_EXE_booking").into(), vhost.url()).await?
            }
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
    pub(crate) fn wants(&mut self, user: String, seat: String) {
        self.request = Some(BookingRequest { user, seat, card: GOOD.to_owned(), cents: CENTS });
    }

    pub(crate) fn pays_with(&mut self, card: &str) -> anyhow::Result<()> {
        card.clone_into(&mut self.request.as_mut().context("the scenario has no request for a seat yet")?.card);
        Ok(())
    }

    /// Waits for the next event of a service, which must be this one, and delivers it so often.
    pub(crate) async fn receives(&self, name: &str, service: &str, times: usize) -> anyhow::Result<()> {
        let deployment = self.deployment()?;
        let event = tokio::select! {
            event = deployment.replies.next(KEY) => event,
            outcome = self.ended() => bail!("no service sends an event any more: the saga is {}", outcome?),
        };
        if (event.name, event.service.as_str()) != (name, &format!("{service}s")) {
            bail!("the next event is {} of the service `{}`", event.name, event.service);
        }
        deployment.replies.deliver(KEY, times);
        Ok(())
    }

    /// Delivers every event, until the saga has ended or is stuck.
    pub(crate) async fn receives_all(&self) -> anyhow::Result<()> {
        let deployment = self.deployment()?;
        loop {
            tokio::select! {
                _ = deployment.replies.next(KEY) => deployment.replies.deliver(KEY, 1),
                outcome = deployment.outcome(KEY) => return outcome.map(drop),
            }
        }
    }

    /// Waits until the saga is in this state. It fails as soon as the saga has come to rest in another one: nothing moves it
    /// while a service's event is not delivered, or behind its end.
    pub(crate) async fn comes_to(&self, expected: &str) -> anyhow::Result<()> {
        let deployment = self.deployment()?;
        let mut rests = false;
        loop {
            let state = deployment.state(KEY).await?;
            if state == expected {
                return Ok(());
            }
            if rests {
                bail!("the state is {state}");
            }
            tokio::select! {
                _ = deployment.replies.next(KEY) => {}
                outcome = self.at_end_of(expected) => drop(outcome?),
            }
            rests = true;
        }
    }

    /// A saga that is stuck is expected to stay so, or to be moved by an operator.
    async fn at_end_of(&self, expected: &str) -> anyhow::Result<String> {
        let deployment = self.deployment()?;
        if expected == "NEEDS_OPERATOR" { deployment.outcome(KEY).await } else { deployment.closed(KEY).await }
    }

    /// While the orchestrator is killed, the saga does not end.
    async fn ended(&self) -> anyhow::Result<String> {
        let deployment = self.deployment()?;
        if deployment.is_killed() { std::future::pending().await } else { deployment.closed(KEY).await }
    }
}
