//! What a call reports of how far it is, and what the calls before it reported.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::step::StepError;

/// What a call may report, and what was reported before it.
#[derive(Default)]
pub(crate) struct Reporting {
    /// How long a report may be, or why there can be none.
    pub(crate) limit: Option<ReportLimit>,
    /// What an earlier attempt reported last, of what was kept.
    pub(crate) before: Option<Arc<[u8]>>,
}

/// How long a report may be, or why there can be none.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReportLimit {
    /// At most so many bytes.
    Bytes(usize),
    /// None can be kept, for this reason.
    Refused(&'static str),
}

/// What a call has reported so far.
#[derive(Default)]
pub(crate) struct Reports {
    latest: Mutex<Latest>,
}

#[derive(Default)]
struct Latest {
    report: Option<Arc<[u8]>>,
    is_taken: bool,
}

impl Reporting {
    pub(crate) fn refused(reason: &'static str) -> Self {
        Self { limit: Some(ReportLimit::Refused(reason)), before: None }
    }

    /// The encoded report, if it can be kept.
    pub(crate) fn encode<T: Serialize>(&self, progress: &T) -> Result<Arc<[u8]>, StepError> {
        if let Some(ReportLimit::Refused(reason)) = self.limit {
            return Err(StepError::stuck(reason));
        }
        let report = serde_json::to_vec(progress)
            .map_err(|error| StepError::stuck(format!("what it reported cannot be stored: {error}")))?;
        match self.limit {
            Some(ReportLimit::Bytes(max)) if report.len() > max => Err(StepError::stuck(format!(
                "it reported {} bytes; `report_bytes_max` allows {max}: report where the work stands, not the work",
                report.len()
            ))),
            _ => Ok(report.into()),
        }
    }

    /// What was reported before this call.
    pub(crate) fn before<T: DeserializeOwned>(&self) -> Result<Option<T>, StepError> {
        let unreadable = |error| StepError::stuck(format!("what an earlier attempt reported cannot be read: {error}"));
        self.before.as_deref().map(serde_json::from_slice).transpose().map_err(unreadable)
    }
}

impl Reports {
    pub(crate) fn put(&self, report: Arc<[u8]>) {
        *self.lock() = Latest { report: Some(report), is_taken: false };
    }

    /// Whether there is a report that was not taken yet.
    pub(crate) fn is_waiting(&self) -> bool {
        let latest = self.lock();
        latest.report.is_some() && !latest.is_taken
    }

    /// The last one, if it was not taken yet.
    pub(crate) fn take(&self) -> Option<Arc<[u8]>> {
        let mut latest = self.lock();
        if std::mem::replace(&mut latest.is_taken, true) { None } else { latest.report.clone() }
    }

    /// Puts one back that could not be kept, unless there is a later one.
    pub(crate) fn put_back(&self) {
        self.lock().is_taken = false;
    }

    /// The last one, taken or not.
    pub(crate) fn latest(&self) -> Option<Arc<[u8]>> {
        self.lock().report.clone()
    }

    /// A panic while it was held leaves it whole: every write is one assignment.
    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::StepErrorKind;

    #[test]
    fn the_last_report_wins_and_is_taken_once() {
        let reports = Reports::default();
        assert!(!reports.is_waiting());
        assert_eq!(reports.take(), None);
        reports.put(Arc::from(&b"1"[..]));
        reports.put(Arc::from(&b"2"[..]));
        assert!(reports.is_waiting());
        assert_eq!(reports.take().as_deref(), Some(&b"2"[..]));
        assert_eq!((reports.take(), reports.is_waiting()), (None, false));
        reports.put_back();
        assert_eq!(reports.take().as_deref(), Some(&b"2"[..]), "one that could not be kept is kept later");
        assert_eq!(reports.latest().as_deref(), Some(&b"2"[..]));
    }

    #[test]
    fn a_report_that_cannot_be_kept_says_why() {
        let reporting = Reporting { limit: Some(ReportLimit::Bytes(4)), before: None };
        assert_eq!(&*reporting.encode(&1234).unwrap(), b"1234");
        let error = reporting.encode(&12345).unwrap_err();
        assert_eq!(error.kind(), StepErrorKind::Stuck);
        assert!(error.to_string().contains("5 bytes") && error.to_string().contains("allows 4"), "{error}");
        let error = Reporting::refused("not here").encode(&1).unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (StepErrorKind::Stuck, "not here".to_owned()));
    }
}
