use std::sync::{Mutex, PoisonError};

macro_rules! faults {
    ($($(#[doc = $doc:literal])* $fault:ident = $name:literal,)*) => {
        /// What the simulation does to the engine, and what should come of it. Each must be hit in a long run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Fault {
            $($(#[doc = $doc])* $fault,)*
        }

        impl Fault {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$fault),*];

            /// The name, for tables.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$fault => $name,)* }
            }
        }
    };
}

faults! {
    /// A process is crashed at a random poll.
    CrashAtPoll = "crash at a poll",
    /// A process is crashed at a boundary of the store: before, inside or behind a commit.
    CrashAtCommit = "crash at a commit",
    /// A crashed process is started again.
    Restarted = "process restarted",
    /// A process is stopped for longer than a lease.
    PausedPastLease = "paused past its lease",
    /// A process does not reach its store for a while that its membership outlasts.
    CutOffBriefly = "cut off from the store",
    /// A process does not reach its store for longer than its membership lasts.
    CutOffLong = "cut off past its membership",
    /// There was more work than lines.
    MoreThanLines = "more work than lines",
    /// A process is shut down in the middle.
    Drained = "drained in the middle",
    /// A commit fails and the store says so.
    CommitFailed = "commit failed",
    /// A commit loses against another transaction.
    CommitConflict = "commit conflict",
    /// A commit happened, and the caller is not told.
    CommitUnknownKept = "unknown commit: kept",
    /// A commit did not happen, and the caller is not told.
    CommitUnknownLost = "unknown commit: lost",
    /// A commit is decided long after its caller was told that it is unknown.
    CommitDecidedLate = "unknown commit: decided late",
    /// The store cannot be reached for a while.
    StoreDown = "store down",
    /// A call of the store takes long.
    StoreSlow = "store slow",
    /// A read fails.
    ReadFailed = "read failed",
    /// A step function panics.
    HandlerPanicked = "handler panicked",
    /// A step function returns an error.
    HandlerFailed = "handler failed",
    /// A transactional step function returns an error behind its writes.
    HandlerFailedAfterWrite = "handler failed behind its writes",
    /// A step function rejects.
    HandlerRejected = "handler rejected",
    /// A step function passes its time limit.
    HandlerHung = "handler hung",
    /// A compensation rejects.
    UndoRejected = "undo rejected",
    /// A batch step was called for several sagas at once.
    BatchFormed = "batch formed",
    /// A call of a batch step failed as a whole, and was split.
    BatchSplit = "batch split",
    /// A call of a batch step did not come to its end: its process crashed, it panicked, or it took too long.
    BatchInterrupted = "batch interrupted",
    /// A batch step answered one of several with a rejection or an error.
    AnsweredAlone = "answered alone",
    /// A handler was called again in its transaction, since another one failed behind the same savepoint.
    CalledAgain = "called again",
    /// Commands of several tenants were committed by one transaction.
    TenantsShared = "tenants shared a commit",
    /// Two transactions write one row.
    RowConflict = "row conflict",
    /// A call took effect outside, and its answer was lost.
    AnswerLost = "answer lost",
    /// The service outside is asked what became of a call.
    AskedFor = "asked for",
    /// It says that the call took effect.
    FoundDone = "found done",
    /// It says that no call took effect so far.
    FoundNothing = "found nothing",
    /// A long call sees that it is no longer wanted.
    HaulGivenUp = "haul given up",
    /// A call is told how far the calls before it were.
    ToldProgress = "told how far it was",
    /// A call is told so that took over from an owner that vanished.
    ToldByTheVanished = "told by an owner that vanished",
    /// A call reports though another one has begun.
    ReportedTooLate = "reported too late",
    /// A call was never sent, and the step function says so.
    NotSent = "not sent",
    /// A call arrives outside after its caller has gone.
    ArrivedLate = "call arrived late",
    /// A call outside came with a key that had taken effect.
    KeyHonoured = "key honoured",
    /// An undo outside came for something that had never arrived.
    UndoBarred = "undo barred its step",
    /// A call outside came for a step that was barred.
    BarredRefused = "barred step refused",
    /// A compensation ran without knowing whether there was anything to undo.
    UndoUnknown = "undo of an unknown outcome",
    /// A step was taken over from an owner that vanished.
    TakenOver = "taken over",
    /// A message could not be published.
    PublishFailed = "publish failed",
    /// A message was published, and the confirmation was lost.
    ConfirmLost = "confirm lost",
    /// A message was refused for good for a while, so that its key was parked.
    PublishRefused = "publish refused",
    /// A message was delivered more than once.
    DeliveredTwice = "delivered twice",
    /// A message between services was accepted by the broker, and lost.
    MessageLost = "message lost",
    /// A message between services came twice.
    MessageDoubled = "message doubled",
    /// A message between services came late.
    MessageDelayed = "message delayed",
    /// A message came again, because its first receiver had vanished before it said that it has it.
    Redelivered = "message redelivered",
    /// A receiver lost its connection.
    ReceiveFailed = "receive failed",
    /// A receiver said that it has a message, and was not heard.
    SettleLost = "settle lost",
    /// A command without a reply was sent again.
    CommandSentAgain = "command sent again",
    /// A reply came after its command had been sent again.
    ReplyLate = "reply late",
    /// A host began that does not know all steps of its service yet.
    HostIgnorant = "ignorant host",
    /// An operator replayed a dead letter.
    LetterReplayed = "letter replayed",
    /// An operator discarded a dead letter.
    LetterDiscarded = "letter discarded",
    /// A step that another service hosts needed a person there.
    HostStuck = "hosted step stuck",
    /// A step was done by another service.
    HostedDone = "hosted step done",
    /// A step was undone by another service.
    HostedUndone = "hosted step undone",
    /// An item of a list was done by another service.
    HostedItemDone = "hosted item done",
    /// An item of a list was undone by another service.
    HostedItemUndone = "hosted item undone",
    /// An undo came to a service before the command that it undoes, and barred it.
    UndoOvertook = "undo overtook its do",
    /// A key was started again with the same payload.
    StartedTwice = "started twice",
    /// A key was started again with another payload, and refused.
    StartRefused = "start refused",
    /// A start failed.
    StartFailed = "start failed",
    /// The future of a start was dropped.
    StartDropped = "start dropped",
    /// A saga moved to another version.
    Moved = "moved",
    /// It was one that has choices.
    MovedWithChoices = "moved with choices",
    /// A saga was not moved, since a step of it was running.
    MoveBusy = "move: busy",
    /// A saga was not moved, since it had ended or could not be read.
    MoveRefused = "move refused",
    /// A client cancelled a saga, and it started compensating.
    Cancelled = "cancelled",
    /// A client cancelled a saga that compensated or had ended already.
    CancelledAgain = "cancelled again",
    /// A client was told that a saga only goes forward.
    CancelRefused = "cancel refused",
    /// A person paused a saga.
    SagaPaused = "saga paused",
    /// A person paused a saga that was paused already.
    SagaPausedAgain = "saga paused again",
    /// A person came to pause a saga that had ended, or was not there.
    PauseTooLate = "pause too late",
    /// A person let a saga go on.
    SagaResumed = "saga resumed",
    /// A saga needed a person while it was paused.
    StuckWhilePaused = "stuck while paused",
    /// A person had tried at once what waited for its next attempt.
    Hurried = "operator hurried",
    /// A step went on with a signal that it had waited for.
    SignalDelivered = "signal delivered",
    /// A signal came before its turn.
    SignalKept = "signal kept",
    /// A signal came again.
    SignalKnown = "signal known",
    /// A signal came when another one, the time or the end had decided.
    SignalLate = "signal late",
    /// A signal came for a saga that was not there, or waits for none.
    SignalRefused = "signal refused",
    /// A saga was started that begins later.
    BegunLater = "begun later",
    /// The deadline of a saga passed, and it was called off.
    Overdue = "overdue",
    /// A saga with a deadline came to its pivot or its end in time.
    InTime = "in time",
    /// A step was called behind a pause.
    Slept = "slept",
    /// A saga started compensating while a branch of it slept.
    Woken = "woken",
    /// A saga was stuck.
    Stuck = "saga stuck",
    /// An operator tried again.
    OperatorRetried = "operator retried",
    /// A saga that had ended was restarted as a new one.
    SagaRestarted = "saga restarted",
    /// A restarted saga took steps over.
    StepsTakenOver = "steps taken over",
    /// A restart was asked for that had been made already.
    RestartedAgain = "saga restarted again",
    /// Two operators made the same restart at once.
    RestartsRaced = "restarts raced",
    /// A restart was refused.
    RestartRefused = "restart refused",
    /// A restarted saga was compensated.
    RestartCompensated = "restarted saga compensated",
    /// A person acted on a saga by a plan.
    ActedInBulk = "acted in bulk",
    /// A plan was carried out again, and did not do again what it had done.
    BulkKnown = "bulk: done before",
    /// A saga had moved since a plan was made, or the action did not fit it.
    BulkRefused = "bulk: refused",
    /// A process died while it carried out a plan.
    BulkInterrupted = "bulk interrupted",
    /// An operator went past a step.
    OperatorSkipped = "operator skipped",
    /// An operator ended a saga.
    OperatorForced = "operator forced",
    /// Two operators acted on one stuck saga at once.
    OperatorsRaced = "operators raced",
    /// Two branches of a group were under way at once.
    BranchesAtOnce = "branches at once",
    /// Two branches of a group failed.
    BranchesFailed = "branches failed beside each other",
    /// Two branches of a group were undone at once.
    BranchesUndoneAtOnce = "branches undone at once",
    /// All branches of a group were done, and the saga went on behind it.
    BranchesJoined = "branches joined",
    /// Two branches of a group needed a person at once.
    BranchesStuck = "branches stuck beside each other",
    /// An arm of a choice was taken.
    ArmTaken = "arm taken",
    /// A choice was made, and none of its arms was taken.
    NoArmTaken = "no arm taken",
    /// A saga that is a step was done.
    SubDone = "sub-saga done",
    /// A saga that is a step was undone, or started compensating.
    SubUndone = "sub-saga undone",
    /// A copy of a message was held back until it was nearly too old, or longer.
    MessageHeld = "message held back",
    /// An archive got sagas.
    Archived = "archived",
    /// An archive failed.
    ArchiveFailed = "archive failed",
    /// An archive took its time.
    ArchiveSlow = "archive slow",
    /// A process crashed between the archive and the purge.
    CrashAfterArchive = "crash behind an archive",
    /// Of a saga only a tombstone was left.
    TombstoneMade = "tombstone made",
    /// A saga was deleted.
    SagaDeleted = "saga deleted",
    /// A saga that is a step was purged with its outer one.
    SubPurged = "sub-saga purged",
    /// A host purged a step that it had done.
    HostedPurged = "hosted step purged",
    /// A start was repeated when only a tombstone was left.
    TombstoneKnown = "tombstone known",
    /// A key was started again when its saga was deleted.
    KeyReused = "key used again",
    /// An operator exempted a saga from being purged.
    Exempted = "saga exempted",
    /// A saga or a step waited for its lock.
    LockWaited = "waited for a lock",
    /// A saga or a step got the lock that it had waited for.
    LockHandedOver = "lock handed over",
    /// A saga waited for its lock as long as it may.
    LockTimedOut = "lock timed out",
    /// Sagas waited for each other.
    Deadlock = "deadlock",
    /// A saga completed.
    Completed = "saga completed",
    /// A saga was compensated.
    Compensated = "saga compensated",
}

/// How often each fault was hit.
#[derive(Debug)]
pub struct Hits {
    counts: Mutex<Vec<u64>>,
}

impl Hits {
    /// None yet.
    pub fn new() -> Self {
        Self { counts: Mutex::new(vec![0; Fault::ALL.len()]) }
    }

    /// Notes a hit.
    pub fn hit(&self, fault: Fault) {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)[fault as usize] += 1;
    }

    /// How often this one was hit.
    pub fn of(&self, fault: Fault) -> u64 {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)[fault as usize]
    }

    /// The counts in the order of [`Fault::ALL`].
    pub fn counts(&self) -> Vec<u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Default for Hits {
    fn default() -> Self {
        Self::new()
    }
}
