//! What sends.
//!
//! # Cancel safety
//! Dropping a `publish` leaves each of its messages sent or not sent.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use saga_core::transport::TransportError;

use crate::batch::Pending;
use crate::error::{Cause, Failure};
use crate::health::{PublisherHealth, Reach};
use crate::request::{Address, NotTaken, send};
use crate::topology::{Topology, missing};
use crate::wire::{Outgoing, To};
use saga_core::__private::log;

/// How many requests for one queue or topic are under way at a time.
const REQUESTS_AT_A_TIME: usize = 8;
/// How often a message is sent in one call, if SQS takes it not now.
const ATTEMPTS_MAX: u32 = 3;
/// The pause before the second attempt; each later one is twice as long.
const PAUSE: Duration = Duration::from_millis(100);
/// How long between two looks whether SQS is back.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What sends.
pub(crate) struct Publisher {
    topology: Arc<Topology>,
    reach: Reach,
}

/// What became of the message in a place.
type Answer = (usize, Result<(), Failure>);

impl Publisher {
    pub(crate) fn new(topology: Arc<Topology>) -> Arc<Self> {
        Arc::new(Self { topology, reach: Reach::default() })
    }

    pub(crate) fn reachable(&self) -> Result<(), TransportError> {
        self.reach.check()
    }

    pub(crate) fn health(&self) -> PublisherHealth {
        self.reach.read()
    }

    /// Sends messages, and waits until each is taken or not.
    pub(crate) async fn publish(self: &Arc<Self>, messages: &[&Outgoing]) -> Vec<Result<(), TransportError>> {
        let mut lanes = BTreeMap::<(&To, bool), Vec<usize>>::new();
        for (place, message) in messages.iter().enumerate() {
            lanes.entry((&message.to, message.is_addressed)).or_default().push(place);
        }
        let sending =
            lanes.into_iter().map(|((to, is_addressed), places)| self.send_to(to, is_addressed, places, messages));
        let mut answers: Vec<Answer> = join_all(sending).await.concat();
        answers.sort_unstable_by_key(|(place, _)| *place);
        let answer = |(place, answer): Answer| answer.map_err(|failure| error(&messages[place].to, &failure));
        answers.into_iter().map(answer).collect()
    }

    /// Sends the messages for one queue or topic. Behind one that was not taken, and may be later, its group stops.
    async fn send_to(
        self: &Arc<Self>,
        to: &To,
        is_addressed: bool,
        places: Vec<usize>,
        messages: &[&Outgoing],
    ) -> Vec<Answer> {
        let address = match self.address(to, is_addressed).await {
            Ok(address) => address,
            Err(failure) => return places.into_iter().map(|place| (place, Err(failure.clone()))).collect(),
        };
        let mut pending = Pending::default();
        for place in places {
            pending.add(place, messages[place]);
        }
        let mut answers = Vec::new();
        loop {
            let requests = pending.next_requests();
            if requests.is_empty() {
                return answers;
            }
            let sent = requests.into_iter().map(|request| self.send_request(&address, request, messages));
            let sent: Vec<Vec<Answer>> = stream::iter(sent).buffered(REQUESTS_AT_A_TIME).collect().await;
            for (place, answer) in sent.concat() {
                if let Err(failure) = &answer
                    && failure.cause != Cause::Invalid
                {
                    self.note(to, failure);
                    let behind = pending.give_up(&messages[place].group);
                    answers.extend(behind.into_iter().map(|place| (place, Err(failure.clone()))));
                }
                answers.push((place, answer));
            }
        }
    }

    async fn address(self: &Arc<Self>, to: &To, is_addressed: bool) -> Result<Address, Failure> {
        let found = match to {
            To::Queue(name) => self.topology.queue(name).await.map(|url| url.map(|url| Address::Queue { url })),
            To::Topic(name) => {
                let arn = self.topology.topic(name, is_addressed).await;
                arn.map(|arn| arn.map(|arn| Address::Topic { arn }))
            }
        };
        match found {
            Ok(found) => found.ok_or_else(|| Failure::said("NotFound", None)),
            Err(failure) => {
                self.note(to, &failure);
                Err(failure)
            }
        }
    }

    /// Sends one request, and again those of its messages that SQS may take a moment later, with the same deduplication ids. A
    /// request that failed as a whole was repeated by the client.
    async fn send_request(
        self: &Arc<Self>,
        address: &Address,
        places: Vec<usize>,
        messages: &[&Outgoing],
    ) -> Vec<Answer> {
        let mut open: Vec<(usize, &Outgoing)> = places.iter().map(|place| (*place, messages[*place])).collect();
        let mut failures = NotTaken::new();
        for attempt in 0..ATTEMPTS_MAX {
            if attempt > 0 {
                tokio::time::sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
            }
            let (mut not_taken, may_be_repeated) = self.send_once(address, &open).await;
            open.retain(|(place, _)| {
                failures.remove(place);
                let Some(failure) = not_taken.remove(place) else { return false };
                let stays = may_be_repeated && failure.may_pass_soon();
                failures.insert(*place, failure);
                stays
            });
            if open.is_empty() {
                break;
            }
        }
        places.into_iter().map(|place| (place, failures.remove(&place).map_or(Ok(()), Err))).collect()
    }

    /// Answers which messages were not taken, and whether it says so of each of them. Where SQS refuses a whole request for its
    /// content, one message must not cost the others.
    async fn send_once(self: &Arc<Self>, address: &Address, messages: &[(usize, &Outgoing)]) -> (NotTaken, bool) {
        let clients = &self.topology.clients;
        match send(clients, address, messages).await {
            Ok(not_taken) => {
                if !not_taken.values().any(Failure::is_outage) {
                    self.works();
                }
                (not_taken, true)
            }
            Err(failure) if failure.cause == Cause::Invalid && messages.len() > 1 => {
                let mut not_taken = NotTaken::new();
                for message in messages {
                    let alone = send(clients, address, std::slice::from_ref(message)).await;
                    not_taken.extend(alone.unwrap_or_else(|failure| NotTaken::from([(message.0, failure)])));
                }
                (not_taken, false)
            }
            Err(failure) => (messages.iter().map(|(place, _)| (*place, failure.clone())).collect(), false),
        }
    }

    fn works(&self) {
        if self.reach.works() {
            log::info!("sending works again");
        }
    }

    /// Remembers a failure, and looks when it has passed. It is told once in an outage.
    fn note(self: &Arc<Self>, to: &To, failure: &Failure) {
        let error = error(to, failure);
        match (failure.cause, to) {
            (Cause::NotFound, To::Queue(name)) => self.topology.forget_queue(name),
            (Cause::NotFound, To::Topic(name)) => self.topology.topic_is_gone(name),
            _ => {}
        }
        if !failure.is_outage() {
            self.reach.failed(error.to_string());
        } else if self.lost(&error.to_string()) {
            let service = match to {
                To::Queue(_) => Service::Sqs,
                To::Topic(_) => Service::Sns,
            };
            tokio::spawn(look_until_it_answers(Arc::downgrade(self), service));
        }
    }

    /// Answers whether an outage begins.
    fn lost(&self, error: &str) -> bool {
        let lost = self.reach.lost(error.to_owned());
        if lost.is_news {
            log::warn!(error, "sending does not work");
        }
        lost.begins
    }
}

/// The service of a request that failed.
#[derive(Debug, Clone, Copy)]
enum Service {
    Sqs,
    Sns,
}

/// Asks the service that failed, since the other one may answer all the time.
async fn look_until_it_answers(publisher: Weak<Publisher>, service: Service) {
    let _panicked = Panicked(Weak::clone(&publisher));
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(publisher) = publisher.upgrade().filter(|publisher| publisher.reach.is_lost()) else { return };
        let (answer, doing) = match service {
            Service::Sqs => (publisher.topology.probe().await, "reach SQS"),
            Service::Sns => (publisher.topology.probe_sns().await, "reach SNS"),
        };
        match answer {
            Err(failure) if failure.is_outage() || failure.cause == Cause::Unanswered => {
                publisher.lost(&failure.describe(doing));
            }
            // It answers; what it thinks of this request is nothing to those that send. Whether it takes messages, the next one shows.
            _ => return publisher.reach.answers(),
        }
    }
}

/// Tells that the look has ended with a panic: the next message shows whether sending works.
struct Panicked(Weak<Publisher>);

impl Drop for Panicked {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(publisher) = self.0.upgrade()
        {
            publisher.reach.answers();
        }
    }
}

fn error(to: &To, failure: &Failure) -> TransportError {
    let (what, name) = match to {
        To::Queue(name) => ("queue", name),
        To::Topic(name) => ("topic", name),
    };
    if failure.cause == Cause::NotFound {
        return missing("publish", what, name);
    }
    failure.of_message(&format!("send to the {what} {name}"))
}
