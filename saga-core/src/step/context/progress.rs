//! How a call says how far it is, and reads how far the calls before it were.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::step::{Reports, StepContext, StepError};

impl StepContext {
    /// Reports the progress of the step. The next attempt reads it with [`progress`](Self::progress), and the status of the
    /// saga shows it.
    ///
    /// A report is cheap, so a step can report after every row. The runtime stores the last
    /// report at most once per `report_interval`, and always before the attempt counts as failed. If the process is killed,
    /// the reports of the last interval may be lost. So a report says where to continue, not what took effect: the
    /// other system knows that by the step's key.
    ///
    /// An attempt that lost its lease cannot report any more (G7); [`cancelled`](Self::cancelled) completes then. The report
    /// is kept across attempts and processes, also while the saga is stuck at this step. It is removed when the step ends:
    /// return values that are needed later as the output. A compensation has its own report. If another service hosts the
    /// step, that service keeps and shows the report.
    ///
    /// # Errors
    /// If the report is longer than `report_bytes_max`, or its `Serialize` failed, the saga is stuck. The same holds for a
    /// report in a resolution, and in a transactional step: other processes see nothing of it before its commit.
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

    /// The last stored report of an earlier attempt of this step; `None` in the first attempt.
    ///
    /// # Errors
    /// The report cannot be decoded as `T`, perhaps because the program has changed. The saga is then stuck. A step that can
    /// also begin from the start can use `unwrap_or_default`.
    pub fn progress<T: DeserializeOwned>(&self) -> Result<Option<T>, StepError> {
        self.parts.reporting.before()
    }

    /// The same context with the report of an earlier attempt.
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

    /// The last report of this call, for tests.
    ///
    /// # Panics
    /// The report cannot be decoded as `T`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::StepErrorKind;

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
