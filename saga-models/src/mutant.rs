/// A mistake that is made on purpose. The models find each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// An undo that finds nothing leaves nothing behind, so that a late do is done.
    NoTombstone,
    /// A message is settled before it is stored.
    SettlesBeforeStoring,
    /// A step whose outcome is unknown is taken for one that did nothing.
    SkipsUnknown,
    /// A rejection is recorded in the transaction that is rolled back.
    RecordsInRolledBack,
    /// What follows from a step is sent before its transaction commits.
    SendsBeforeCommit,
    /// A command that comes again begins again.
    BeginsAgain,
    /// A step's effect and its record are two commits.
    CommitsTwice,
    /// A row that another transaction holds is taken, and its record is overwritten.
    TakesHeldRows,
    /// A decision is written whatever the epoch of the row.
    IgnoresTheEpoch,
    /// A saga is written as it was when the step began.
    OverwritesTheSaga,
    /// A success of an owner that lost its claim is thrown away.
    ForgetsLateSuccess,
    /// A rejection counts, though an earlier attempt may have taken effect.
    ForgetsDoubt,
    /// An undo of what may have happened does not wait for the settle time.
    SkipsTheSettleTime,
    /// The steps are undone in the order in which they were done.
    UndoesInOrder,
    /// An event is sent while an earlier one of its key is not confirmed.
    SendsPastUnconfirmed,
    /// A message leaves the outbox whether the broker took it or not.
    DeletesUnconfirmed,
    /// A command without a reply is not sent again.
    NeverSendsAgain,
    /// A command that comes again is not answered again.
    NeverAnswersAgain,
    /// What a dead process had leased stays leased.
    KeepsDeadLeases,
    /// A start is answered before it is committed.
    AnswersBeforeCommit,
    /// A key that is taken is taken again with another payload.
    TakesAnyPayload,
    /// A call begins though its claim was taken over meanwhile.
    BeginsStale,
    /// What an owner that vanished had begun counts as if it had only waited.
    ForgetsBeginnings,
    /// That a call ended without an answer, whose owner had lost its claim, is thrown away.
    ForgetsLateUnknown,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 24] = [
        Self::NoTombstone,
        Self::SettlesBeforeStoring,
        Self::SkipsUnknown,
        Self::RecordsInRolledBack,
        Self::SendsBeforeCommit,
        Self::BeginsAgain,
        Self::CommitsTwice,
        Self::TakesHeldRows,
        Self::IgnoresTheEpoch,
        Self::OverwritesTheSaga,
        Self::ForgetsLateSuccess,
        Self::ForgetsDoubt,
        Self::SkipsTheSettleTime,
        Self::UndoesInOrder,
        Self::SendsPastUnconfirmed,
        Self::DeletesUnconfirmed,
        Self::NeverSendsAgain,
        Self::NeverAnswersAgain,
        Self::KeepsDeadLeases,
        Self::AnswersBeforeCommit,
        Self::TakesAnyPayload,
        Self::BeginsStale,
        Self::ForgetsBeginnings,
        Self::ForgetsLateUnknown,
    ];
}
