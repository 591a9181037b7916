/// Lists the flaws of a backend, each with the clause that it breaks.
macro_rules! flaws {
    ($(#[$outer:meta])* $name:ident { $($(#[$inner:meta])* $flaw:ident breaks $clause:literal,)* }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name { $($(#[$inner])* $flaw),* }

        impl $name {
            /// Every flaw.
            pub const ALL: &[Self] = &[$(Self::$flaw),*];

            /// The clause that it breaks.
            pub fn clause(self) -> &'static str {
                match self { $(Self::$flaw => $clause),* }
            }
        }
    };
}

pub(super) use flaws;

flaws! {
    /// What a faulty store does wrong.
    StoreFlaw {
        /// A large block of ids begins at 1 again.
        RepeatsIds breaks "S-ID-1",
        /// A start leaves its commands out.
        DropsCommands breaks "S-SAGA-1",
        /// A taken key is answered as new.
        StartsTwice breaks "S-SAGA-2",
        /// The answers of a start come in another order.
        ReversesAnswers breaks "S-SAGA-3",
        /// A saga is found under any tenant.
        CrossesTenants breaks "S-SAGA-4",
        /// A claim reads the records of a key whose tenant it does not look at.
        ClaimsRecordsOfEveryTenant breaks "S-SAGA-4",
        /// A list has the sagas of every tenant.
        ListsEveryTenant breaks "S-SAGA-5",
        /// A list of failing sagas is empty.
        ListsNoneAsFailing breaks "S-SAGA-12",
        /// Stuck sagas are not counted.
        CountsNoStuck breaks "S-SAGA-6",
        /// The query for orphaned sagas finds none.
        FindsNoOrphans breaks "S-SAGA-7",
        /// The audit log lists the oldest entries first.
        ReversesTheAuditLog breaks "S-SAGA-9",
        /// The progress of a saga is always reported with its first version.
        ReportsTheFirstVersion breaks "S-SAGA-11",
        /// A start waits for a key as long as another transaction is about to take it.
        WaitsForKeys breaks "S-SAGA-10",
        /// The key of a hosted step is refused.
        RefusesHostedKeys breaks "S-SAGA-8",
        /// The answers of a registration come in another order.
        RegistersBackwards breaks "S-DEF-1",
        /// A registration is answered with the given definition, not the stored one.
        AcceptsAnyRegistration breaks "S-DEF-2",
        /// Definitions are listed backwards.
        ListsDefinitionsBackwards breaks "S-DEF-3",
        /// A saga that advanced since it was read is migrated all the same.
        MigratesAnyVersion breaks "S-DEF-4",
        /// A migration takes work away from its owner.
        MigratesHeldWork breaks "S-DEF-5",
        /// The records of a migrated saga stay as they were.
        LosesMigratedRecords breaks "S-DEF-6",
        /// A record of a migrated saga does not get the input of its step.
        LosesMigratedInputs breaks "S-DEF-6",
        /// Work that a migration withdraws stays.
        KeepsWorkAfterMigration breaks "S-DEF-7",
        /// A sample of unfinished sagas has only those of the default tenant.
        SamplesTheDefaultTenant breaks "S-DEF-8",
        /// A sample of unfinished sagas has no step records.
        SamplesWithoutRecords breaks "S-DEF-8",
        /// Work is due at once.
        ClaimsEarly breaks "S-WORK-1",
        /// Work of definitions that the claimer does not know is given to it.
        ClaimsUnknown breaks "S-WORK-1",
        /// A claim of shares ignores the limit of each share.
        IgnoresTheShares breaks "S-WORK-14",
        /// A claim of shares brings no records.
        ClaimsSharesWithoutRecords breaks "S-WORK-14",
        /// A claim of shares says of no row that it was recovered from a dead owner, or has begun.
        HidesRecoveryInShares breaks "S-WORK-14",
        /// A row of a share whose dead owner had not begun it counts as begun.
        MarksWaitingSharesAsBegun breaks "S-WORK-14",
        /// Every claim of shares takes over the rows of dead members.
        AlwaysTakesSharesOver breaks "S-WORK-14",
        /// A dead member claims shares, its own former rows included.
        LetsDeadMembersClaimShares breaks "S-WORK-14",
        /// The last claim's rows are given to the next claimer too.
        LeasesTwice breaks "S-WORK-2",
        /// No claimed row says that it was recovered from a dead owner.
        HidesRecovery breaks "S-WORK-3",
        /// A step that has a record is claimed all the same.
        ClaimsRecorded breaks "S-WORK-4",
        /// A renewed lease ends at once.
        RenewsForNoTime breaks "S-WORK-5",
        /// A released row keeps its epoch.
        KeepsTheEpoch breaks "S-WORK-6",
        /// The beginning of an attempt is not stored.
        CountsNoAttempts breaks "S-WORK-7",
        /// A late success is not stored.
        LosesLateSuccess breaks "S-WORK-8",
        /// A decision is accepted that did not see the late success.
        IgnoresLateSuccess breaks "S-WORK-8",
        /// The time of retrying is counted from the last error.
        RestartsTheRetryClock breaks "S-WORK-9",
        /// A report is lost with the claim that made it.
        ForgetsReports breaks "S-WORK-10",
        /// An older owner's report takes the place of the new one's.
        ReportsUnderAnyEpoch breaks "S-WORK-10",
        /// A report replaces a later one.
        AcceptsAnyReport breaks "S-WORK-10",
        /// A report does not renew its lease.
        ReportsRenewNothing breaks "S-WORK-10",
        /// A row whose dead owner had not begun it counts as begun.
        MarksWaitingAsBegun breaks "S-WORK-11",
        /// A row that begins is renewed, but not marked as begun.
        MarksNoBeginning breaks "S-WORK-11",
        /// A process that lost a row is told that it may begin.
        BeginsUnderAnyEpoch breaks "S-WORK-12",
        /// Every claim takes over the rows of dead members.
        AlwaysTakesOver breaks "S-WORK-13",
        /// A dead member claims rows, its own former ones included.
        LetsDeadMembersClaim breaks "S-WORK-13",
        /// What a member claimed and did not begin stays leased when it is to be released.
        KeepsUnbegun breaks "S-WORK-15",
        /// What a member has begun is released with what it has not.
        ReleasesTheBegun breaks "S-WORK-15",
        /// Of a change that missed, the commands and the history are written.
        AppliesHalf breaks "S-REC-1",
        /// The messages of changes are not written.
        ForgetsMessages breaks "S-REC-1",
        /// After one miss the rest of the call is not applied.
        EndsAtTheFirstMiss breaks "S-REC-1",
        /// Any version is accepted.
        AcceptsAnyVersion breaks "S-REC-2",
        /// Writers that lose are told that they won.
        LetsEveryWriterWin breaks "S-REC-3",
        /// A row is finished under any epoch.
        IgnoresTheEpoch breaks "S-REC-4",
        /// A second record of a step is accepted.
        RecordsTwice breaks "S-REC-5",
        /// Two changes of one saga are applied one after the other.
        AcceptsTwoChanges breaks "S-REC-6",
        /// A moved saga is reported before a lost row.
        ReportsTheSagaFirst breaks "S-REC-7",
        /// Messages are sent whether their changes are applied or not.
        SendsUncommitted breaks "S-REC-8",
        /// Of a commit in doubt, the records are there and the rest is not.
        AppliesHalfInDoubt breaks "S-REC-9",
        /// A change is applied although the key of the saga that it starts is taken.
        AppliesWithoutItsStart breaks "S-REC-10",
        /// A withdrawn row stays.
        KeepsWithdrawn breaks "S-REC-11",
        /// The dead letters of a change are not written.
        LosesDeadLetters breaks "S-REC-12",
        /// A command that was tried is inserted as a new one.
        ForgetsAttempts breaks "S-REC-13",
        /// The records of steps come with those of items.
        ReadsItems breaks "S-REC-14",
        /// A record waits as long as a transaction holds its rows.
        WaitsForRows breaks "S-REC-15",
        /// A step runs under any epoch.
        GrantsAnyEpoch breaks "S-TX-1",
        /// Rows are given to other claimers while their steps run.
        ReleasesRunningRows breaks "S-TX-2",
        /// The writes of a handler that failed are kept.
        KeepsRolledBack breaks "S-TX-3",
        /// The handlers' writes and the decision are two commits.
        CommitsTwice breaks "S-TX-4",
        /// A saga that moved is not decided again.
        SkipsMovedSagas breaks "S-TX-5",
        /// A saga that moved comes without its records.
        ForgetsOtherRecords breaks "S-TX-14",
        /// The records of the first claim's tenant decide about the claims of all tenants.
        JudgesByTheFirstTenant breaks "S-TX-16",
        /// The error does not name the handler that ended the transaction.
        HidesTheCulprit breaks "S-TX-6",
        /// The decision is written though no claim was granted.
        WritesWithoutClaims breaks "S-TX-7",
        /// The writes of an abandoned handler are kept.
        KeepsAbandoned breaks "S-TX-8",
        /// The writes of a handler with a conflict are kept.
        KeepsConflicts breaks "S-TX-11",
        /// `KeepAndContinue` is treated as `Keep`.
        StopsAfterOneStep breaks "S-TX-9",
        /// The handler of a claim that ran with another one runs again.
        RunsGroupedClaims breaks "S-TX-12",
        /// A savepoint is set for each handler, needed or not.
        SetsEverySavepoint breaks "S-TX-15",
        /// `UndoAndContinue` is treated as `KeepAndContinue`.
        KeepsUndone breaks "S-TX-13",
        /// A saga is started although its transaction fails.
        StartsWhatFails breaks "S-TX-10",
        /// A lane that is leased is leased to the next relay too.
        LeasesLanesTwice breaks "S-OUT-1",
        /// A lane is read backwards.
        ReadsBackwards breaks "S-OUT-2",
        /// A lane is read under any epoch.
        ReadsUnderAnyEpoch breaks "S-OUT-2",
        /// A sent message stays in the outbox.
        KeepsSent breaks "S-OUT-3",
        /// A parked key holds up its lane.
        ParksTheLane breaks "S-OUT-4",
        /// A key that was parked for a time is parked for good.
        ParksForGood breaks "S-OUT-4",
        /// A discarded message is sent all the same.
        DiscardsNothing breaks "S-OUT-6",
        /// A message is discarded without a trace.
        DiscardsSilently breaks "S-OUT-6",
        /// A message is read before it is due.
        ReadsEarly breaks "S-OUT-7",
        /// A message of a parked key does not count as waiting.
        OverlooksParked breaks "S-OUT-8",
        /// A change fails because one of its messages waits in the outbox already.
        RefusesWaiting breaks "S-OUT-5",
        /// Of the messages of a call only the first is stored.
        KeepsTheFirstOnly breaks "S-INBOX-1",
        /// Every message is answered as new.
        ReceivesTwice breaks "S-INBOX-2",
        /// A claim of messages takes all there are.
        ClaimsEveryMessage breaks "S-INBOX-3",
        /// Ids are forgotten whatever their age.
        ForgetsYoungIds breaks "S-INBOX-4",
        /// A dead letter loses its headers.
        LosesDeadLetterHeaders breaks "S-DEAD-1",
        /// A message that comes again becomes another dead letter.
        DuplicatesDeadLetters breaks "S-DEAD-2",
        /// A list of open dead letters contains decided ones.
        ListsDecidedDeadLetters breaks "S-DEAD-3",
        /// A replayed dead letter is not handled again.
        ReplaysNothing breaks "S-DEAD-4",
        /// A discarded dead letter stays open.
        KeepsDiscardedOpen breaks "S-DEAD-5",
        /// A later note replaces the note of the decision.
        RevisesDecisions breaks "S-DEAD-6",
        /// Every member has the same id.
        RepeatsMembers breaks "S-MEM-1",
        /// A dead member lives again.
        RevivesMembers breaks "S-MEM-2",
        /// The heartbeat of a dead member is answered with true.
        AcceptsDeadHeartbeats breaks "S-MEM-3",
        /// The rows of a member that rejoins are free for others.
        ReleasesRowsOnRejoin breaks "S-MEM-5",
        /// In a store for one process, the members of an earlier process live on.
        KeepsFormerMembers breaks "S-MEM-4",
        /// Hints are lost.
        LosesHints breaks "S-HINT-1",
        /// A start in the caller's transaction is committed on its own.
        StartsOutside breaks "S-IN-1",
        /// A taken key ends the caller's transaction.
        EndsTheCallersTransaction breaks "S-IN-2",
        /// A connection without a transaction is accepted.
        AcceptsBareConnections breaks "S-IN-3",
        /// An event in the caller's transaction is committed on its own.
        PublishesOutside breaks "S-IN-4",
        /// Each published event has the first position of its key.
        PublishesUncounted breaks "S-IN-5",
        /// The commands of a start in the caller's transaction get their ids in reverse order.
        NumbersBackwards breaks "S-IN-6",
        /// What a request wrote and its response are two commits.
        CommitsResponsesLater breaks "S-KEY-1",
        /// A kept response is replayed to another request under its key.
        IgnoresTheFingerprint breaks "S-KEY-2",
        /// A request waits until the key is free.
        WaitsForTheKey breaks "S-KEY-3",
        /// The writes of a kept refusal are kept too.
        KeepsRefusedWrites breaks "S-KEY-4",
        /// The key of a request of which nothing is kept stays taken.
        KeepsFailedKeys breaks "S-KEY-5",
        /// The keys of all principals are one.
        IgnoresPrincipals breaks "S-KEY-6",
        /// A leased key is leased to the next call too.
        LeasesKeysTwice breaks "S-KEY-7",
        /// A call under an older epoch is told that it completed its key.
        CompletesUnderAnyEpoch breaks "S-KEY-8",
        /// A key is kept longer than it was asked for.
        KeepsKeysForGood breaks "S-KEY-9",
        /// All expired keys are deleted by one call.
        DeletesKeysWithoutLimit breaks "S-KEY-10",
        /// A body that ended its transaction counts as one that was kept.
        AcceptsEndedTransactions breaks "S-KEY-11",
        /// What a request without a key wrote is rolled back.
        LosesWritesWithoutKey breaks "S-KEY-12",
        /// A commit in doubt is answered as if it had taken place.
        HidesDoubt breaks "S-KEY-13",
        /// The time of a saga is over by the clock of the process, which is ahead.
        ExpiresByTheProcessClock breaks "S-PURGE-1",
        /// The time for which a saga is kept is counted from its start.
        ExpiresByTheStart breaks "S-PURGE-1",
        /// Expired sagas are listed in the order of their ids.
        ListsExpiredById breaks "S-PURGE-2",
        /// A saga is deleted a commit before its records, and that commit never comes.
        DeletesSagasFirst breaks "S-PURGE-3",
        /// The sub-sagas of a saga stay when it is purged.
        PurgesHalfAFamily breaks "S-PURGE-3",
        /// A tombstone loses its tenant.
        LosesTheTenantOfTombstones breaks "S-PURGE-3",
        /// A saga is purged although it got more time since it was listed.
        LooksOnlyOnce breaks "S-PURGE-4",
        /// A saga that is kept has lost its sub-sagas.
        PurgesSubSagasFirst breaks "S-PURGE-5",
        /// A saga is purged although an open dead letter names it.
        IgnoresOpenLetters breaks "S-PURGE-5",
        /// A saga is purged although a message in the outbox names it.
        IgnoresTheOutbox breaks "S-PURGE-5",
        /// A saga that cannot be purged yet is due again after an hour, whatever the call says.
        RetriesPurgesHourly breaks "S-PURGE-5",
        /// A purge under an older epoch of the maintenance lease succeeds.
        PurgesUnderAnyEpoch breaks "S-PURGE-6",
        /// A start under the key of a tombstone is new.
        FreesKeysOfTombstones breaks "S-PURGE-7",
        /// The hosted steps of every tenant are dated.
        ExpiresHostedOfEveryTenant breaks "S-PURGE-8",
        /// Another expiry counts from the call.
        ExpiresFromNow breaks "S-PURGE-9",
        /// A late success dates a saga that an operator exempted.
        DatesExemptSagas breaks "S-PURGE-9",
        /// Open dead letters are forgotten with the decided ones.
        ForgetsOpenLetters breaks "S-PURGE-10",
        /// Hosted steps that are dated already are listed as ones that no message has closed.
        ListsDatedSteps breaks "S-PURGE-11",
        /// The walk through hosted steps begins again as soon as it has ended.
        WalksWithoutPause breaks "S-PURGE-11",
        /// A walk under an older epoch of the maintenance lease goes on.
        WalksUnderAnyEpoch breaks "S-PURGE-11",
        /// A saga of another tenant counts as known.
        KnowsSagasOfOtherTenants breaks "S-PURGE-12",
        /// A semantic lock is granted although another saga has its entities.
        SharesLocks breaks "S-LOCK-1",
        /// Of the entities of a semantic lock only the first is locked.
        LocksTheFirstEntityOnly breaks "S-LOCK-1",
        /// Each grant has the same token.
        RepeatsTokens breaks "S-LOCK-2",
        /// A request that waits is put in front of those that waited before.
        LetsLaterWaitsOvertake breaks "S-LOCK-3",
        /// A request that waits counts as an attempt.
        CountsWaitsAsAttempts breaks "S-LOCK-4",
        /// The semantic locks of changes do not end.
        ForgetsUnlocks breaks "S-LOCK-5",
        /// The semantic locks of changes end although the changes miss.
        UnlocksWhatMisses breaks "S-LOCK-5",
        /// The semantic locks of changes end in the next commit.
        UnlocksInACommitOfItsOwn breaks "S-LOCK-5",
        /// Sagas that wait for each other wait on.
        FindsNoDeadlocks breaks "S-LOCK-6",
        /// A saga waits on although its time is over.
        WaitsForGood breaks "S-LOCK-7",
        /// A process that lost its row asks for a semantic lock all the same.
        LocksUnderAnyEpoch breaks "S-LOCK-8",
        /// The same entity of two tenants is one entity.
        LocksAcrossTenants breaks "S-LOCK-9",
        /// A step transaction takes what others have.
        TakesLocksOfOthers breaks "S-LOCK-10",
        /// A step transaction lets go of its locks when its claims are granted.
        LetsGoBeforeTheCommit breaks "S-LOCK-10",
        /// A lock that was granted before counts as one that ends with the transaction.
        ForgetsWhichLocksAreStored breaks "S-LOCK-10",
        /// The claims of a step transaction get tokens that grow in their order.
        GivesEachClaimItsToken breaks "S-LOCK-10",
        /// A lock that a transaction keeps ends with the transaction.
        ForgetsKeptLocks breaks "S-LOCK-12",
        /// A lock that a transaction keeps is granted although the transaction fails.
        KeepsLocksOfWhatFails breaks "S-LOCK-12",
        /// A lock that a transaction keeps is granted by the next commit, with other tokens.
        KeepsLocksLater breaks "S-LOCK-12",
        /// Locks of steps whose commands are gone are kept.
        KeepsAbandonedLocks breaks "S-LOCK-11",
        /// With the abandoned locks all others end as well.
        EndsEveryLock breaks "S-LOCK-11",
    }
}
