//! Publishing: over a few channels of one supervised connection, each used by one call at a time.
//!
//! # Cancel safety
//! A dropped call leaves each of its messages sent or not sent, and its channel is closed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lapin::options::ConfirmSelectOptions;
use lapin::{Channel, Connection};
use saga_core::transport::{TransportError, TransportErrorKind};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::{describe, is_not_found, is_of_the_topic, soft, too_late};
use crate::fate::Fate;
use crate::health::HealthCell;
use crate::names::Names;
use crate::options::{AmqpOptions, Topology};
use crate::supervisor::{Link, Supervisor};
use crate::topology::{Needs, Queues};
use crate::window::{Kept, Limits};
use crate::wire::Outgoing;

/// How many slow topics are remembered.
const SLOW_MAX: usize = 1_000;
const BLOCKED: &str = "the broker is short of memory or disk and takes no messages";

/// The publishing side of a transport.
#[derive(Debug)]
pub(crate) struct Publisher {
    supervisor: Supervisor,
    options: AmqpOptions,
    names: Names,
    slots: Semaphore,
    idle: Mutex<Vec<Kept>>,
    /// Topics on which messages are in doubt.
    slow: Mutex<HashSet<String>>,
}

/// What one call holds: a channel, its connection, and its place among the calls.
struct Held<'a> {
    kept: Kept,
    connection: Arc<Connection>,
    #[expect(dead_code, reason = "it is there to be dropped")]
    permit: SemaphorePermit<'a>,
}

impl Publisher {
    pub(crate) async fn connect(options: AmqpOptions) -> Result<Self, TransportError> {
        let names = options.names()?;
        let needs = Needs { names: names.clone(), queues: Queues::None };
        let supervisor = Supervisor::start(options.clone(), needs).await?;
        let slots = Semaphore::new(options.publish_channels);
        Ok(Self { supervisor, options, names, slots, idle: Mutex::default(), slow: Mutex::default() })
    }

    pub(crate) fn health(&self) -> &HealthCell {
        self.supervisor.health()
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Whether the connection is there, and the broker takes messages, as far as is known.
    pub(crate) fn reachable(&self) -> Result<(), TransportError> {
        let why = match &*self.supervisor.link().borrow() {
            Link::Up { is_blocked: false, .. } => return Ok(()),
            Link::Up { .. } => BLOCKED.to_owned(),
            Link::Down => self.loss(),
        };
        Err(TransportError::new(TransportErrorKind::Unavailable, "publish", format!("nothing can be sent: {why}")))
    }

    /// Sends messages, and says of each what became of it.
    ///
    /// A message that the broker does not take closes the channel, and the other messages under way get no answer. They are sent
    /// again in halves, until the message is alone and its error is its own.
    pub(crate) async fn publish(&self, messages: &[Arc<Outgoing>]) -> Vec<Result<Fate, TransportError>> {
        let mut fates = vec![Fate::NotSent; messages.len()];
        // The next part is the last one, so the messages are sent in their order.
        let mut parts: Vec<Vec<usize>> = vec![(0..messages.len()).collect()];
        // What becomes of the other messages of a topic that the broker takes none of.
        let mut forbidden = HashMap::new();
        while let Some(mut part) = parts.pop() {
            part.retain(|index| match forbidden.get(messages[*index].routing_key.as_str()) {
                Some(fate) => {
                    fates[*index] = Fate::clone(fate);
                    false
                }
                None => true,
            });
            if part.is_empty() {
                continue;
            }
            let sent: Vec<Arc<Outgoing>> = part.iter().map(|index| Arc::clone(&messages[*index])).collect();
            let answers = match self.send(&sent).await {
                Ok(answers) => answers,
                Err(error) if part.len() == messages.len() => return again(&error, messages.len()),
                // No channel can be had. The messages that are left keep the fates that they have.
                Err(_) => break,
            };
            let is_alone = part.len() == 1;
            let is_closed = answers.iter().any(closed_the_channel);
            for (index, answer) in part.iter().zip(answers) {
                fates[*index] = match answer {
                    Fate::Broken(ref error) if is_alone && is_of_the_topic(error) => {
                        forbidden.insert(messages[*index].routing_key.as_str(), answer.clone());
                        answer
                    }
                    Fate::Broken(_) if is_closed && !is_alone => Fate::Unanswered,
                    answer => answer,
                };
            }
            if is_closed && !is_alone {
                part.retain(|index| matches!(fates[*index], Fate::Unanswered | Fate::NotSent));
                let behind = part.split_off(part.len().div_ceil(2));
                parts.extend([behind, part].into_iter().filter(|part| !part.is_empty()));
            }
        }
        fates.into_iter().map(|fate| self.judge(fate)).collect()
    }

    async fn send(&self, messages: &[Arc<Outgoing>]) -> Result<Vec<Fate>, TransportError> {
        let deadline = Instant::now() + self.options.unavailable_timeout;
        let mut held = self.channel(messages, deadline).await?;
        let mut fates = self.send_over(&mut held.kept, messages).await;
        let is_late = |fate: &Fate| matches!(fate, Fate::Late);
        if fates.iter().any(is_late) && !self.answers(&held.connection).await {
            self.supervisor.renew(held.kept.generation);
            for fate in fates.iter_mut().filter(|fate| is_late(fate)) {
                *fate = Fate::Silent;
            }
            return Ok(fates);
        }
        // Behind a window full of late messages are others that need not wait for them.
        let mut open = not_sent(&fates);
        while !open.is_empty() && fates.iter().any(is_late) && held.kept.is_usable() {
            let rest: Vec<Arc<Outgoing>> = open.iter().map(|index| Arc::clone(&messages[*index])).collect();
            for (index, fate) in open.iter().zip(self.send_over(&mut held.kept, &rest).await) {
                fates[*index] = fate;
            }
            let left = not_sent(&fates);
            if left.len() == open.len() {
                break;
            }
            open = left;
        }
        // Elsewhere a new connection changes nothing about an exchange that is missing, and holds up all other messages.
        let is_declared = self.options.topology == Topology::Declare;
        if is_declared && fates.iter().any(|fate| matches!(fate, Fate::Broken(error) if is_not_found(error))) {
            self.supervisor.renew(held.kept.generation);
        } else if held.kept.is_usable() {
            lock(&self.idle).push(held.kept);
        }
        Ok(fates)
    }

    /// Sends messages over a channel, and remembers on which topics the broker is late.
    async fn send_over(&self, kept: &mut Kept, messages: &[Arc<Outgoing>]) -> Vec<Fate> {
        let slow = lock(&self.slow).clone();
        let (window, timeout) = (self.options.confirm_window, self.options.confirm_timeout);
        let fates = kept.send(&self.names, messages, &Limits { window, timeout, slow: &slow }).await;
        if slow.is_empty() && !fates.iter().any(|fate| matches!(fate, Fate::Late)) {
            return fates;
        }
        let mut slow = lock(&self.slow);
        for (message, fate) in messages.iter().zip(&fates) {
            let topic = message.routing_key.as_str();
            match fate {
                Fate::Late => _ = slow.insert(topic.to_owned()),
                Fate::Confirmed | Fate::Returned | Fate::Refused => _ = slow.remove(topic),
                Fate::Broken(_) | Fate::Unanswered | Fate::Silent | Fate::NotSent => {}
            }
        }
        if slow.len() > SLOW_MAX {
            slow.clear();
        }
        fates
    }

    /// Whether the broker answers on a connection on which a confirm is late. If it does, one queue is slow; if not, the node
    /// is frozen or cut off, and its connection is made again, to another node where there is one.
    async fn answers(&self, connection: &Connection) -> bool {
        let is_blocked = |link: &Link| matches!(link, Link::Up { is_blocked: true, .. });
        // A broker that is short of memory or disk reads nothing from who publishes, and says so.
        if is_blocked(&self.supervisor.link().borrow()) {
            return true;
        }
        let asking = timeout(self.options.confirm_timeout / 2, connection.create_channel());
        matches!(asking.await, Ok(Ok(_))) || is_blocked(&self.supervisor.link().borrow())
    }

    /// A channel for this call alone. Waits for a free one, for the connection, and for the broker to accept messages.
    async fn channel(&self, messages: &[Arc<Outgoing>], deadline: Instant) -> Result<Held<'_>, TransportError> {
        let unavailable = |detail: String| TransportError::new(TransportErrorKind::Unavailable, "publish", detail);
        let limit = self.options.unavailable_timeout;
        let Ok(Ok(permit)) = timeout_at(deadline, self.slots.acquire()).await else {
            let count = self.options.publish_channels;
            return Err(unavailable(format!(
                "all {count} channels were busy for {limit:?}; raise `publish_channels`, or look why the broker confirms so slowly"
            )));
        };
        let mut link = self.supervisor.link();
        let is_ready = |link: &Link| matches!(link, Link::Up { is_blocked: false, .. });
        let ready = match timeout_at(deadline, link.wait_for(is_ready)).await {
            Ok(Ok(link)) => link.clone(),
            _ => Link::Down,
        };
        let Link::Up { connection, generation, .. } = ready else {
            let why = match &*link.borrow() {
                Link::Up { .. } => BLOCKED.to_owned(),
                Link::Down => self.loss(),
            };
            return Err(unavailable(format!("nothing could be sent for {limit:?}: {why}")));
        };
        let kept = match self.take_idle(generation, messages) {
            Some(kept) => kept,
            None => Kept::new(self.open(&connection, generation, deadline).await?, generation),
        };
        Ok(Held { kept, connection, permit })
    }

    fn loss(&self) -> String {
        format!("the connection is lost: {}", self.health().last_error().unwrap_or_default())
    }

    /// The channel on which these messages are in doubt goes before any other, and then the one with the fewest doubts.
    fn take_idle(&self, generation: u64, messages: &[Arc<Outgoing>]) -> Option<Kept> {
        let mut idle = lock(&self.idle);
        idle.retain(|kept| kept.generation == generation && kept.is_usable() && !kept.is_due_for_replacement());
        let in_doubt = idle.iter().position(|kept| kept.knows_any(messages));
        let place = in_doubt.or_else(|| (0..idle.len()).rev().min_by_key(|place| idle[*place].doubts()))?;
        Some(idle.swap_remove(place))
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
            // Whatever it is, it is not about the messages.
            Ok(Err(error)) => {
                let detail = describe("open a channel", &error);
                Err(TransportError::new(TransportErrorKind::Unavailable, "publish", detail))
            }
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
                let detail = "the broker did not take the message: its queue is full, or cannot write; receive from it, or \
                              raise its limit";
                error(TransportErrorKind::Nacked, detail.to_owned())
            }
            Fate::Broken(cause) => {
                let kind = match soft(&cause) {
                    // A person can permit it, or make what is missing, and the message is sent.
                    Some(_) if is_of_the_topic(&cause) => TransportErrorKind::Nacked,
                    Some(_) => TransportErrorKind::Refused,
                    None => TransportErrorKind::Unknown,
                };
                error(kind, describe("publish the message", &cause))
            }
            Fate::Unanswered => {
                let detail = "no confirmation: the broker closed the channel because of another message";
                error(TransportErrorKind::Unknown, detail.to_owned())
            }
            Fate::Late => {
                let limit = self.options.confirm_timeout;
                let detail =
                    "the broker answers, so its queue is probably without a leader; the confirmation is waited for";
                error(TransportErrorKind::Unknown, format!("no confirmation within {limit:?}: {detail}"))
            }
            Fate::Silent => {
                let limit = self.options.confirm_timeout;
                let detail = "the broker does not answer either; its connection is made again";
                error(TransportErrorKind::Unknown, format!("no confirmation within {limit:?}: {detail}"))
            }
            Fate::NotSent => {
                error(TransportErrorKind::Unavailable, "the connection broke before the message was sent".to_owned())
            }
        }
    }
}

fn closed_the_channel(fate: &Fate) -> bool {
    matches!(fate, Fate::Broken(error) if soft(error).is_some())
}

/// One error for each message of a call.
fn again(error: &TransportError, count: usize) -> Vec<Result<Fate, TransportError>> {
    let text = error.to_string();
    let detail = text.strip_prefix("publish: ").unwrap_or(&text);
    std::iter::repeat_with(|| Err(TransportError::new(error.kind(), "publish", detail))).take(count).collect()
}

fn not_sent(fates: &[Fate]) -> Vec<usize> {
    let places = fates.iter().enumerate().filter(|(_, fate)| matches!(fate, Fate::NotSent));
    places.map(|(index, _)| index).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
