//! The duties together, and the transaction that steps run in.

use std::error::Error;

use async_trait::async_trait;

use super::{
    Claim, DeadLetters, Definitions, Hints, Inbox, Members, Outbox, Records, Sagas, TransactError, TransactionBody,
    Work,
};

/// A store.
///
/// # Contract
/// - `S-TX-1` [`transact`](Store::transact) claims before any handler runs: of the given claims it keeps those whose work row exists with the claimed epoch and is not locked by another transaction, whose step has no record, and whose saga is running (for a `do`) or compensating (for an `undo`). A claim that is not granted leaves the batch; its handler does not run.
/// - `S-TX-2` From the claim to the commit nobody else takes the granted rows, whatever becomes of their leases.
/// - `S-TX-3` Each handler runs behind a savepoint: what it wrote is gone when its verdict is [`RollBack`](super::Verdict::RollBack), and what the others wrote is not.
/// - `S-TX-15` A store that asks whether a handler [`needs_savepoint`](TransactionBody::needs_savepoint) sets savepoints there only: a rollback takes back what was written since the last one, and nothing before it.
/// - `S-TX-4` What the handlers wrote and all changes of the body commit together or not at all (G1).
/// - `S-TX-5` A saga whose version moved is not a failure: the store reads it and asks [`decide_again`](TransactionBody::decide_again) in the same transaction; handlers do not run again. A record that exists already or a granted work row that is gone rolls the whole batch back (G2).
/// - `S-TX-14` A saga that moved comes with its step records: at least those of every step that its row counts as ended, with their outputs and inputs. Another branch of a group may have written them.
/// - `S-TX-9` After [`GoOn`](super::HandlerVerdict::KeepAndContinue) the handler's writes are kept and [`run`](TransactionBody::run) is called for the same claim again, behind a savepoint of its own. When [`decide_again`](TransactionBody::decide_again) answers nothing, the transaction is rolled back and fails with the kind `Conflict`.
/// - `S-TX-12` A granted claim that [`has_run`](TransactionBody::has_run) when it has its turn is passed over: its handler ran together with that of an earlier claim. In all else it is as the others are.
/// - `S-TX-13` After [`GoBack`](super::HandlerVerdict::UndoAndContinue) the handler's writes are gone, what earlier handlers wrote is not, and [`run`](TransactionBody::run) is called for the same claim again, behind a savepoint of its own.
/// - `S-TX-11` After [`GiveWay`](super::HandlerVerdict::Conflict) nothing of the batch is kept, and it fails with the kind `Conflict` and without a culprit.
/// - `S-TX-10` A claim with [`start`](super::Claim::start) is granted if no saga has its key, and nobody is about to take it: then the saga is inserted in this transaction with version 1, without its commands. If it is not granted, nothing is written for it. Stores without the capability are never asked.
/// - `S-TX-6` A handler that ended the transaction is found out before anything is recorded: the error names it, and nothing of the batch is kept.
/// - `S-TX-7` When no claim is granted, the call succeeds and nothing is written.
/// - `S-TX-8` After [`Abandon`](super::Verdict::Abandon) nothing of the batch is kept, and the error names the claim as the culprit.
#[async_trait]
pub trait Store:
    Sagas + Definitions + Work + Records + Outbox + Inbox + DeadLetters + Members + Hints + Send + Sync + 'static
{
    /// The connection that transactional steps take by `&mut`.
    type Conn: Send + 'static;

    /// What this backend can and cannot do.
    fn capabilities(&self) -> Capabilities;

    /// Whether an error that a handler met says that the backend gave up its statement in favour of another transaction: a
    /// deadlock, a lock time-out, a serialisation failure. The handler's transaction is tried again, which counts as no attempt.
    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        let _ = error;
        false
    }

    /// Runs one step transaction: claim, handlers, record, commit. All claims are of one tenant.
    async fn transact(
        &self,
        claims: Vec<Claim>,
        body: Box<dyn TransactionBody<Self::Conn>>,
    ) -> Result<(), TransactError>;
}

/// How durable a commit is, as the store's settings stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Durability {
    /// A commit survives a power loss.
    Full,
    /// A commit survives the process, not the machine; the text says which setting makes it so.
    Process(String),
    /// Nothing survives.
    None,
}

/// What a backend can and cannot do. Fencing, compare-and-set and atomic changes are not optional and not listed.
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
    /// Whether messages wait in the outbox until a relay has sent them. Otherwise the store hands them to something else,
    /// such as change data capture, and the runtime has no relay.
    pub relayed: bool,
    /// The most claims that are worth giving to one step transaction.
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
