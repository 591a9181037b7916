//! Sending over one channel with a window of confirms.
//!
//! A confirm that is late is no reason to give the channel up. When the leader of a queue freezes, the broker tells those
//! channels of the next leader that have sent to the queue before; a new channel would wait for the frozen one. So a channel
//! is kept with what is unanswered on it, and a message that is still in doubt there is not sent a second time.
//!
//! # Cancel safety
//! A dropped send leaves each of its messages sent or not sent. Its channel must not be used again.

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use lapin::message::BasicReturnMessage;
use lapin::options::BasicPublishOptions;
use lapin::{Channel, Confirmation, Error};
use tokio::time::Instant;

use crate::fate::{Fate, Identity};
use crate::names::Names;
use crate::settled::Settled;
use crate::wire::Outgoing;

/// How many messages may be in doubt on one channel. One with more is given up.
const DOUBTS_MAX: usize = 4_096;
/// How long is waited for messages of a topic on which others are in doubt: the queue is probably without a leader.
const SLOW_PATIENCE: Duration = Duration::from_millis(250);

/// For how long a message is waited for on the channel on which it is in doubt, before it goes over another: one that the
/// queue had not heard of when its leader froze is told of no other leader.
const HOPE: Duration = Duration::from_secs(10);

/// How old a channel has to be before it is replaced because the broker refused a message on it. A queue that is full refuses
/// too, and there a new channel changes nothing.
const REPLACED_AGE_MIN: Duration = Duration::from_secs(1);

/// What holds for one call.
pub(crate) struct Limits<'a> {
    /// How many messages may be unanswered at a time.
    pub(crate) window: usize,
    /// How long the broker may be silent.
    pub(crate) timeout: Duration,
    /// Topics on which messages are in doubt.
    pub(crate) slow: &'a HashSet<String>,
}

/// A channel in confirm mode, used by one call at a time, with what earlier calls left unanswered on it.
pub(crate) struct Kept {
    channel: Channel,
    /// The number of its connection.
    pub(crate) generation: u64,
    opened_at: Instant,
    /// Whether the broker refused a message.
    has_refused: bool,
    doubts: HashMap<Identity, Doubt>,
    settled: Settled,
    returned: HashSet<Identity>,
}

/// A message whose answer is late.
struct Doubt {
    since: Instant,
    confirming: Confirming,
}

impl Doubt {
    fn is_hopeful(&self) -> bool {
        self.since.elapsed() < HOPE
    }
}

type Confirming = BoxFuture<'static, Result<Confirmation, Error>>;

impl Kept {
    pub(crate) fn new(channel: Channel, generation: u64) -> Self {
        Self {
            channel,
            generation,
            opened_at: Instant::now(),
            has_refused: false,
            doubts: HashMap::new(),
            settled: Settled::default(),
            returned: HashSet::new(),
        }
    }

    /// Whether another call may use it.
    pub(crate) fn is_usable(&self) -> bool {
        self.channel.status().connected() && self.doubts.len() <= DOUBTS_MAX
    }

    /// Whether a new channel should take its place. A channel that first sends to a queue while the node of its leader is down,
    /// before another leader is elected, asks that node again for each message, and is refused until the node is back. One that
    /// met a full queue is not told that its limit was lifted.
    pub(crate) fn is_due_for_replacement(&self) -> bool {
        let is_due = self.has_refused && self.opened_at.elapsed() >= REPLACED_AGE_MIN;
        is_due && !self.doubts.values().any(Doubt::is_hopeful)
    }

    /// Whether one of these messages was sent here, and its answer came late, or may still come soon.
    pub(crate) fn knows_any(&self, messages: &[Arc<Outgoing>]) -> bool {
        let is_known =
            |identity| self.settled.contains(&identity) || self.doubts.get(&identity).is_some_and(Doubt::is_hopeful);
        (!self.doubts.is_empty() || !self.settled.is_empty())
            && messages.iter().any(|message| is_known(identity(message)))
    }

    /// How many messages are in doubt here.
    pub(crate) fn doubts(&mut self) -> usize {
        self.sweep();
        self.doubts.len()
    }

    /// Sends messages. One that is in doubt here is not sent again; it is `Late` until its answer has come.
    ///
    /// Which message was returned is told by its id and its routing key: the library hands a returned message to whichever
    /// confirm comes next, which need not be its own.
    pub(crate) async fn send(&mut self, names: &Names, messages: &[Arc<Outgoing>], limits: &Limits<'_>) -> Vec<Fate> {
        self.sweep();
        let mut call = Call::new(messages, limits);
        for (index, message) in messages.iter().enumerate() {
            while call.waiting.len() >= limits.window && call.is_sound {
                call.answer(&mut self.returned).await;
            }
            if !call.is_sound {
                break;
            }
            if let Some(fate) = self.known(message) {
                call.fates[index] = fate;
                continue;
            }
            // The first poll hands the message to the library, so the messages go in their order; a set of futures alone
            // promises none.
            let mut sending = Sending { index, confirming: publish(&self.channel, names, message) };
            match futures_util::poll!(&mut sending) {
                Poll::Pending => call.waits(sending),
                Poll::Ready((index, answer)) => call.note(index, answer, &mut self.returned),
            }
        }
        while !call.waiting.is_empty() && call.is_prompt {
            call.answer(&mut self.returned).await;
        }
        for Sending { index, confirming } in std::mem::take(&mut call.waiting) {
            self.doubts.insert(identity(&messages[index]), Doubt { since: Instant::now(), confirming });
        }
        self.has_refused |= call.fates.iter().any(|fate| matches!(fate, Fate::Refused));
        self.judged(call)
    }

    /// What is known of a message that was sent here before.
    fn known(&mut self, message: &Outgoing) -> Option<Fate> {
        if self.doubts.is_empty() && self.settled.is_empty() {
            return None;
        }
        let identity = identity(message);
        let is_in_doubt = self.doubts.contains_key(&identity);
        self.settled.take(&identity).or_else(|| is_in_doubt.then_some(Fate::Late))
    }

    /// Looks which of the messages in doubt were answered meanwhile.
    fn sweep(&mut self) {
        if self.doubts.is_empty() {
            return;
        }
        let mut confirmed = Vec::new();
        let mut answered = Vec::new();
        for (identity, Doubt { confirming, .. }) in &mut self.doubts {
            answered.extend(confirming.now_or_never().map(|answer| (identity.clone(), answer)));
        }
        for (identity, answer) in answered {
            self.doubts.remove(&identity);
            // One that was not taken is sent again as if it had never been.
            self.has_refused |= matches!(answer, Ok(Confirmation::Nack(_)));
            if let Ok(Confirmation::Ack(message)) = answer {
                let is_foreign = keep_returned(message, &identity, &mut self.returned);
                confirmed.push((identity, is_foreign));
            }
        }
        for (identity, is_foreign) in confirmed {
            if self.returned.remove(&identity) {
                self.settled.insert(identity, Fate::Returned);
            } else if !is_foreign || self.doubts.is_empty() {
                self.settled.insert(identity, Fate::Confirmed);
            }
        }
    }

    /// Tells the returned messages from those that a queue took.
    fn judged(&mut self, call: Call<'_>) -> Vec<Fate> {
        self.sweep();
        let Call { mut fates, messages, foreign, .. } = call;
        for (index, fate) in fates.iter_mut().enumerate() {
            if !matches!(fate, Fate::Confirmed) || (self.returned.is_empty() && foreign.is_empty()) {
                continue;
            }
            if self.returned.remove(&identity(&messages[index])) {
                *fate = Fate::Returned;
            } else if foreign.contains(&index) && !self.doubts.is_empty() {
                // Its confirm brought another's return, so that its own may be with one that is still to come.
                *fate = Fate::Late;
            }
        }
        if self.doubts.is_empty() {
            self.returned.clear();
        }
        fates
    }
}

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let doubts = self.doubts.len();
        f.debug_struct("Kept").field("generation", &self.generation).field("doubts", &doubts).finish_non_exhaustive()
    }
}

/// One call under way.
struct Call<'a> {
    messages: &'a [Arc<Outgoing>],
    limits: &'a Limits<'a>,
    fates: Vec<Fate>,
    waiting: FuturesUnordered<Sending>,
    /// How many of those that wait are for queues that nothing is known against.
    expected: usize,
    /// The messages whose confirms brought another message back.
    foreign: HashSet<usize>,
    /// Whether the last answer came in time.
    is_prompt: bool,
    /// Whether more can be sent.
    is_sound: bool,
}

impl<'a> Call<'a> {
    fn new(messages: &'a [Arc<Outgoing>], limits: &'a Limits<'a>) -> Self {
        Self {
            messages,
            limits,
            fates: vec![Fate::NotSent; messages.len()],
            waiting: FuturesUnordered::new(),
            expected: 0,
            foreign: HashSet::new(),
            is_prompt: true,
            is_sound: true,
        }
    }

    fn is_slow(&self, index: usize) -> bool {
        !self.limits.slow.is_empty() && self.limits.slow.contains(self.messages[index].routing_key.as_str())
    }

    fn waits(&mut self, sending: Sending) {
        self.fates[sending.index] = Fate::Late;
        self.expected += usize::from(!self.is_slow(sending.index));
        self.waiting.push(sending);
    }

    /// Waits for one more answer, for as long as that is worth it.
    async fn answer(&mut self, returned: &mut HashSet<Identity>) {
        let patience = if self.expected > 0 { self.limits.timeout } else { SLOW_PATIENCE.min(self.limits.timeout) };
        match tokio::time::timeout(patience, self.waiting.next()).await {
            Ok(Some((index, answer))) => {
                self.expected -= usize::from(!self.is_slow(index));
                self.note(index, answer, returned);
            }
            Ok(None) => {}
            Err(_) => (self.is_prompt, self.is_sound) = (false, false),
        }
    }

    fn note(&mut self, index: usize, answer: Result<Confirmation, Error>, returned: &mut HashSet<Identity>) {
        let (fate, message) = match answer {
            Ok(Confirmation::Ack(message)) => (Fate::Confirmed, message),
            Ok(Confirmation::Nack(message)) => (Fate::Refused, message),
            // The channel is in confirm mode, so this cannot come; if it does, nothing is known.
            Ok(Confirmation::NotRequested) => (Fate::Late, None),
            Err(error) => (Fate::Broken(error), None),
        };
        self.is_sound &= !matches!(fate, Fate::Broken(_));
        self.fates[index] = fate;
        if message.is_some() && keep_returned(message, &identity(&self.messages[index]), returned) {
            self.foreign.insert(index);
        }
    }
}

/// A message under way.
struct Sending {
    index: usize,
    confirming: Confirming,
}

impl Future for Sending {
    type Output = (usize, Result<Confirmation, Error>);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let index = self.index;
        self.confirming.poll_unpin(context).map(|answer| (index, answer))
    }
}

fn publish(channel: &Channel, names: &Names, message: &Arc<Outgoing>) -> Confirming {
    let options = BasicPublishOptions { mandatory: true, ..Default::default() };
    let exchange = names.exchange(message.routing_key.as_str());
    let (channel, message) = (channel.clone(), Arc::clone(message));
    let sending = async move {
        let (key, properties) = (message.routing_key.clone(), message.properties.clone());
        channel.basic_publish(exchange.into(), key, options, &message.payload, properties).await?.await
    };
    sending.boxed()
}

/// Notes that a message was returned; answers whether it is another than the one whose confirm brought it.
fn keep_returned(message: Option<BasicReturnMessage>, own: &Identity, returned: &mut HashSet<Identity>) -> bool {
    let Some(message) = message else { return false };
    let id = message.delivery.properties.message_id().as_ref().map(ToString::to_string).unwrap_or_default();
    let identity = (id, message.delivery.routing_key.to_string());
    let is_foreign = identity != *own;
    returned.insert(identity);
    is_foreign
}

fn identity(message: &Outgoing) -> Identity {
    let id = message.properties.message_id().as_ref().map(ToString::to_string).unwrap_or_default();
    (id, message.routing_key.to_string())
}
