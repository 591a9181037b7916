//! Publishing: over a few channels of one supervised connection, each used by one call at a time.
//!
//! # Cancel safety
//! A dropped call leaves each of its messages sent or not sent, and its channel is closed.

use std::sync::Arc;
use std::sync::{Mutex, PoisonError};

use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Connection};
use saga_core::transport::{TransportError, TransportErrorKind};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout_at};

use crate::error::{describe, failed, is_not_found, is_precondition_failed, too_late};
use crate::health::HealthCell;
use crate::names::Names;
use crate::options::AmqpOptions;
use crate::supervisor::{Link, Supervisor};
use crate::topology::{Needs, Queues};
use crate::window::{Fate, send};
use crate::wire::Outgoing;

/// The publishing side of a transport.
#[derive(Debug)]
pub(crate) struct Publisher {
    supervisor: Supervisor,
    options: AmqpOptions,
    names: Names,
    slots: Semaphore,
    idle: Mutex<Vec<Idle>>,
}

/// A channel in confirm mode with nothing under way, and the number of its connection.
#[derive(Debug)]
struct Idle {
    channel: Channel,
    generation: u64,
}

impl Publisher {
    pub(crate) async fn connect(options: AmqpOptions) -> Result<Self, TransportError> {
        let names = options.names()?;
        let needs = Needs { names: names.clone(), queues: Queues::None };
        let supervisor = Supervisor::start(options.clone(), needs).await?;
        let slots = Semaphore::new(options.publish_channels);
        Ok(Self { supervisor, options, names, slots, idle: Mutex::default() })
    }

    pub(crate) fn health(&self) -> &HealthCell {
        self.supervisor.health()
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Sends messages, and says of each what became of it.
    pub(crate) async fn publish(&self, messages: &[&Outgoing]) -> Vec<Result<Fate, TransportError>> {
        let mut fates = match self.send(messages).await {
            Ok(fates) => fates,
            Err(error) => {
                let text = error.to_string();
                let detail = text.strip_prefix("publish: ").unwrap_or(&text);
                let again = || TransportError::new(error.kind(), "publish", detail);
                return messages.iter().map(|_| Err(again())).collect();
            }
        };
        // One message that the broker does not take as it is closes the channel, and takes along all that were under
        // way. They are sent again one by one, so that it is an error of that message only.
        if messages.len() > 1 && fates.iter().any(closed_the_channel) {
            for (fate, message) in fates.iter_mut().zip(messages) {
                if matches!(fate, Fate::Broken(_) | Fate::NotSent) {
                    let Ok(mut alone) = self.send(&[message]).await else { break };
                    *fate = alone.pop().unwrap_or(Fate::NotSent);
                }
            }
        }
        fates.into_iter().map(|fate| self.judge(fate)).collect()
    }

    async fn send(&self, messages: &[&Outgoing]) -> Result<Vec<Fate>, TransportError> {
        let deadline = Instant::now() + self.options.unavailable_timeout;
        let (idle, permit) = self.channel(deadline).await?;
        let generation = idle.generation;
        let (window, timeout) = (self.options.confirm_window, self.options.confirm_timeout);
        let fates = send(&idle.channel, &self.names, messages, window, timeout).await;
        if fates.iter().all(|fate| matches!(fate, Fate::Confirmed | Fate::Returned | Fate::Refused)) {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(idle);
        } else if fates.iter().any(|fate| matches!(fate, Fate::Broken(error) if is_not_found(error))) {
            self.supervisor.renew(generation);
        }
        drop(permit);
        Ok(fates)
    }

    /// A channel that nobody else uses. It waits for a free one, for the connection, and for the broker to take messages.
    async fn channel(&self, deadline: Instant) -> Result<(Idle, SemaphorePermit<'_>), TransportError> {
        let unavailable = |detail: String| TransportError::new(TransportErrorKind::Unavailable, "publish", detail);
        let limit = self.options.unavailable_timeout;
        let Ok(Ok(permit)) = timeout_at(deadline, self.slots.acquire()).await else {
            let count = self.options.publish_channels;
            return Err(unavailable(format!("all {count} channels were busy for {limit:?}")));
        };
        let mut link = self.supervisor.link();
        let is_ready = |link: &Link| matches!(link, Link::Up { is_blocked: false, .. });
        let ready = match timeout_at(deadline, link.wait_for(is_ready)).await {
            Ok(Ok(link)) => link.clone(),
            _ => Link::Down,
        };
        let Link::Up { connection, generation, .. } = ready else {
            let last = self.health().last_error().unwrap_or_default();
            let why = match &*link.borrow() {
                Link::Up { .. } => "the broker is short of memory or disk and takes no messages".to_owned(),
                Link::Down => format!("the connection is lost: {last}"),
            };
            return Err(unavailable(format!("nothing could be sent for {limit:?}: {why}")));
        };
        let kept = self.take_idle(generation);
        let idle = match kept {
            Some(idle) => idle,
            None => Idle { channel: self.open(&connection, generation, deadline).await?, generation },
        };
        Ok((idle, permit))
    }

    fn take_idle(&self, generation: u64) -> Option<Idle> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| idle.generation == generation && idle.channel.status().connected());
        idle.pop()
    }

    async fn open(
        &self,
        connection: &Arc<Connection>,
        generation: u64,
        deadline: Instant,
    ) -> Result<Channel, TransportError> {
        let opening = async {
            let channel = connection.create_channel().await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            Ok(channel)
        };
        match timeout_at(deadline, opening).await {
            Ok(Ok(channel)) => Ok(channel),
            Ok(Err(error)) => Err(failed("publish", "open a channel", &error)),
            Err(_) => {
                self.supervisor.renew(generation);
                Err(too_late("publish", "open a channel", self.options.unavailable_timeout))
            }
        }
    }

    fn judge(&self, fate: Fate) -> Result<Fate, TransportError> {
        let error = |kind, detail: String| Err(TransportError::new(kind, "publish", detail));
        match fate {
            Fate::Confirmed | Fate::Returned => Ok(fate),
            Fate::Refused => {
                let detail = "the broker did not take the message: a queue is full, or has no leader";
                error(TransportErrorKind::Unavailable, detail.to_owned())
            }
            Fate::Broken(cause) if is_precondition_failed(&cause) => {
                error(TransportErrorKind::Refused, describe("publish the message", &cause))
            }
            Fate::Broken(cause) => error(TransportErrorKind::Unknown, describe("publish the message", &cause)),
            Fate::Silent => {
                let limit = self.options.confirm_timeout;
                error(TransportErrorKind::Unknown, format!("no confirmation within {limit:?}"))
            }
            Fate::NotSent => {
                error(TransportErrorKind::Unavailable, "the connection broke before the message was sent".to_owned())
            }
        }
    }
}

fn closed_the_channel(fate: &Fate) -> bool {
    matches!(fate, Fate::Broken(error) if is_precondition_failed(error))
}
