//! An operator's actions, as the history of a saga keeps them: what, who and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::query::json;
use crate::key::Key;
use crate::store::{HistoryEntry, HistoryKind, SagaId, Timestamp};

/// The longest name of an actor.
const BY_BYTES_MAX: usize = 120;

/// The longest reason.
const REASON_BYTES_MAX: usize = 4_000;

/// An operator's action on a saga.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditEntry {
    /// What: `retry`, `skip`, `cancel`, `pause`, `resume` and so on.
    #[serde(rename = "act")]
    pub action: String,
    /// Who, if an actor was named.
    #[serde(rename = "by", default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Why.
    #[serde(rename = "why")]
    pub reason: String,
    /// The step that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The input that was replaced, and by what, as hashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<ReplacedInput>,
    /// The key of the other saga of a restart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saga: Option<String>,
    /// The id of the plan that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// An input that was replaced. The inputs themselves are only in the record of the step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReplacedInput {
    /// The step whose input it was.
    pub step: String,
    /// The hash of the old input, in hexadecimal digits.
    pub old: String,
    /// The hash of the new input.
    pub new: String,
}

/// An entry of the audit log. It is written as one JSON object, with the fields of the entry beside its own: `act`, `by` and `why`
/// are its action, actor and reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuditRecord {
    /// Its number; the next page continues after it.
    pub number: i64,
    /// The key of the saga.
    pub key: Key,
    /// When.
    #[serde(serialize_with = "json::time")]
    pub at: Timestamp,
    /// What, who and why.
    #[serde(flatten)]
    pub entry: AuditEntry,
}

/// What is wrong with a reason that an operator gives.
pub(crate) fn reason_problem(reason: &str, kept_with: &str) -> Option<String> {
    if reason.trim().is_empty() {
        return Some(format!("give a reason; it is kept with {kept_with}"));
    }
    let is_long = reason.len() > REASON_BYTES_MAX;
    is_long.then(|| format!("give a reason of at most {REASON_BYTES_MAX} bytes; it is kept with {kept_with}"))
}

impl AuditEntry {
    pub(crate) fn new(what: &str, by: Option<&str>, reason: &str) -> Self {
        let (what, by, reason) = (what.to_owned(), by.map(str::to_owned), reason.to_owned());
        Self { action: what, actor: by, reason, step: None, input: None, saga: None, plan: None }
    }

    /// What is wrong with the actor or with the reason.
    pub(crate) fn problem(&self) -> Option<String> {
        let is_long = |text: &str, max: usize| (text.len() > max).then(|| format!("of at most {max} bytes"));
        if let Some(problem) = reason_problem(&self.reason, "the action") {
            return Some(problem);
        }
        let by = self.actor.as_deref()?;
        if by.trim().is_empty() || by.chars().any(char::is_control) {
            return Some("an actor needs a name that can be read; it is kept with the action".to_owned());
        }
        is_long(by, BY_BYTES_MAX).map(|limit| format!("an actor needs a name {limit}"))
    }

    pub(crate) fn entry(&self, saga: SagaId) -> HistoryEntry {
        // Text always encodes.
        let detail = serde_json::to_string(self).unwrap_or_else(|_| self.to_string());
        HistoryEntry { saga, step: None, kind: HistoryKind::Operator, attempt: 0, detail }
    }

    /// Reads an entry of the history. Old entries are plain text: the action, a colon, and the reason.
    pub(crate) fn read(detail: &str) -> Self {
        serde_json::from_str(detail).unwrap_or_else(|_| {
            let (what, reason) = detail.split_once(": ").unwrap_or(("", detail));
            Self::new(what, None, reason)
        })
    }
}

impl fmt::Display for AuditEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.action)?;
        if let Some(step) = &self.step {
            write!(f, " from `{step}`")?;
        }
        if let Some(by) = &self.actor {
            write!(f, " by {by}")?;
        }
        write!(f, ": {}", self.reason)?;
        if let Some(ReplacedInput { step, old, new }) = &self.input {
            write!(f, "; the input of `{step}` was {old} and is {new}")?;
        }
        if let Some(saga) = &self.saga {
            write!(f, "; see the saga `{saga}`")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_is_read_as_it_was_written_down() {
        let mut act = AuditEntry::new("retry", Some("ann"), "the carrier is back");
        for _ in 0..2 {
            assert_eq!(AuditEntry::read(&act.entry(SagaId(1)).detail), act);
            let (old, new) = ("0a".to_owned(), "0b".to_owned());
            act.input = Some(ReplacedInput { step: "ship".to_owned(), old, new });
        }
        let said = "retry by ann: the carrier is back; the input of `ship` was 0a and is 0b";
        assert_eq!(act.to_string(), said);
    }

    #[test]
    fn a_line_of_before_it_had_a_form_is_read() {
        let old = AuditEntry::read("force as completed: by hand: twice");
        assert_eq!((&*old.action, &old.actor, &*old.reason), ("force as completed", &None, "by hand: twice"));
        assert_eq!(old.to_string(), "force as completed: by hand: twice");
    }

    #[test]
    fn who_acts_says_why_and_can_be_named() {
        let problem = |by: Option<&str>, reason: &str| AuditEntry::new("skip", by, reason).problem();
        assert_eq!(problem(None, "why not"), None);
        assert_eq!(problem(Some("Ann B."), "why not"), None);
        for (by, reason) in [(None, " "), (Some(""), "why not"), (Some("a\nb"), "why not")] {
            assert!(problem(by, reason).is_some(), "{by:?} {reason:?}");
        }
        assert!(problem(Some(&"a".repeat(121)), "why not").is_some());
        assert!(problem(None, &"a".repeat(4_001)).is_some());
    }
}
