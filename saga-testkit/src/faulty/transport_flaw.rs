use super::flaw::flaws;

flaws! {
    /// What a faulty transport does wrong.
    TransportFlaw {
        /// Every second message is confirmed and lost.
        LosesConfirmed breaks "T-PUB-1",
        /// One refused message makes its whole call fail.
        RefusesTogether breaks "T-PUB-2",
        /// The messages of a call are sent backwards.
        SendsBackwards breaks "T-PUB-3",
        /// A message whose id was sent before is dropped.
        DropsDuplicates breaks "T-PUB-4",
        /// A message without a subscriber counts as sent.
        SwallowsUnrouted breaks "T-PUB-5",
        /// A full queue is reported as an unavailable transport.
        ReportsFullAsUnavailable breaks "T-PUB-6",
        /// The transport reports that it is unavailable, and sends the message.
        ReportsUnavailable breaks "T-PUB-7",
        /// Two receivers of one name get every message each.
        SplitsNames breaks "T-SUB-1",
        /// All names share one queue.
        JoinsNames breaks "T-SUB-1",
        /// A delivery counts as accepted before it is settled.
        AcceptsUnsettled breaks "T-SUB-2",
        /// A rejected message counts as accepted.
        AcceptsRejected breaks "T-SUB-3",
        /// A rejected message is redelivered for ever.
        NeverGivesUp breaks "T-SUB-3",
        /// The prefetch is ignored.
        IgnoresPrefetch breaks "T-SUB-4",
        /// A payload is treated as text.
        ManglesPayloads breaks "T-SUB-5",
        /// A tenant's name is turned to lower case.
        FoldsTenants breaks "T-SUB-5",
        /// The user of a message is the one that the message names.
        BelievesSenders breaks "T-SUB-6",
        /// A tag that was settled already is an error.
        RefusesVoidTags breaks "T-SUB-7",
        /// A redelivery is not marked as one.
        ForgetsDeliveries breaks "T-SUB-8",
        /// Dead letters are never delivered.
        HidesDeadLetters breaks "T-DEAD-1",
        /// A rejected dead letter counts as accepted.
        DropsDeadLetters breaks "T-DEAD-1",
    }
}
