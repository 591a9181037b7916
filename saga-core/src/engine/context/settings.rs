//! The limits and times of a runtime.

use std::time::Duration;

use crate::key::{Namespace, Tenant};
use crate::machine::ITEMS_MAX;
use crate::saga::LONGEST;
use crate::store::Capabilities;

/// The limits and times of a runtime. Every one has a default that fits a service of ordinary size.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// What sets this service's keys apart outside, where several services or environments share an account.
    pub namespace: Option<Namespace>,
    /// The name under which other services reach this one, where it hosts no step itself but has steps done by others.
    pub service: Option<String>,
    /// The tenants whose messages are taken; those of every tenant where it is not set.
    pub tenants: Option<Vec<Tenant>>,
    /// How long a command belongs to the process that took it: 60 s. It covers the longest time limit of a step.
    pub lease_ttl: Duration,
    /// After which silence a process counts as dead: 10 s.
    pub member_ttl: Duration,
    /// How often the store is polled for work that was not announced: 100 ms.
    pub poll_interval: Duration,
    /// How many sagas this process holds in memory at a time whose next step runs in a transaction: 1,024. Those whose
    /// next step is a call are counted apart, up to the same number: so many of each definition as it can call within a
    /// second or so, and at least twice `calls`. The rest wait in the store.
    pub sagas_in_memory_max: usize,
    /// How many step transactions are under way at a time, at most: 8. Where several sagas have steps that run in one, one
    /// of them leaves an eighth to the others.
    pub transactions_max: usize,
    /// How many commands one step transaction carries at most: 32.
    pub batch_max: usize,
    /// How many inputs one call of a batch step gets at most: 256.
    pub batch_inputs_max: usize,
    /// How many consecutive steps of one saga one step transaction carries at most: 16. With 1 each has a commit of its own.
    pub steps_per_transaction_max: usize,
    /// How many external calls of one saga definition are under way at a time: 64. Where several sagas make calls, there are
    /// a seventh more lines, which one of them cannot take alone; `max_concurrent` limits a step or a saga further. Calls of
    /// exclusive steps, which may take hours, are not counted: each holds a lease, and no line that others wait for. About
    /// as many more are claimed ahead; the rest waits in the store, where every process can take it.
    pub external_calls_max: usize,
    /// How many commands whose process vanished are recovered at a time: 32. Those of exclusive steps are not counted.
    pub recoveries_max: usize,
    /// The longest encoded input or output, in bytes: 256 KiB.
    pub payload_bytes_max: usize,
    /// The longest encoded report of a step's progress, in bytes: 16 KiB.
    pub report_bytes_max: usize,
    /// How long lies between two writes of what one call reports, at least: 1 s. Of the reports in between the last one is
    /// written.
    pub report_interval: Duration,
    /// How many messages one step may emit: 100.
    pub messages_max: usize,
    /// How many items a list may have that a step is done for. The state of the saga, which is written with each item,
    /// grows by two or three bytes an item. At most 100,000.
    pub items_max: usize,
    /// How long a shutdown waits for what is under way: 30 s.
    pub shutdown_timeout: Duration,
    /// How often a message that the transport refuses for what it is is tried before its ordering key waits for a person: 5.
    pub publish_attempts: u32,
    /// How long one call of the transport may take before the outcome of its messages is unknown: 15 s. It has to be longer
    /// than the transport's own limits, so that an outage is told from messages that are late.
    pub publish_timeout: Duration,
    /// The longest pause before a message that could not be sent is tried again: 30 s. It begins with 100 ms and doubles.
    pub publish_backoff_max: Duration,
    /// How many messages the relay reads at a time: 500.
    pub relay_batch: usize,
    /// How many messages are received and not yet stored at a time: 256.
    pub prefetch: usize,
    /// How often a stored message is tried before it is a dead letter: 20.
    pub message_attempts: u32,
    /// After how long without a reply a command to another service is sent again: 30 s at first, and up to 32 times that.
    pub reply_timeout: Duration,
    /// For how long message ids are kept, so that a duplicate is known as one: 30 days. A command that is older, less a
    /// margin of a quarter or a day, is a dead letter.
    pub retention: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: None,
            service: None,
            tenants: None,
            lease_ttl: Duration::from_mins(1),
            member_ttl: Duration::from_secs(10),
            poll_interval: Duration::from_millis(100),
            sagas_in_memory_max: 1_024,
            transactions_max: 8,
            batch_max: 32,
            batch_inputs_max: 256,
            steps_per_transaction_max: 16,
            external_calls_max: 64,
            recoveries_max: 32,
            payload_bytes_max: 256 * 1_024,
            report_bytes_max: 16 * 1_024,
            report_interval: Duration::from_secs(1),
            messages_max: 100,
            items_max: 1_000,
            shutdown_timeout: Duration::from_secs(30),
            publish_attempts: 5,
            publish_timeout: Duration::from_secs(15),
            publish_backoff_max: Duration::from_secs(30),
            relay_batch: 500,
            prefetch: 256,
            message_attempts: 20,
            reply_timeout: Duration::from_secs(30),
            retention: Duration::from_hours(30 * 24),
        }
    }
}

impl Settings {
    /// What contradicts what, and what would be enough.
    pub(crate) fn problems(&self, capabilities: &Capabilities) -> Vec<String> {
        let mut problems = Vec::new();
        let mut demand = |holds: bool, problem: &str| {
            if !holds {
                problems.push(problem.to_owned());
            }
        };
        demand(self.poll_interval > Duration::ZERO, "poll_interval is zero; 100 ms is usual");
        demand(
            self.member_ttl >= self.poll_interval.saturating_mul(3),
            "member_ttl is shorter than three times poll_interval",
        );
        demand(self.lease_ttl >= self.member_ttl, "lease_ttl is shorter than member_ttl");
        demand(self.sagas_in_memory_max > 0, "sagas_in_memory_max is 0; at least 1 is needed");
        demand(self.transactions_max > 0, "transactions_max is 0; at least 1 is needed");
        demand(self.external_calls_max > 0, "external_calls_max is 0; at least 1 is needed");
        demand(self.recoveries_max > 0, "recoveries_max is 0; at least 1 is needed");
        demand((1..64).contains(&self.batch_max), "batch_max must lie between 1 and 63");
        demand(self.batch_inputs_max > 0, "batch_inputs_max is 0; at least 1 is needed");
        demand(
            self.steps_per_transaction_max > 0,
            "steps_per_transaction_max is 0; 1 gives each step a commit of its own",
        );
        demand(self.relay_batch > 0, "relay_batch is 0; at least 1 is needed");
        demand(self.prefetch > 0, "prefetch is 0; at least 1 is needed");
        demand(self.message_attempts > 0, "message_attempts is 0; at least 1 is needed");
        demand(self.reply_timeout >= self.poll_interval, "reply_timeout is shorter than poll_interval");
        demand(
            self.retention > self.reply_timeout.saturating_mul(4),
            "retention is shorter than four times reply_timeout",
        );
        demand(self.publish_backoff_max > Duration::ZERO, "publish_backoff_max is zero; 30 s is usual");
        demand(self.publish_timeout > Duration::ZERO, "publish_timeout is zero; 15 s is usual");
        demand(self.publish_attempts > 0, "publish_attempts is 0; at least 1 is needed");
        demand(capabilities.batch_max > 0, "the store takes no batch at all");
        let items = format!("items_max is {}; the state of a saga counts at most {ITEMS_MAX} items", self.items_max);
        demand(self.items_max <= ITEMS_MAX, &items);
        let durations = [
            ("lease_ttl", self.lease_ttl),
            ("member_ttl", self.member_ttl),
            ("poll_interval", self.poll_interval),
            ("report_interval", self.report_interval),
            ("shutdown_timeout", self.shutdown_timeout),
            ("publish_backoff_max", self.publish_backoff_max),
            ("reply_timeout", self.reply_timeout),
            ("retention", self.retention),
        ];
        let too_long = durations.iter().filter(|(_, duration)| *duration > LONGEST);
        problems.extend(too_long.map(|(name, _)| format!("{name} is longer than 100 years; no process lives so long")));
        problems
    }
}
