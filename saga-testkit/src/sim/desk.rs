use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::Plant;

/// What calls reported as somebody would know it who keeps it without the store: for the mistakes that are planted, and to
/// see that what they are about happens.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    lines: Mutex<BTreeMap<String, Line>>,
}

#[derive(Debug, Default)]
struct Line {
    /// The newest fence under which a call began.
    fence: u64,
    /// What was reported, in the order of time.
    reports: Vec<u64>,
}

impl Desk {
    /// What a call is told: what the store kept, or what somebody with that mistake would tell it.
    pub(crate) fn hear(&self, plant: Option<Plant>, key: &str, fence: u64, kept: Option<u64>) -> Option<u64> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.entry(key.to_owned()).or_default();
        line.fence = line.fence.max(fence);
        match plant {
            Some(Plant::ReportsUnfenced) => line.reports.last().copied(),
            Some(Plant::ForgetsLastReport) => line.reports.iter().rev().find(|report| Some(**report) != kept).copied(),
            _ => kept,
        }
    }

    /// Whether a call of that key has begun under a newer claim than this one.
    pub(crate) fn is_taken_over(&self, key: &str, fence: u64) -> bool {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.get(key).is_some_and(|line| line.fence > fence)
    }

    /// Notes a report; answers whether a newer call has begun by then.
    pub(crate) fn note(&self, key: &str, fence: u64, report: u64) -> bool {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.entry(key.to_owned()).or_default();
        line.reports.push(report);
        fence < line.fence
    }
}
