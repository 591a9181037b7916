//! What a call reports of how far it is, and what the calls before it reported.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{StepContext, StepError};

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

impl StepContext {
    /// Reports the progress of the step. The next attempt reads it with [`progress`](Self::progress), and the status of the
    /// saga shows it.
    ///
    /// A report costs next to nothing, so a step may report for every row that it works on. The runtime stores the last
    /// report at most once per `report_interval`, and always before the attempt counts as failed. If the process is killed,
    /// the reports of the last interval may be lost. So a report says where to continue, not what took effect: the outside
    /// world knows that by the step's key.
    ///
    /// An attempt that lost its claim cannot report any more (G7); [`cancelled`](Self::cancelled) tells it so. The report is
    /// kept across attempts and processes, also while the saga is stuck at this step. It is removed when the step ends: what
    /// must be known later belongs into the output. A compensation has a report of its own. If another service hosts the
    /// step, that service keeps and shows the report.
    ///
    /// # Errors
    /// The saga is stuck if the report cannot be kept: it is longer than `report_bytes_max`, its `Serialize` failed, or the
    /// step cannot report. A step in a transaction cannot, since nothing of it is visible before its commit, nor can a
    /// resolution, which only asks.
    ///
    /// # Examples
    /// ```
    /// use saga_core::{StepContext, StepError};
    ///
    /// async fn settle(ctx: &StepContext, accounts: Vec<String>) -> Result<usize, StepError> {
    ///     let settled = ctx.progress()?.unwrap_or(0);
    ///     for (number, account) in accounts.iter().enumerate().skip(settled) {
    ///         println!("POST /settlements/{account}, Idempotency-Key: {}/{account}", ctx.key());
    ///         ctx.report(&(number + 1))?;
    ///     }
    ///     Ok(accounts.len() - settled)
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let accounts = vec!["anna".to_owned(), "ben".to_owned(), "cleo".to_owned()];
    /// let second = StepContext::for_test("night-7:settle").with_attempt(2).with_progress(&2);
    /// assert_eq!(settle(&second, accounts).await.unwrap(), 1);
    /// assert_eq!(second.reported(), Some(3));
    /// # });
    /// ```
    pub fn report<T: Serialize>(&self, progress: &T) -> Result<(), StepError> {
        self.reports.put(self.parts.reporting.encode(progress)?);
        Ok(())
    }

    /// What an earlier attempt of this step reported last, of what was written down; nothing in the first one.
    ///
    /// # Errors
    /// What was reported is no `T`, perhaps since the program has changed. The saga waits for a person then; one that can
    /// as well begin anew says `unwrap_or_default`.
    pub fn progress<T: DeserializeOwned>(&self) -> Result<Option<T>, StepError> {
        self.parts.reporting.before()
    }

    /// The same context with what an earlier attempt reported.
    ///
    /// # Panics
    /// The report cannot be stored.
    #[must_use]
    pub fn with_progress<T: Serialize>(mut self, progress: &T) -> Self {
        match self.parts.reporting.encode(progress) {
            Ok(report) => self.parts.reporting.before = Some(report),
            Err(error) => panic!("{error}"),
        }
        self
    }

    /// What this call has reported last, for tests.
    ///
    /// # Panics
    /// It is no `T`.
    pub fn reported<T: DeserializeOwned>(&self) -> Option<T> {
        self.reports.latest().map(|report| match serde_json::from_slice(&report) {
            Ok(progress) => progress,
            Err(error) => panic!("what was reported cannot be read back: {error}"),
        })
    }

    /// What this call has reported.
    pub(crate) fn reports(&self) -> &Reports {
        &self.reports
    }
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
    use super::super::StepErrorKind;
    use super::*;

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

    #[test]
    fn a_test_gives_what_was_reported_and_reads_what_is() {
        let ctx = StepContext::for_test("night-7:settle").with_progress(&41_u32);
        assert_eq!(ctx.progress::<u32>().unwrap(), Some(41));
        assert_eq!(ctx.reported::<u32>(), None);
        ctx.report(&42_u32).unwrap();
        assert_eq!((ctx.progress::<u32>().unwrap(), ctx.reported::<u32>()), (Some(41), Some(42)));
        assert_eq!(ctx.progress::<String>().unwrap_err().kind(), StepErrorKind::Stuck);
        assert_eq!(StepContext::for_test("night-7:settle").progress::<u32>().unwrap(), None);
    }
}
