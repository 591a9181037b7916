use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::sim::schedule::Mutant;

/// What calls reported, kept without the store: the mutants answer from it, and it shows that their faults have an effect.
#[derive(Debug, Default)]
pub(crate) struct ReportLog {
    calls: Mutex<BTreeMap<String, Reported>>,
}

#[derive(Debug, Default)]
struct Reported {
    /// The newest fence under which a call began.
    fence: u64,
    /// What was reported, in the order of time.
    reports: Vec<u64>,
}

impl ReportLog {
    /// What a call is told: what the store kept, or what the mutant answers.
    pub(crate) fn hear(&self, mutant: Option<Mutant>, key: &str, fence: u64, kept: Option<u64>) -> Option<u64> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let call = calls.entry(key.to_owned()).or_default();
        call.fence = call.fence.max(fence);
        match mutant {
            Some(Mutant::ReportsUnfenced) => call.reports.last().copied(),
            Some(Mutant::ForgetsLastReport) => call.reports.iter().rev().find(|report| Some(**report) != kept).copied(),
            _ => kept,
        }
    }

    /// Whether a call of that key has begun under a newer claim than this one.
    pub(crate) fn is_taken_over(&self, key: &str, fence: u64) -> bool {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.get(key).is_some_and(|call| call.fence > fence)
    }

    /// Notes a report; answers whether a newer call has begun by then.
    pub(crate) fn note(&self, key: &str, fence: u64, report: u64) -> bool {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let call = calls.entry(key.to_owned()).or_default();
        call.reports.push(report);
        fence < call.fence
    }
}
