//! The store trait, and what a backend can do.

use std::error::Error;

use async_trait::async_trait;

use super::{
    Claim, DeadLetters, Definitions, Hints, Inbox, Members, Outbox, Purge, Records, Sagas, SemanticLocks,
    TransactError, TransactionBody, Work,
};

/// A store.
///
/// # Contract
/// - `S-TX-1` [`transact`](Store::transact) claims before any handler runs: of the given claims it keeps those whose work row exists with the claimed epoch and is not locked by another transaction, whose step has no record, and whose saga is running (for a `do`) or compensating (for an `undo`). A claim that is not granted leaves the batch; its handler does not run.
/// - `S-TX-2` From the claim to the commit no other transaction takes the granted rows, even when their leases end.
/// - `S-TX-3` Each handler runs behind a savepoint. After [`RollBack`](super::HandlerVerdict::RollBack) its writes are gone and those of the other handlers are kept.
/// - `S-TX-15` A store that asks whether a handler [`needs_savepoint`](TransactionBody::needs_savepoint) sets savepoints only there. A rollback then takes back what was written since the last savepoint, and nothing before it.
/// - `S-TX-4` The writes of the handlers and all changes of the body commit together or not at all (G1).
/// - `S-TX-5` A saga whose version moved is not a failure: the store reads it and calls [`decide_again`](TransactionBody::decide_again) in the same transaction; handlers do not run again. A record that exists already, or a granted work row that is gone, rolls the whole batch back (G2).
/// - `S-TX-14` A saga that moved comes with its step records: at least those of every step that its row counts as ended, with their outputs and inputs. Another branch of a group may have written them.
/// - `S-TX-9` After [`KeepAndContinue`](super::HandlerVerdict::KeepAndContinue) the handler's writes are kept, and [`run`](TransactionBody::run) is called for the same claim again, behind a savepoint of its own. When [`decide_again`](TransactionBody::decide_again) returns `None`, the transaction is rolled back and fails with the kind `Conflict`.
/// - `S-TX-12` A granted claim that [`has_run`](TransactionBody::has_run) by its turn is skipped: its handler ran together with that of an earlier claim. Otherwise it is treated as the other claims are.
/// - `S-TX-13` After [`UndoAndContinue`](super::HandlerVerdict::UndoAndContinue) the handler's writes are gone, those of earlier handlers are kept, and [`run`](TransactionBody::run) is called for the same claim again, behind a savepoint of its own.
/// - `S-TX-11` After [`Conflict`](super::HandlerVerdict::Conflict) nothing of the batch is kept; the call fails with the kind `Conflict` and names no culprit.
/// - `S-TX-10` A claim with [`start`](super::Claim::start) is granted if no saga has its key and no other transaction is about to take it. The saga is then inserted in this transaction with version 1, without its commands. If the claim is not granted, nothing is written for it. A store without the capability is never asked.
/// - `S-TX-16` The claims may be of several tenants. Each is granted, started and recorded by its own tenant, as if it were alone: neither the same key of another tenant nor a record of it matters.
/// - `S-TX-6` A handler that ended the transaction is detected before anything is recorded: the error names it, and nothing of the batch is kept.
/// - `S-TX-7` When no claim is granted, the call succeeds and nothing is written.
/// - `S-TX-8` After [`Abandon`](super::HandlerVerdict::Abandon) nothing of the batch is kept, and the error names the claim as the culprit.
#[async_trait]
pub trait Store:
    Sagas
    + Definitions
    + Work
    + Records
    + Outbox
    + Inbox
    + DeadLetters
    + Members
    + SemanticLocks
    + Purge
    + Hints
    + Send
    + Sync
    + 'static
{
    /// The connection that transactional steps take by `&mut`.
    type Conn: Send + 'static;

    /// The capabilities of this backend.
    fn capabilities(&self) -> Capabilities;

    /// Whether the error that a handler met means that the backend aborted its statement in favour of another
    /// transaction: a deadlock, a lock timeout, a serialization failure. The handler's transaction is tried again, and
    /// no attempt is counted.
    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        let _ = error;
        false
    }

    /// Runs one step transaction: claim, handlers, record, commit. All claims are of one tenant, unless
    /// [`tenants_share_commits`](crate::Settings::tenants_share_commits) is set.
    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<Self::Conn>>,
    ) -> Result<(), TransactError>;
}

/// What a commit survives, with the store's present settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Durability {
    /// A commit survives a power loss.
    Full,
    /// A commit survives the process but not the machine. The text names the setting that causes this.
    Process(String),
    /// Nothing survives.
    None,
}

/// The optional capabilities of a backend. Fencing, compare-and-set and atomic changes are mandatory, so they are not
/// listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all combinations may occur")]
pub struct Capabilities {
    /// The backend's name, for messages.
    pub name: &'static str,
    /// Whether several processes may work on the same data at once.
    pub shared: bool,
    /// Whether the data outlives the process.
    pub persistent: bool,
    /// What a commit survives.
    pub durability: Durability,
    /// Whether a step transaction can start the sagas whose first steps it runs.
    pub starts_in_transactions: bool,
    /// Whether messages wait in the outbox until the relay has sent them. Otherwise the store passes them on by itself,
    /// for example by change data capture, and the runtime has no relay.
    pub relayed: bool,
    /// The largest number of claims for one step transaction that still makes it faster.
    pub batch_max: usize,
}

impl Capabilities {
    /// A database: its data outlives the process, a step transaction starts sagas, and a relay sends the outbox.
    pub fn database(name: &'static str, durability: Durability, batch_max: usize) -> Self {
        Self {
            name,
            shared: false,
            persistent: true,
            durability,
            starts_in_transactions: true,
            relayed: true,
            batch_max,
        }
    }
}
