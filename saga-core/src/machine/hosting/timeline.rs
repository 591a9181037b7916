//! The timeline of a choreographed saga: the reports of its services about their steps, and the events that mark it. They
//! arrive in any order and more than once; the timeline is the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::host_reply::answer_of;
use crate::machine::state::state::SagaState;
use crate::machine::state::step_state::StepPhase;
use crate::store::{Answer, Status, Timestamp};

/// How many reports and events are kept of one saga. Further ones are left out, and the timeline says so.
const ENTRIES_MAX: usize = 1_000;

/// What became of a step, as its service reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Became {
    /// It took effect.
    Done,
    /// A definite business failure: no effect.
    Rejected,
    /// Out of attempts: no effect.
    Failed,
    /// It is stuck there.
    Stuck,
    /// It had not begun, and never does.
    #[serde(rename = "barred")]
    Tombstoned,
    /// It was undone.
    Undone,
}

/// What a service reports of one of its steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Grows with each change of the step: of two facts the one with the higher revision is the later.
    #[serde(rename = "n")]
    pub revision: u64,
    /// What became of it.
    #[serde(rename = "b")]
    pub became: Became,
    /// Why, where there is a reason.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What an event says of the whole saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// It has begun.
    Begun,
    /// It has ended as completed.
    Completed,
    /// It has ended as compensated.
    Compensated,
}

/// All that is known of a choreographed saga. It is stored, so its field names are only ever added to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// By `service/step` and revision: what became of the step, and when.
    #[serde(rename = "s", default)]
    steps: BTreeMap<String, BTreeMap<u64, SeenFact>>,
    /// The events that mark the saga, by name, and when each was committed first.
    #[serde(rename = "e", default)]
    events: BTreeMap<String, SeenEvent>,
    /// Whether something was left out.
    #[serde(rename = "x", default, skip_serializing_if = "std::ops::Not::not")]
    is_cut: bool,
}

/// A fact, with the time of its commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct SeenFact {
    #[serde(rename = "b")]
    became: Became,
    #[serde(rename = "t")]
    at: Timestamp,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// An event that marks a saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SeenEvent {
    #[serde(rename = "m")]
    mark: Mark,
    #[serde(rename = "t")]
    at: Timestamp,
}

/// One line of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimelineEntry {
    /// When it was committed, by the clock of the service's database.
    pub at: Timestamp,
    /// What happened.
    pub what: Happened,
}

/// What happened, in a line of a timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happened {
    /// An event marked the whole saga.
    Event {
        /// The event's name.
        name: String,
        /// How it marked the saga.
        mark: Mark,
    },
    /// A step has an outcome.
    Step {
        /// The service that does it, and the step, as `payments/charge-card`.
        step: String,
        /// Its outcome.
        became: Became,
        /// The reason, where there is one.
        reason: Option<String>,
    },
}

/// What a service reports of a step that has moved. `before` is its answer before it moved.
pub fn reported(before: Option<Answer>, state: &SagaState) -> Option<(Became, Option<String>)> {
    let answer = answer_of(state).filter(|answer| Some(*answer) != before)?;
    let phase = state.steps.first()?.phase;
    let why = || state.failure.as_ref().map(|failure| failure.reason.message().to_owned());
    Some(match answer {
        Answer::Done => (Became::Done, None),
        Answer::Stuck => (Became::Stuck, state.stuck.as_ref().map(|stuck| stuck.reason.clone())),
        Answer::Rejected => (Became::Rejected, why()),
        Answer::Undone if matches!(phase, StepPhase::Undone | StepPhase::UndoSkipped) => (Became::Undone, None),
        // It had failed before its undo was requested, which was reported then.
        Answer::Undone if matches!(before, Some(Answer::Rejected | Answer::Failed)) => return None,
        Answer::Undone if phase == StepPhase::Rejected => (Became::Rejected, why()),
        Answer::Undone if phase == StepPhase::Failed => (Became::Failed, why()),
        Answer::Undone | Answer::Cancelled => (Became::Tombstoned, None),
        _ => (Became::Failed, why()),
    })
}

impl Timeline {
    /// The timeline that a store kept.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|error| format!("its timeline is not readable: {error}"))
    }

    /// The timeline as bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Texts and numbers always encode.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Adds the report of a service about a step.
    pub fn note_fact(&mut self, service: &str, step: &str, fact: Fact, at: Timestamp) {
        let name = format!("{service}/{step}");
        let is_known = self.steps.get(&name).is_some_and(|facts| facts.contains_key(&fact.revision));
        if !is_known && self.len() >= ENTRIES_MAX {
            self.is_cut = true;
            return;
        }
        let Fact { revision, became, reason } = fact;
        let seen = SeenFact { became, at, reason };
        let facts = self.steps.entry(name).or_default();
        // The same fact may be committed and reported twice. Which of them counts must not depend on the order.
        let kept = facts.get(&revision).map_or_else(|| seen.clone(), |known| known.min(&seen).clone());
        facts.insert(revision, kept);
    }

    /// Adds an event that marks the saga.
    pub fn note_event(&mut self, name: &str, mark: Mark, at: Timestamp) {
        if !self.events.contains_key(name) && self.len() >= ENTRIES_MAX {
            self.is_cut = true;
            return;
        }
        let seen = self.events.entry(name.to_owned()).or_insert(SeenEvent { mark, at });
        // The timeline must not depend on the order.
        (seen.mark, seen.at) = (seen.mark.max(mark), seen.at.min(at));
    }

    /// The status of the saga, as far as is known.
    pub fn status(&self) -> Status {
        let last = |facts: &BTreeMap<u64, SeenFact>| facts.values().next_back().map(|fact| fact.became);
        let stands = |became| self.steps.values().filter_map(last).any(|last| last == became);
        match self.ended() {
            Some((Mark::Compensated, _)) => Status::Compensated,
            Some(_) => Status::Completed,
            None if stands(Became::Stuck) => Status::Stuck,
            None if [Became::Rejected, Became::Failed, Became::Tombstoned, Became::Undone].into_iter().any(stands) => {
                Status::Compensating
            }
            None => Status::Running,
        }
    }

    /// The event that ended the saga: of several the one that was committed first.
    pub fn ended(&self) -> Option<(Mark, Timestamp)> {
        let ends = self.events.iter().filter(|(_, seen)| seen.mark != Mark::Begun);
        ends.min_by_key(|(name, seen)| (seen.at, *name)).map(|(_, seen)| (seen.mark, seen.at))
    }

    /// All that is known, in the order of the commits. Clocks of several databases may differ.
    pub fn entries(&self) -> Vec<TimelineEntry> {
        let events = self.events.iter().map(|(name, seen)| {
            let what = Happened::Event { name: name.clone(), mark: seen.mark };
            TimelineEntry { at: seen.at, what }
        });
        let mut entries: Vec<TimelineEntry> = events.collect();
        for (step, facts) in &self.steps {
            let mut latest = Timestamp::default();
            for fact in facts.values() {
                // The facts of one step are ordered by revision, whatever the clocks say.
                latest = latest.max(fact.at);
                let (step, reason) = (step.clone(), fact.reason.clone());
                entries.push(TimelineEntry { at: latest, what: Happened::Step { step, became: fact.became, reason } });
            }
        }
        entries.sort_by_key(|entry| entry.at);
        entries
    }

    /// Whether more happened than is kept.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    fn len(&self) -> usize {
        self.events.len() + self.steps.values().map(BTreeMap::len).sum::<usize>()
    }
}

impl Became {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::Stuck => "stuck",
            Self::Tombstoned => "barred",
            Self::Undone => "undone",
        }
    }
}
