//! What is done, and who does it.

use std::fmt;

use clap::ValueEnum;

/// A kind of work. `BENCHMARKS.md` describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Work {
    /// Orders: three steps, each one INSERT into a table of its own.
    #[value(name = "W")]
    Orders,
    /// One order in five fails at step 3, and steps 2 and 1 are undone.
    #[value(name = "W-undo")]
    Undo,
    /// Each step updates one of 77 rows.
    #[value(name = "W-hot")]
    Hot,
    /// W-hot whose steps lock their row's entity, so that they do not wait for the row.
    #[value(name = "W-hot-lock")]
    HotLocked,
    /// W-hot by two replicas, whose transactions wait for each other's rows.
    #[value(name = "W-hot-replicas")]
    HotReplicas,
    /// W-hot-lock by two replicas.
    #[value(name = "W-hot-lock-replicas")]
    HotLockedReplicas,
    /// Orders whose steps take a batch.
    #[value(name = "W-batch")]
    Batch,
    /// Orders, one in twenty of which is retried for ever.
    #[value(name = "W-retrying")]
    Retrying,
    /// Orders whose steps are written with `SqlConn`.
    #[value(name = "W-sql")]
    Portable,
    /// Orders each of whose steps locks an entity of its own order.
    #[value(name = "W-lock")]
    Locked,
    /// Orders that are under a semantic lock each.
    #[value(name = "W-hold")]
    Held,
    /// Orders that are under one semantic lock: each waits for the one before.
    #[value(name = "W-hand-over")]
    HandedOver,
    /// Orders of a thousand tenants that share commits.
    #[value(name = "W-tenants")]
    Tenants,
    /// Orders of a thousand tenants. Each tenant has commits of its own.
    #[value(name = "W-tenants-apart")]
    TenantsApart,
    /// One order after the other, on a system that does nothing else.
    #[value(name = "W-alone")]
    Alone,
    /// Orders in tables that are full of finished ones, and in empty ones.
    #[value(name = "W-finished")]
    Finished,
    /// Orders taken from a store in which very many wait.
    #[value(name = "W-waiting")]
    Waiting,
}

impl Work {
    /// Whether its steps update rows that many sagas share.
    pub(crate) fn is_hot(self) -> bool {
        matches!(self, Self::Hot | Self::HotLocked | Self::HotReplicas | Self::HotLockedReplicas)
    }

    /// How many replicas the runtime does it with.
    pub(crate) fn replicas(self) -> u32 {
        if matches!(self, Self::HotReplicas | Self::HotLockedReplicas) { 2 } else { 1 }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Orders => "W",
            Self::Undo => "W-undo",
            Self::Hot => "W-hot",
            Self::HotLocked => "W-hot-lock",
            Self::HotReplicas => "W-hot-replicas",
            Self::HotLockedReplicas => "W-hot-lock-replicas",
            Self::Batch => "W-batch",
            Self::Retrying => "W-retrying",
            Self::Portable => "W-sql",
            Self::Locked => "W-lock",
            Self::Held => "W-hold",
            Self::HandedOver => "W-hand-over",
            Self::Tenants => "W-tenants",
            Self::TenantsApart => "W-tenants-apart",
            Self::Alone => "W-alone",
            Self::Finished => "W-finished",
            Self::Waiting => "W-waiting",
        })
    }
}

/// Who does the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// pgbench: one transaction of four statements a step.
    F1,
    /// The same as one statement, in sqlx.
    F4,
    /// The same for fifty steps in one statement.
    F5,
    /// The runtime.
    Saga,
    /// The runtime, in tables that are full.
    SagaAmongFinished,
    /// Another runtime, by the name that its program gives it.
    Peer(String),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F1 => f.write_str("F1"),
            Self::F4 => f.write_str("F4"),
            Self::F5 => f.write_str("F5"),
            Self::Saga => f.write_str("saga"),
            Self::SagaAmongFinished => f.write_str("saga, full tables"),
            Self::Peer(name) => f.write_str(name),
        }
    }
}

/// What is measured in each round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) work: Work,
    pub(crate) in_flight: u32,
    pub(crate) subject: Subject,
}

impl Spec {
    pub(crate) fn new(work: Work, in_flight: u32, subject: Subject) -> Self {
        Self { work, in_flight, subject }
    }

    /// How many sagas, or steps of as many, keep it busy about as long as the runtime is with `sagas`.
    pub(crate) fn sagas(&self, sagas: u32) -> u32 {
        let sagas = match (&self.subject, self.work) {
            (Subject::F1, _) => sagas / 3,
            (Subject::F4, _) => sagas * 2 / 3,
            (Subject::F5, _) => sagas * 4,
            (Subject::Peer(_), _) => sagas / 6,
            (_, work) if work.is_hot() => sagas / 2,
            (_, Work::HandedOver) => sagas / 4,
            (_, Work::Batch) => sagas * 3,
            _ => sagas,
        };
        // Enough for each of those in flight to have several.
        sagas.max(self.in_flight * 4)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.work, self.in_flight, self.subject)
    }
}
