//! One call for one command of a step transaction.

use crate::engine::decide::taken_lock_result;
use crate::engine::execute::attempt::Attempts;
use crate::engine::instance::{AttemptResult, WorkItem, takes_semantic_lock};
use crate::machine::Next;
use crate::store::{HandlerVerdict, Store};

/// Calls the function of a step. A step that takes a semantic lock has none: the transaction has its lock since the claim was granted.
pub(super) async fn call_one<S: Store>(
    attempts: &Attempts<S>,
    command: &WorkItem<S>,
    conn: &mut S::Conn,
) -> ((AttemptResult, Next), HandlerVerdict) {
    if takes_semantic_lock(command) {
        return (taken_lock_result(&attempts.decider, command), HandlerVerdict::Keep);
    }
    let (attempted, verdict) = attempts.attempt_in_transaction(command, conn).await;
    let next = attempts.decider.after(command, &attempted);
    ((attempted, next), verdict)
}
