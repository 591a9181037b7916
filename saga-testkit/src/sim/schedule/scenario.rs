use std::ops::Range;
use std::time::Duration;

use super::rates::Rates;
use super::retention::RetentionPlan;
use crate::checker::{Pace, SagaTime};
use crate::sim::sagas::outermost;

/// One schedule: which sagas run on how many replicas, and what is done to them. All of it is drawn from the seed.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The seed.
    pub seed: u64,
    /// How many processes run the engine where the sagas are.
    pub replicas: u64,
    /// How many processes each of the other services has; none where there is one service only.
    pub hosts: Vec<u64>,
    /// The sagas.
    pub sagas: Vec<SagaScript>,
    /// What is done to the processes and the store, and when.
    pub disruptions: Vec<(Duration, Disruption)>,
    /// How often everything else happens.
    pub rates: Rates,
    /// How much virtual time one poll takes at most.
    pub poll_max: Duration,
    /// What is special where there is more work than lines.
    pub load: Option<Load>,
    /// Whether one transaction may carry commands of several tenants.
    pub shares_tenants: bool,
    /// How long ended sagas are kept, where that is not for ever.
    pub retention: Option<RetentionPlan>,
    /// What is broken on purpose.
    pub mutant: Option<Mutant>,
}

/// A mutant of the engine: one planted mistake, which the checker has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A receiver says that it has a message before it has stored it.
    SettlesBeforeStoring,
    /// A command that is sent again goes under another id.
    SendsUnderNewIds,
    /// A reply names a message that was never sent.
    MisaddressesReplies,
    /// Of a step whose input a mapping made, an undo brings what the mapping had not put there.
    UndoesWithOtherInputs,
    /// A batch step writes for an input that it rejects.
    WritesForRejected,
    /// An undo that comes before its command is answered, and leaves no tombstone.
    NoTombstone,
    /// What stands behind a group begins when its first branch is done.
    JoinsEarly,
    /// What a branch did is never undone.
    ForgetsBranches,
    /// A branch is done and undone as if what stands in front of its group stood beside it.
    DetachesBranches,
    /// What was done for the items of a list is never undone.
    ForgetsItems,
    /// All arms of a choice run.
    RunsEveryArm,
    /// What an arm of a choice did is never undone.
    ForgetsArms,
    /// What a saga did that is a step of another one is never undone.
    ForgetsSubSagas,
    /// A saga that is started instead of another one does all of it once more.
    RestartsFromScratch,
    /// A report is kept though another process has the claim by then.
    ReportsUnfenced,
    /// What an attempt reports last is not written down any more.
    ForgetsLastReport,
    /// What only waited when its owner vanished counts as begun.
    MarksWaitingAsBegun,
    /// A member that comes back does not have its rows, and each claim takes over at once what others left.
    ReleasesRowsOnRejoin,
    /// Of what vanished owners had begun one command is recovered at a time.
    RecoversOneByOne,
    /// A process begins calls of which it had the claim once, though it may be another process's by then.
    BeginsBlindly,
    /// The same, and where such a call ends without an answer that is forgotten.
    BeginsAndForgets,
    /// That a call ended without an answer is forgotten, where another process has its claim by then.
    ForgetsLateUnknown,
    /// Tenants share commits though the settings do not say so.
    SharesTenantsUnasked,
    /// A host purges the steps that it did though nothing told it that their sagas are closed.
    HostsPurgeUntold,
    /// A host acts on a message however old it is.
    ActsOnOldMessages,
    /// Sagas are archived when they are purged already.
    ArchivesLate,
    /// A host is told that a saga is closed when that ends, and keeps nothing for the messages on their way.
    ClosesAtTheEnd,
    /// A key is forgotten together with its saga, though the hosts of its steps still know it.
    ReusesKeysEarly,
    /// Hosts are never told which sagas are closed, and do not ask.
    NeverAsksForClosed,
    /// Every lock is granted at once.
    GrantsEveryLock,
    /// Semantic locks end when a saga starts compensating, and not with its last undo.
    EndsLocksEarly,
    /// A semantic lock that a transaction took ends with that, although the saga goes on.
    ForgetsKeptLocks,
}

impl Mutant {
    /// All of them.
    pub const ALL: &[Self] = &[
        Self::SettlesBeforeStoring,
        Self::SendsUnderNewIds,
        Self::MisaddressesReplies,
        Self::UndoesWithOtherInputs,
        Self::WritesForRejected,
        Self::NoTombstone,
        Self::JoinsEarly,
        Self::ForgetsBranches,
        Self::DetachesBranches,
        Self::ForgetsItems,
        Self::RunsEveryArm,
        Self::ForgetsArms,
        Self::ForgetsSubSagas,
        Self::RestartsFromScratch,
        Self::ReportsUnfenced,
        Self::ForgetsLastReport,
        Self::MarksWaitingAsBegun,
        Self::ReleasesRowsOnRejoin,
        Self::RecoversOneByOne,
        Self::BeginsBlindly,
        Self::BeginsAndForgets,
        Self::ForgetsLateUnknown,
        Self::SharesTenantsUnasked,
        Self::HostsPurgeUntold,
        Self::ActsOnOldMessages,
        Self::ArchivesLate,
        Self::ClosesAtTheEnd,
        Self::ReusesKeysEarly,
        Self::NeverAsksForClosed,
        Self::GrantsEveryLock,
        Self::EndsLocksEarly,
        Self::ForgetsKeptLocks,
    ];
}

/// How many definitions there are, in this order: without steps of other services, with such steps, with one that
/// an external client asks for, those of which there are to be many, and those with locks.
#[derive(Debug, Clone, Copy)]
pub struct Counts {
    /// Without steps of other services.
    pub local: usize,
    /// How many of these, the last ones, have batch steps.
    pub batch: usize,
    /// With such steps.
    pub remote: usize,
    /// With one step that an external client asks for.
    pub external: usize,
    /// With calls only, of which there are to be many.
    pub load: usize,
    /// With locks.
    pub locks: usize,
}

/// A key of a tenant, and who starts what under it.
#[derive(Debug, Clone)]
pub struct SagaScript {
    /// Whose it is; the empty text is the default tenant.
    pub tenant: &'static str,
    /// The saga's key.
    pub key: String,
    /// The definitions that are offered, by their places. All but the first are offered in vain, or the first is.
    pub variants: Vec<usize>,
    /// Who starts it: when, and which variant.
    pub starts: Vec<(Duration, u8)>,
    /// The step that always rejects.
    pub refused_step: Option<u8>,
    /// When it begins, and how long it has. One that begins later has all the time that it needs.
    pub time: SagaTime,
    /// The signals that are sent to it: when, and which.
    pub signals: Vec<(Duration, u64)>,
    /// Whether an external client, without a store of ours, asks for its only step and takes it back.
    pub is_foreign: bool,
    /// The saga that this one is a restart of.
    pub restart_of: Option<u32>,
    /// The saga whose key is used again when that one is deleted.
    pub reborn_of: Option<u32>,
}

/// Something that is done to a replica or to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disruption {
    /// Crash a replica, at its so manyth poll from now.
    Crash {
        /// Which.
        replica: u64,
        /// After how many polls.
        polls: u64,
    },
    /// Stop a replica for so long.
    Pause {
        /// Which.
        replica: u64,
        /// For how long.
        duration: Duration,
    },
    /// Shut a replica down, and start it again.
    Drain {
        /// Which.
        replica: u64,
    },
    /// A replica does not reach the store for so long. The others do.
    CutOff {
        /// Which.
        replica: u64,
        /// For how long.
        duration: Duration,
    },
    /// No process reaches the store of a service for so long.
    StoreDown {
        /// The number of the service.
        service: u8,
        /// For how long.
        duration: Duration,
    },
}

/// What is special in a schedule with more work than lines.
#[derive(Debug, Clone)]
pub struct Load {
    /// How many calls one process makes at a time.
    pub lines: usize,
    /// How long a call takes, in milliseconds: always, since that is no fault.
    pub call_millis: Range<u64>,
}

impl Load {
    /// What all processes together can do at once.
    pub(crate) fn pace(&self, replicas: u64) -> Pace {
        let lines = u32::try_from(self.lines as u64 * replicas).unwrap_or(u32::MAX);
        let processes = u32::try_from(replicas).unwrap_or(u32::MAX);
        Pace { lines, call_max: self.call_millis.end * 1_000, processes }
    }
}

impl Scenario {
    /// The saga that acts where an input says that it belongs to `saga`: what is started instead of a saga has its input,
    /// and a key of its own.
    pub(crate) fn acting(&self, saga: u32, key: &str) -> u32 {
        let key = outermost(key);
        let tenant = self.sagas.get(saga as usize).map(|script| script.tenant);
        let is_it = |script: &SagaScript| script.key == key && Some(script.tenant) == tenant;
        let restarts = (0..).zip(&self.sagas).filter(|(_, script)| script.restart_of.is_some());
        restarts.into_iter().find(|(_, script)| is_it(script)).map_or(saga, |(restart, _)| restart)
    }

    /// The saga with whose input that one was started.
    pub(crate) fn first_of(&self, saga: u32) -> u32 {
        let mut first = saga;
        while let Some(of) = self.sagas[first as usize].restart_of {
            first = of;
        }
        first
    }
}
