//! What is to be reached.

use super::work::{Spec, Subject, Work};

/// What a measured value is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reference {
    /// Another subject, in the same rounds.
    Spec(Spec),
    /// The fastest of the peers that are libraries and keep what they did.
    FastestLibrary(Work, u32),
    /// The fastest of the peers that keep what they did, servers among them.
    FastestPeer(Work, u32),
    /// The fastest that the Restate server was.
    Restate(Work, u32),
    /// Nothing: the value itself is to be reached.
    Nothing,
}

/// Which value of a sample it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// Steps a second, the more the better.
    StepsPerSecond,
    /// The median time of a saga; the less the better.
    P50,
    /// The median time from a saga's outcome to the first step of the one that waited for its lock, beside the median time of a saga;
    /// the less the better.
    HandOver,
    /// The longest time without a commit, in seconds; the less the better.
    Pause,
    /// The most memory that the process held, in MB; the less the better.
    PeakMb,
}

/// A value or ratio that is to be reached.
#[derive(Debug, Clone)]
pub(super) struct Target {
    pub(super) of: Spec,
    pub(super) to: Reference,
    pub(super) measure: Measure,
    pub(super) wanted: f64,
}

impl Target {
    pub(super) fn is_reached(&self, measured: f64) -> bool {
        match self.measure {
            Measure::StepsPerSecond => measured >= self.wanted,
            Measure::P50 | Measure::HandOver | Measure::Pause | Measure::PeakMb => measured <= self.wanted,
        }
    }

    /// What is compared, in words.
    pub(super) fn name(&self) -> String {
        let Spec { work, in_flight, subject } = &self.of;
        let of = match subject {
            Subject::SagaAmongFinished => format!("{work} at {in_flight}, full tables"),
            _ => format!("{work} at {in_flight}"),
        };
        let to = match &self.to {
            Reference::Spec(spec) if spec.work == *work && spec.in_flight == *in_flight => match spec.subject {
                Subject::Saga => "empty tables".to_owned(),
                _ => spec.subject.to_string(),
            },
            Reference::Spec(Spec { work, in_flight, subject: Subject::Saga }) => format!("{work} at {in_flight}"),
            Reference::Spec(spec) => format!("{} at {}", spec.subject, spec.in_flight),
            Reference::FastestLibrary(_, at) => format!("the fastest library at {at}"),
            Reference::FastestPeer(_, at) => format!("the fastest durable peer at {at}"),
            Reference::Restate(_, at) => format!("Restate at {at}"),
            Reference::Nothing => {
                return match self.measure {
                    Measure::Pause => format!("{of}: longest time without an outcome, s"),
                    _ => format!("{of}: peak memory of the process, MB"),
                };
            }
        };
        match self.measure {
            Measure::HandOver => format!("{of}: p50 from end to next step / p50 of {to}"),
            Measure::P50 => format!("{of}: p50 / three {to} in a row"),
            _ => format!("{of} / {to}"),
        }
    }

    /// The bound, as it is written.
    pub(super) fn bound(&self) -> String {
        match self.measure {
            Measure::StepsPerSecond => format!(">= {}", self.wanted),
            _ => format!("<= {}", self.wanted),
        }
    }
}

/// All that is to be reached on PostgreSQL.
pub(super) fn targets() -> Vec<Target> {
    let saga = |work, in_flight| Spec::new(work, in_flight, Subject::Saga);
    let steps = |of, to, wanted| Target { of, to, measure: Measure::StepsPerSecond, wanted };
    let to = |work, in_flight, subject| Reference::Spec(Spec::new(work, in_flight, subject));
    let w = Work::Orders;
    let full = Spec::new(Work::Finished, 64, Subject::SagaAmongFinished);
    let nothing = |of, measure, wanted| Target { of, to: Reference::Nothing, measure, wanted };
    vec![
        steps(saga(w, 64), to(w, 64, Subject::F4), 1.8),
        steps(saga(w, 64), Reference::FastestLibrary(w, 64), 6.0),
        steps(saga(w, 64), Reference::Restate(w, 64), 4.0),
        steps(saga(w, 16), to(w, 16, Subject::F4), 1.0),
        steps(saga(w, 16), Reference::FastestPeer(w, 16), 3.0),
        steps(saga(w, 256), to(w, 64, Subject::F4), 2.4),
        steps(saga(Work::Batch, 256), to(Work::Batch, 256, Subject::F5), 0.6),
        steps(saga(Work::Batch, 256), Reference::FastestPeer(w, 64), 15.0),
        steps(saga(Work::Undo, 64), to(w, 64, Subject::Saga), 0.7),
        steps(saga(Work::Hot, 16), to(Work::Hot, 16, Subject::F1), 0.8),
        nothing(saga(Work::Hot, 16), Measure::Pause, 1.0),
        steps(saga(Work::HotLocked, 16), to(Work::Hot, 16, Subject::Saga), 1.0),
        steps(saga(Work::HotLockedReplicas, 16), to(Work::HotReplicas, 16, Subject::Saga), 1.0),
        Target { of: saga(Work::Alone, 1), to: to(Work::Alone, 1, Subject::F1), measure: Measure::P50, wanted: 1.5 },
        steps(full, to(Work::Finished, 64, Subject::Saga), 0.85),
        steps(saga(Work::Retrying, 64), to(w, 64, Subject::Saga), 0.9),
        steps(saga(Work::Portable, 64), to(w, 64, Subject::Saga), 0.95),
        steps(saga(Work::Locked, 64), to(w, 64, Subject::Saga), 0.85),
        steps(saga(Work::Held, 64), to(w, 64, Subject::Saga), 0.75),
        Target {
            of: saga(Work::HandedOver, 64),
            to: to(Work::Alone, 1, Subject::Saga),
            measure: Measure::HandOver,
            wanted: 2.0,
        },
        steps(saga(Work::Tenants, 64), to(w, 64, Subject::Saga), 0.8),
        steps(saga(Work::TenantsApart, 64), to(w, 64, Subject::Saga), 0.35),
        nothing(saga(Work::Waiting, 1_024), Measure::PeakMb, 200.0),
    ]
}
