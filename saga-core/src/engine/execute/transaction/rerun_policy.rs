//! Whether a failed step transaction runs again with a savepoint for each handler, because the culprit is not certain.

use crate::store::{HandlerVerdict, StoreErrorKind, TransactError};

/// What happened in the present run.
#[derive(Debug, Default)]
pub(crate) struct RerunPolicy {
    /// How many handlers were called.
    calls: usize,
    has_omitted: bool,
    has_abandoned: bool,
    runs_again: bool,
}

impl RerunPolicy {
    /// The next handler runs without a savepoint.
    pub(crate) fn omits_savepoint(&mut self) {
        self.has_omitted = true;
    }

    /// A handler returned with this verdict about its writes.
    pub(crate) fn count_call(&mut self, verdict: HandlerVerdict) {
        self.calls += 1;
        self.has_abandoned |= verdict == HandlerVerdict::Abandon;
    }

    /// A handler without a savepoint failed: its writes can only be rolled back with the whole transaction.
    pub(crate) fn run_again(&mut self) -> HandlerVerdict {
        self.runs_again = true;
        HandlerVerdict::Conflict
    }

    /// Whether the transaction runs again with a savepoint for each handler: one without a savepoint failed, or the store blames one
    /// for what another handler may have done. A handler that was dropped at its time limit is certainly to blame.
    pub(crate) fn needs_savepoints(&self, error: &TransactError) -> bool {
        let is_culprit_uncertain = error.culprit.is_some() && self.has_omitted && self.calls > 1 && !self.has_abandoned;
        is_culprit_uncertain || (self.runs_again && error.error.kind() == StoreErrorKind::Conflict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreError;

    fn error(kind: StoreErrorKind, culprit: Option<usize>) -> TransactError {
        let error = StoreError::new(kind, "transact", "something");
        TransactError { error, culprit, ended_transaction: false }
    }

    fn policy(has_omitted: bool, verdicts: &[HandlerVerdict]) -> RerunPolicy {
        let mut policy = RerunPolicy::default();
        for verdict in verdicts {
            if has_omitted {
                policy.omits_savepoint();
            }
            policy.count_call(*verdict);
        }
        policy
    }

    #[test]
    fn a_blame_is_believed_where_nobody_else_can_be_at_fault() {
        let blamed = error(StoreErrorKind::Other, Some(1));
        assert!(policy(true, &[HandlerVerdict::Keep, HandlerVerdict::Keep]).needs_savepoints(&blamed));
        assert!(!policy(true, &[HandlerVerdict::Keep]).needs_savepoints(&blamed), "it was alone");
        assert!(
            !policy(true, &[HandlerVerdict::Keep, HandlerVerdict::Abandon]).needs_savepoints(&blamed),
            "its own time was up"
        );
        assert!(
            !policy(false, &[HandlerVerdict::Keep, HandlerVerdict::Keep]).needs_savepoints(&blamed),
            "each had a savepoint"
        );
    }

    #[test]
    fn only_what_gave_way_for_want_of_a_savepoint_runs_again_for_it() {
        let mut gave_way = policy(true, &[HandlerVerdict::Keep, HandlerVerdict::Conflict]);
        assert!(!gave_way.needs_savepoints(&error(StoreErrorKind::Conflict, None)), "it met another transaction");
        assert_eq!(gave_way.run_again(), HandlerVerdict::Conflict);
        assert!(gave_way.needs_savepoints(&error(StoreErrorKind::Conflict, None)));
        assert!(!gave_way.needs_savepoints(&error(StoreErrorKind::Unavailable, None)), "the store is away");
    }
}
