//! The limits and times of a runtime.

use std::time::Duration;

use crate::key::{Namespace, Tenant};
use crate::machine::ITEMS_MAX;
use crate::saga::{LONGEST, Retention};
use crate::step::RetryPolicy;
use crate::store::Capabilities;

/// The limits and times of a runtime. Every one has a default that fits a service of ordinary size.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// A prefix of all external keys of this service, for several services or environments that share an account.
    pub namespace: Option<Namespace>,
    /// The name of this service for replies, if it coordinates remote steps without hosting any itself.
    pub service: Option<String>,
    /// The tenants whose messages are accepted: all if it is not set.
    pub tenants: Option<Vec<Tenant>>,
    /// The retry policy of steps, compensations and resolutions, where they do not say otherwise: they are attempted until they
    /// succeed or reject, with pauses of up to a minute.
    pub retry: RetryPolicy,
    /// How long a process owns a command without renewing its lease: 60 s. A step with a longer time limit gets a longer lease.
    pub lease_ttl: Duration,
    /// A process without a heartbeat for this time counts as dead: 10 s.
    pub member_ttl: Duration,
    /// How often the store is polled for work that was not announced: 100 ms.
    pub poll_interval: Duration,
    /// How many sagas whose next step is transactional this process holds in memory: 1,024. Sagas whose next step is an external call
    /// are counted apart, up to the same number: as many of each definition as it can call within about a second, and at least twice
    /// `external_calls_max`. All others wait in the store.
    pub sagas_in_memory_max: usize,
    /// How many step transactions run at a time: 8. If several saga definitions have transactional steps, one of them leaves an
    /// eighth to the others.
    pub transactions_max: usize,
    /// How many commands one step transaction carries at most: 32.
    pub batch_max: usize,
    /// How many inputs one call of a batch step gets at most: 256.
    pub batch_inputs_max: usize,
    /// How many consecutive steps of one saga one step transaction carries at most: 16. With 1 each has a commit of its own.
    pub steps_per_transaction_max: usize,
    /// Whether one step transaction may carry commands of several tenants: false, so that each transaction has one tenant. Turn it on
    /// for many tenants with few sagas each: a thousand tenants with one command each then need as few as thirty commits, and not a
    /// thousand.
    ///
    /// Tenants share the transaction and nothing else. Each step sees the tenant of its own saga, one call of a batch step has the
    /// inputs of one tenant only, and what is recorded of a saga carries its own tenant. But the steps run on one connection, one after
    /// the other. A session setting that a step makes for its tenant, such as `SET LOCAL app.tenant = ..` for row security, still holds
    /// for the step after it, which may be of another tenant. Leave it off if not every step makes this setting itself. A row that one
    /// step locks stays locked until the commit of all of them.
    pub tenants_share_commits: bool,
    /// How many external calls of one saga definition run at a time: 64. If several definitions make calls, there are a seventh more
    /// slots, which one of them cannot take alone. `max_concurrent` limits a step or a saga definition further. Exclusive steps,
    /// which may take hours, are not counted. About as many calls are claimed ahead; the others wait in the store, where any process
    /// can claim them.
    pub external_calls_max: usize,
    /// How many commands of dead processes are recovered at a time: 32. Exclusive steps are not counted.
    pub recoveries_max: usize,
    /// The longest encoded input or output, in bytes: 256 KiB.
    pub payload_bytes_max: usize,
    /// The longest encoded report of a step's progress, in bytes: 16 KiB.
    pub report_bytes_max: usize,
    /// The shortest time between two writes of progress reports of one call: 1 s. Of the reports in between, the last one is
    /// written.
    pub report_interval: Duration,
    /// How many messages one step may emit: 100.
    pub messages_max: usize,
    /// How many items the list of a for-each step may have: 1,000, and at most 100,000. The state of the saga, which is written with
    /// each item, grows by two or three bytes per item.
    pub items_max: usize,
    /// How long a shutdown waits for steps in flight: 30 s.
    pub shutdown_timeout: Duration,
    /// How often a message that the transport refuses is tried before its ordering key waits for an operator: 5.
    pub publish_attempts: u32,
    /// How long one call of the transport may take before the outcome of its messages is unknown: 15 s. It must be longer than the
    /// transport's own limits, so that an outage can be told from late confirmations.
    pub publish_timeout: Duration,
    /// The longest pause before a message that could not be sent is tried again: 30 s. It begins with 100 ms and doubles.
    pub publish_backoff_max: Duration,
    /// How many messages the relay reads at a time: 500.
    pub relay_batch: usize,
    /// How many messages are received and not yet stored at a time: 256.
    pub prefetch: usize,
    /// How often a received message is tried before it becomes a dead letter: 20.
    pub message_attempts: u32,
    /// After how long without a reply a command to another service is sent again: 30 s at first, and up to 32 times that.
    pub reply_timeout: Duration,
    /// How long message ids are kept to recognise duplicates, and decided dead letters: 30 days. A command that is older than this,
    /// less a margin of a day or a quarter, becomes a dead letter.
    pub retention: Duration,
    /// By how much the clocks of two databases, the store's own and that of another service, may differ: 5 min. What a message from
    /// another service may still name is kept for so much longer.
    pub clock_skew_max: Duration,
    /// How long sagas are kept after their end if their definition does not say so: for ever. See [`Retention`].
    pub default_retention: Option<Retention>,
    /// How often an ended saga is tried to be purged that cannot be purged yet, since an open dead letter or an unsent message names
    /// it: 1 h.
    pub purge_retry_interval: Duration,
    /// How long steps that events asked for, and the timelines of choreographed sagas, are kept after they last changed: for ever.
    /// No service says when such a saga has ended, so this must be longer than all its parts may take together.
    pub events_retention: Option<Duration>,
    /// After how long without a word this service asks which sagas are closed that it did steps for: 7 days, and again as long after
    /// that. `None`: never, so that a step whose `closed` was lost is kept until an operator closes it.
    pub closed_asked_after: Option<Duration>,
    /// For how long after a saga has ended clients may repeat its start: 24 h. Keys must be kept at least as long.
    pub starts_repeat_within: Duration,
    /// How many unfinished sagas of each definition are read when the runtime starts, to see whether their inputs and outputs can be
    /// read as the types of the definition: 100, half of them the oldest and half of them the newest. With 0 none are read.
    pub sampled_sagas_max: usize,
    /// Whether the runtime starts although it cannot read some of them, with a warning in the log for each kind of value: false.
    /// Sagas that come to such a value get stuck.
    pub start_with_unreadable_sagas: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: None,
            service: None,
            tenants: None,
            retry: RetryPolicy::DEFAULT,
            lease_ttl: Duration::from_mins(1),
            member_ttl: Duration::from_secs(10),
            poll_interval: Duration::from_millis(100),
            sagas_in_memory_max: 1_024,
            transactions_max: 8,
            batch_max: 32,
            batch_inputs_max: 256,
            steps_per_transaction_max: 16,
            tenants_share_commits: false,
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
            clock_skew_max: Duration::from_mins(5),
            default_retention: None,
            purge_retry_interval: Duration::from_hours(1),
            events_retention: None,
            closed_asked_after: Some(Duration::from_hours(7 * 24)),
            starts_repeat_within: Duration::from_hours(24),
            sampled_sagas_max: 100,
            start_with_unreadable_sagas: false,
        }
    }
}

impl Settings {
    /// The contradictions between settings, each with what would be enough.
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
            "member_ttl is shorter than three times poll_interval; make it longer, or a slow poll counts as the death of a process",
        );
        demand(self.lease_ttl >= self.member_ttl, "lease_ttl is shorter than member_ttl; make it at least as long");
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
        demand(
            self.reply_timeout >= self.poll_interval,
            "reply_timeout is shorter than poll_interval; make it longer, 30 s is usual",
        );
        demand(
            self.retention > self.reply_timeout.saturating_mul(4),
            "retention is shorter than four times reply_timeout; make it longer, or duplicates of commands are not recognised",
        );
        demand(
            self.closed_asked_after.is_none_or(|after| after > self.reply_timeout),
            "closed_asked_after is not longer than reply_timeout; make it longer, 7 days is usual, or `None` to never ask",
        );
        demand(self.purge_retry_interval > Duration::ZERO, "purge_retry_interval is zero; 1 h is usual");
        demand(self.publish_backoff_max > Duration::ZERO, "publish_backoff_max is zero; 30 s is usual");
        demand(self.publish_timeout > Duration::ZERO, "publish_timeout is zero; 15 s is usual");
        demand(self.publish_attempts > 0, "publish_attempts is 0; at least 1 is needed");
        demand(self.retry.attempts != Some(0), "retry.attempts is 0; 1 makes one attempt, and `None` has no limit");
        demand(self.retry.cap >= self.retry.base, "retry.cap is shorter than retry.base; the cap is the longest pause");
        demand(
            capabilities.batch_max > 0,
            "the store says that a transaction carries no command (`Capabilities::batch_max` is 0); it must carry at least 1",
        );
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
            ("clock_skew_max", self.clock_skew_max),
            ("purge_retry_interval", self.purge_retry_interval),
        ];
        let too_long = durations.iter().filter(|(_, duration)| *duration > LONGEST);
        problems.extend(too_long.map(|(name, _)| format!("{name} is longer than 100 years; make it shorter")));
        problems
    }
}
