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
        /// A list has the sagas of every tenant.
        ListsEveryTenant breaks "S-SAGA-5",
        /// Stuck sagas are not counted.
        CountsNoStuck breaks "S-SAGA-6",
        /// The audit finds nothing.
        FindsNoForgotten breaks "S-SAGA-7",
        /// It lists what people did, the oldest first.
        ListsActsBackwards breaks "S-SAGA-9",
        /// However far a saga is, it is told to stand at its first version.
        TellsTheFirstVersion breaks "S-SAGA-11",
        /// A start waits for a key as long as another transaction is about to take it.
        WaitsForKeys breaks "S-SAGA-10",
        /// The key of a hosted step is refused.
        RefusesHostedKeys breaks "S-SAGA-8",
        /// The answers of a registration come in another order.
        RegistersBackwards breaks "S-DEF-1",
        /// A registration is answered with the given definition, not the stored one.
        BelievesWhoRegisters breaks "S-DEF-2",
        /// Definitions are listed backwards.
        ListsDefinitionsBackwards breaks "S-DEF-3",
        /// A saga that moved on is moved all the same.
        MovesAnyVersion breaks "S-DEF-4",
        /// Work is taken away from its owner.
        MovesHeldWork breaks "S-DEF-5",
        /// The records of a saga that moves stay as they are.
        LosesMovedRecords breaks "S-DEF-6",
        /// A record of a saga that moves does not get the input that its step was given.
        LosesMovedInputs breaks "S-DEF-6",
        /// What a move withdraws stays.
        MovesWithdrawn breaks "S-DEF-7",
        /// Work is due at once.
        ClaimsEarly breaks "S-WORK-1",
        /// Work of definitions that the claimer does not know is given to it.
        ClaimsUnknown breaks "S-WORK-1",
        /// A claim of shares takes as many rows of each as it finds.
        ForgetsTheShares breaks "S-WORK-14",
        /// The last claim's rows are given to the next claimer too.
        LeasesTwice breaks "S-WORK-2",
        /// No row is suspect.
        SuspectsNobody breaks "S-WORK-3",
        /// A step that has a record is claimed all the same.
        ClaimsRecorded breaks "S-WORK-4",
        /// A renewed lease ends at once.
        RenewsForNothing breaks "S-WORK-5",
        /// Giving back does not raise the epoch.
        KeepsTheEpoch breaks "S-WORK-6",
        /// The beginning of an attempt is not written down.
        CountsNoAttempts breaks "S-WORK-7",
        /// A late success is thrown away.
        LosesLate breaks "S-WORK-8",
        /// A late success bars no decision.
        IgnoresLate breaks "S-WORK-8",
        /// Retrying is counted from the last error.
        ForgetsFirstError breaks "S-WORK-9",
        /// A report is gone with the claim that it was made under.
        ForgetsReports breaks "S-WORK-10",
        /// An older owner's report takes the place of the new one's.
        ReportsUnderAnyEpoch breaks "S-WORK-10",
        /// A report takes the place of a later one.
        KeepsAnyReport breaks "S-WORK-10",
        /// A report does not renew its lease.
        ReportsRenewNothing breaks "S-WORK-10",
        /// What only waited when its owner vanished counts as begun.
        TakesWaitingForBegun breaks "S-WORK-11",
        /// A row that begins is renewed, and not marked.
        MarksNoBeginning breaks "S-WORK-11",
        /// A process that lost a row is told that it begins.
        BeginsUnderAnyEpoch breaks "S-WORK-12",
        /// Every claim takes over what others left.
        AlwaysTakesOver breaks "S-WORK-13",
        /// A member that is dead takes over what others left, and what it had itself.
        LetsTheDeadTakeOver breaks "S-WORK-13",
        /// Of changes that missed, the commands and the history are written.
        AppliesHalf breaks "S-REC-1",
        /// The messages of changes are not written.
        ForgetsMessages breaks "S-REC-1",
        /// One miss ends the call.
        EndsAtTheFirstMiss breaks "S-REC-1",
        /// Any version is accepted.
        AcceptsAnyVersion breaks "S-REC-2",
        /// Writers that lose are told that they won.
        LetsEveryWriterWin breaks "S-REC-3",
        /// A row is finished under any epoch.
        IgnoresTheEpoch breaks "S-REC-4",
        /// A record that exists hinders nothing.
        RecordsTwice breaks "S-REC-5",
        /// Two changes of one saga are applied one after the other.
        AcceptsTwoChanges breaks "S-REC-6",
        /// A moved saga is told before all else.
        TellsTheSagaFirst breaks "S-REC-7",
        /// Messages are sent whether their changes are applied or not.
        SendsUncommitted breaks "S-REC-8",
        /// Of a commit in doubt, the records are there and the rest is not.
        AppliesHalfInDoubt breaks "S-REC-9",
        /// The rest of changes is written though the key of the saga to start is taken.
        StartsOverTaken breaks "S-REC-10",
        /// A withdrawn row stays.
        KeepsWithdrawn breaks "S-REC-11",
        /// The letters of changes are not written.
        LosesLetters breaks "S-REC-12",
        /// A command that was tried is inserted as a new one.
        ForgetsAttempts breaks "S-REC-13",
        /// The records of steps come with those of items.
        ReadsItems breaks "S-REC-14",
        /// A record waits as long as a transaction holds its rows.
        WaitsForRows breaks "S-REC-15",
        /// A step runs under any epoch.
        GrantsAnyEpoch breaks "S-TX-1",
        /// Rows are given to others while their steps run.
        GivesAwayRunning breaks "S-TX-2",
        /// What a handler wrote is kept when it erred.
        KeepsRolledBack breaks "S-TX-3",
        /// The handlers' writes and the decision are two commits.
        CommitsTwice breaks "S-TX-4",
        /// A moved saga is left where it is.
        LeavesMovedSagas breaks "S-TX-5",
        /// What is recorded of a moved saga is not told.
        ForgetsOtherRecords breaks "S-TX-14",
        /// Who ended the transaction is not told.
        BlamesNobody breaks "S-TX-6",
        /// The decision is written though no claim was granted.
        WritesWithoutClaims breaks "S-TX-7",
        /// What an abandoned handler wrote is kept.
        KeepsAbandoned breaks "S-TX-8",
        /// What a handler wrote that gave way is kept.
        KeepsWhatGaveWay breaks "S-TX-11",
        /// A handler that goes on is taken for the last one.
        GoesOnNoFurther breaks "S-TX-9",
        /// It runs the handler of a claim that ran with another one once more.
        PassesNoneOver breaks "S-TX-12",
        /// It asks which handlers need a savepoint, and sets one for each.
        SetsNeedlessSavepoints breaks "S-TX-15",
        /// It keeps what a handler wrote that goes back.
        KeepsWhatWentBack breaks "S-TX-13",
        /// A saga is started though its transaction fails.
        StartsWhatFails breaks "S-TX-10",
        /// A lane that is leased is leased to the next relay too.
        LeasesLanesTwice breaks "S-OUT-1",
        /// A lane is read backwards.
        ReadsBackwards breaks "S-OUT-2",
        /// A lane is read under any epoch.
        ReadsUnderAnyEpoch breaks "S-OUT-2",
        /// What was sent stays.
        SendsForEver breaks "S-OUT-3",
        /// A parked key holds up its lane.
        ParksTheLane breaks "S-OUT-4",
        /// A key that was parked for a time is parked for good.
        ParksForGood breaks "S-OUT-4",
        /// A message that was discarded is there again.
        DiscardsNothing breaks "S-OUT-6",
        /// A message is discarded without a trace.
        DiscardsSilently breaks "S-OUT-6",
        /// A message is read before it is due.
        ReadsEarly breaks "S-OUT-7",
        /// A message whose id was inserted before fails its changes.
        RefusesWaiting breaks "S-OUT-5",
        /// Of the messages of a call only the first is stored.
        KeepsTheFirstOnly breaks "S-INBOX-1",
        /// Every message is answered as new.
        ReceivesTwice breaks "S-INBOX-2",
        /// A claim of messages takes all there are.
        ClaimsEveryMessage breaks "S-INBOX-3",
        /// Ids are forgotten whatever their age.
        ForgetsYoungIds breaks "S-INBOX-4",
        /// A letter loses its headers.
        LosesLetterHeaders breaks "S-DEAD-1",
        /// Every letter is one of its own.
        BuriesTwice breaks "S-DEAD-2",
        /// A list has the letters that were decided on as well.
        ListsDecidedLetters breaks "S-DEAD-3",
        /// A replayed letter is not handed in.
        ReplaysNothing breaks "S-DEAD-4",
        /// A discarded letter stays open.
        KeepsDiscardedOpen breaks "S-DEAD-5",
        /// A later note takes the place of an earlier one.
        RevisesDecisions breaks "S-DEAD-6",
        /// Every member has the same id.
        RepeatsMembers breaks "S-MEM-1",
        /// A dead member lives again.
        RevivesMembers breaks "S-MEM-2",
        /// Every beat is answered with true.
        BeatsTheDead breaks "S-MEM-3",
        /// A member that comes back finds its rows free for everybody.
        LeavesOwnRows breaks "S-MEM-5",
        /// Though only one process works on the data, the members of an earlier one live on.
        OutlivesTheProcess breaks "S-MEM-4",
        /// Hints are lost.
        LosesHints breaks "S-HINT-1",
        /// A start in a transaction does not wait for its commit.
        StartsOutside breaks "S-IN-1",
        /// A taken key ends the caller's transaction.
        EndsTheCallers breaks "S-IN-2",
        /// A bare connection is taken.
        TakesBareConnections breaks "S-IN-3",
        /// An event that is published in a transaction does not wait for its commit.
        PublishesOutside breaks "S-IN-4",
        /// An event that is published is the first of a key.
        PublishesUncounted breaks "S-IN-5",
        /// The commands of a start in the caller's transaction get their ids in another order.
        NumbersBackwards breaks "S-IN-6",
    }
}

flaws! {
    /// What a faulty transport does wrong.
    TransportFlaw {
        /// Every second message is confirmed and lost.
        LosesConfirmed breaks "T-PUB-1",
        /// One refused message refuses its whole call.
        RefusesTogether breaks "T-PUB-2",
        /// The messages of a call are sent backwards.
        SendsBackwards breaks "T-PUB-3",
        /// A message whose id was sent before is dropped.
        DropsDuplicates breaks "T-PUB-4",
        /// A message without a subscriber counts as sent.
        SwallowsUnrouted breaks "T-PUB-5",
        /// A full queue is taken for a transport that is away.
        TakesFullForAway breaks "T-PUB-6",
        /// It says that it cannot be reached, and takes what is sent.
        DeniesReach breaks "T-PUB-7",
        /// Two receivers of one name get every message each.
        SplitsNames breaks "T-SUB-1",
        /// All names share one queue.
        JoinsNames breaks "T-SUB-1",
        /// What was delivered counts as accepted.
        AcceptsUnsettled breaks "T-SUB-2",
        /// What was rejected counts as accepted.
        AcceptsRejected breaks "T-SUB-3",
        /// What is rejected comes for ever.
        NeverGivesUp breaks "T-SUB-3",
        /// The prefetch is ignored.
        IgnoresPrefetch breaks "T-SUB-4",
        /// A payload is taken for text.
        ManglesPayloads breaks "T-SUB-5",
        /// A tenant's name is written small.
        FoldsTenants breaks "T-SUB-5",
        /// A message is from whom it says that it is from.
        BelievesSenders breaks "T-SUB-6",
        /// Dead letters are never delivered.
        HidesDeadLetters breaks "T-DEAD-1",
        /// A dead letter that is rejected counts as accepted.
        DropsDeadLetters breaks "T-DEAD-1",
    }
}
