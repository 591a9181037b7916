//! How long what is kept must be kept, so that nothing that may still be acted on is purged.
//!
//! With `retention` for message ids, a message is acted on until it is `A = retention - min(retention / 4, 24 h)` old. The
//! clocks of two databases differ by at most `S = clock_skew_max`. A late success of a step arrives within the lease and the
//! time that the longest step takes to settle, `L + T`. Steps without a call here, which another service does or which only
//! wait, have no part in `T`.

use std::time::Duration;

use super::settings::Settings;
use crate::saga::{Definition, Retention, Span, StepDefinition, StepRun};
use crate::store::{Status, Store};

/// A message must be this much younger than the retention, since the clocks of two databases may differ.
const MARGIN_MAX: Duration = Duration::from_hours(24);

/// How many services an event may pass through, one after the other.
const CHAINED_SERVICES: u32 = 3;

impl Settings {
    /// The age up to which a message is acted on.
    pub(crate) fn message_age_max(&self) -> Duration {
        self.retention.saturating_sub(MARGIN_MAX.min(self.retention / 4))
    }

    /// How long a host keeps a step after it was told that its saga is closed: until no message about it is acted on.
    pub(crate) fn hosted_retention(&self) -> Duration {
        self.message_age_max().saturating_add(self.clock_skew_max)
    }

    /// What the retention of a definition must be for the messages and leases that may still be under way.
    pub(crate) fn retention_problems<S: Store>(&self, definition: &Definition<S>) -> Vec<String> {
        let retention = definition.retention.or(self.default_retention).filter(|_| !definition.is_hosted());
        let Some(retention) = retention else { return Vec::new() };
        let needed = Needed::by(self, definition);
        let (mut problems, id) = (Vec::new(), &definition.id);
        for status in [Status::Completed, Status::Compensated] {
            let (full, key) = (retention.full_for(status), retention.key_for(status));
            if full < needed.full {
                problems.push(format!(
                    "the retention of {id} keeps {status} sagas for {}, and {}; keep them for at least {}",
                    Span(full),
                    needed.why,
                    Span(needed.full)
                ));
            }
            let needed_key = needed
                .key_after
                .map_or(self.starts_repeat_within, |after| self.starts_repeat_within.max(full.saturating_add(after)));
            if key < needed_key {
                problems.push(format!(
                    "the retention of {id} keeps the keys of {status} sagas for {}, and {}; keep them for at least {} with `.key(..)`",
                    Span(key),
                    needed.why_key,
                    Span(needed_key)
                ));
            }
        }
        problems.dedup();
        problems
    }

    /// The contradictions between what is kept and what the transport may still deliver.
    pub(crate) fn horizon_problems(&self, redelivers_within: Option<Duration>, transport: &str) -> Vec<String> {
        let mut problems = Vec::new();
        let needed = redelivers_within.map(|within| within.saturating_add(self.clock_skew_max));
        if let Some(needed) = needed.filter(|needed| self.retention < *needed) {
            problems.push(format!(
                "retention is {}, and the transport `{transport}` may deliver a message again after that; keep message ids for \
                 at least {}",
                Span(self.retention),
                Span(needed)
            ));
        }
        let needed = self.hosted_retention().saturating_mul(CHAINED_SERVICES);
        if let Some(events) = self.events_retention.filter(|events| *events < needed) {
            problems.push(format!(
                "events_retention is {}, and an event may arrive later than that; make it at least {}, plus the longest deadline \
                 of a choreographed saga",
                Span(events),
                Span(needed)
            ));
        }
        if let Some((key, full)) = self.default_retention.as_ref().and_then(Retention::short_key) {
            problems.push(format!(
                "default_retention keeps keys for {} and whole sagas for {}; keep keys at least as long",
                Span(key),
                Span(full)
            ));
        }
        problems
    }
}

/// How long a saga of a definition must be kept.
struct Needed {
    full: Duration,
    why: &'static str,
    /// How much longer than the saga its key must be kept.
    key_after: Option<Duration>,
    why_key: &'static str,
}

impl Needed {
    fn by<S: Store>(settings: &Settings, definition: &Definition<S>) -> Self {
        let late = settings.lease_ttl.saturating_add(settles_within(definition));
        if !definition.hosts().is_empty() {
            return Self {
                full: settings.hosted_retention().saturating_add(late),
                why: "a reply to one of its remote steps may arrive after that",
                // The hosts may learn that late that it is closed, and then keep their records for as long again.
                key_after: Some(settings.hosted_retention().saturating_mul(2)),
                why_key: "the hosts of its remote steps keep their records for longer after it was purged",
            };
        }
        Self {
            full: late,
            why: "a late success of one of its steps may arrive after that",
            key_after: None,
            why_key: "`starts_repeat_within` says that a start may be repeated after that",
        }
    }
}

/// After so long no call of a step of the saga, or of its sub-sagas, is under way any more.
fn settles_within<S: Store>(definition: &Definition<S>) -> Duration {
    let of_step = |step: &StepDefinition<S>| match &step.run {
        StepRun::Remote { .. } | StepRun::Choice(_) | StepRun::Idle(_) => Duration::ZERO,
        StepRun::Child(child) => settles_within(child),
        _ => step.options.timeout.saturating_add(step.settle_time()),
    };
    definition.steps.iter().map(of_step).max().unwrap_or_default()
}
