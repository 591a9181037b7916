//! All that is known of one run.

use serde::{Deserialize, Serialize};

use crate::checker::{Final, Rest, SagaPlan};

use super::what::What;

/// All that is known of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// The sagas, by tenant and key; entries name them by their place here.
    pub sagas: Vec<SagaPlan>,
    /// What was seen, in the order in which it happened.
    pub entries: Vec<Entry>,
    /// How each saga stood in the end, in the order of `sagas`.
    pub finals: Vec<Final>,
    /// What else was there in the end.
    pub rest: Rest,
    /// How much of its work the run could do at once, where that is to be held against the time that it took.
    #[serde(default)]
    pub pace: Option<Pace>,
    /// Whether one transaction may carry steps of several tenants.
    #[serde(default)]
    pub shares_tenants: bool,
    /// Whether sagas are archived before they are purged.
    #[serde(default)]
    pub is_archived: bool,
}

/// How much of its work a run can do at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// How many calls outside all processes together make at a time.
    pub lines: u32,
    /// How long one takes at most, in microseconds.
    pub call_max: u64,
    /// How many processes there are.
    #[serde(default)]
    pub processes: u32,
}

/// Something that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in microseconds of the run.
    pub at: u64,
    /// In which process; 0 is the world outside.
    pub process: u16,
    /// What.
    pub what: What,
}
