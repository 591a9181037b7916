//! One run of a step transaction: whether what went wrong in it can be believed, where handlers had no savepoint of their
//! own.

use crate::store::{HandlerVerdict, StoreErrorKind, TransactError};

/// What is known of the present run.
#[derive(Debug, Default)]
pub(crate) struct RerunPolicy {
    /// How many calls of handlers were made.
    calls: usize,
    has_spared: bool,
    has_abandoned: bool,
    runs_again: bool,
}

impl RerunPolicy {
    /// The next handler has no savepoint of its own.
    pub(crate) fn spares(&mut self) {
        self.has_spared = true;
    }

    /// A handler was called, and this becomes of its writes.
    pub(crate) fn called(&mut self, verdict: HandlerVerdict) {
        self.calls += 1;
        self.has_abandoned |= verdict == HandlerVerdict::Abandon;
    }

    /// A handler failed that had no savepoint: what it wrote can only be taken back with all else.
    pub(crate) fn run_again(&mut self) -> HandlerVerdict {
        self.runs_again = true;
        HandlerVerdict::Conflict
    }

    /// Whether all of it is to run again with a savepoint for each handler, and nothing of this run counts: one failed that
    /// had none, or is blamed for what another may have left behind. Who was dropped in the middle is to blame himself.
    pub(crate) fn takes_care(&self, error: &TransactError) -> bool {
        let is_blame_in_doubt = error.culprit.is_some() && self.has_spared && self.calls > 1 && !self.has_abandoned;
        is_blame_in_doubt || (self.runs_again && error.error.kind() == StoreErrorKind::Conflict)
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

    fn trial(has_spared: bool, verdicts: &[HandlerVerdict]) -> RerunPolicy {
        let mut trial = RerunPolicy::default();
        for verdict in verdicts {
            if has_spared {
                trial.spares();
            }
            trial.called(*verdict);
        }
        trial
    }

    #[test]
    fn a_blame_is_believed_where_nobody_else_can_be_at_fault() {
        let blamed = error(StoreErrorKind::Other, Some(1));
        assert!(trial(true, &[HandlerVerdict::Keep, HandlerVerdict::Keep]).takes_care(&blamed));
        assert!(!trial(true, &[HandlerVerdict::Keep]).takes_care(&blamed), "it was alone");
        assert!(
            !trial(true, &[HandlerVerdict::Keep, HandlerVerdict::Abandon]).takes_care(&blamed),
            "its own time was up"
        );
        assert!(
            !trial(false, &[HandlerVerdict::Keep, HandlerVerdict::Keep]).takes_care(&blamed),
            "each had a savepoint"
        );
    }

    #[test]
    fn only_what_gave_way_for_want_of_a_savepoint_runs_again_for_it() {
        let mut gave_way = trial(true, &[HandlerVerdict::Keep, HandlerVerdict::Conflict]);
        assert!(!gave_way.takes_care(&error(StoreErrorKind::Conflict, None)), "it met another transaction");
        assert_eq!(gave_way.run_again(), HandlerVerdict::Conflict);
        assert!(gave_way.takes_care(&error(StoreErrorKind::Conflict, None)));
        assert!(!gave_way.takes_care(&error(StoreErrorKind::Unavailable, None)), "the store is away");
    }
}
