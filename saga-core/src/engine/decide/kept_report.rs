//! Progress that is kept in the saga's state while its command has no row.

use crate::engine::instance::{AttemptDetails, SagaInstance, WorkItem};
use crate::store::Store;

/// Keeps what a command reported in the state of its saga, since its row goes.
pub(crate) fn keep_report<S: Store>(command: &WorkItem<S>, saga: &mut SagaInstance<S>, findings: &AttemptDetails) {
    let last = findings.reported.as_deref().or(command.reported.as_ref().map(|reported| &*reported.progress));
    if let Some(Ok(report)) = last.map(std::str::from_utf8) {
        saga.state.keep_report(command.command, report.to_owned());
    }
}
