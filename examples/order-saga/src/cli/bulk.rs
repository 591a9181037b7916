use std::{num::NonZeroU32, path::PathBuf, time::Duration};

use clap::{Args, Subcommand, ValueEnum};
use saga_core::engine::{BatchAction, BatchFilter};

use super::{ActArgs, StatusArg, StoreArgs, times::time};

/// What to do with many sagas.
#[derive(Debug, Subcommand)]
pub enum BulkCommand {
    /// Say what would be done with which sagas, and write it down; nothing is changed
    Plan(PlanArgs),
    /// Carry a plan out: each saga is acted on only if it still stands as the plan saw it
    Run(CarryOutArgs),
}

impl BulkCommand {
    /// The store that it is about.
    pub fn store(&self) -> &StoreArgs {
        match self {
            Self::Plan(args) => &args.store,
            Self::Run(args) => &args.store,
        }
    }
}

/// What would be done with which sagas.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What is done with each
    pub action: BulkActionArg,
    /// Only those that stand there
    #[arg(long, value_name = "S")]
    pub status: Option<StatusArg>,
    /// Only those of this definition
    #[arg(long, value_name = "NAME")]
    pub definition: Option<String>,
    /// Only those that are stuck at this step, or undone because of it
    #[arg(long, value_name = "STEP")]
    pub failed_step: Option<String>,
    /// Only those that are stuck or undone for a reason with this text in it
    #[arg(long, value_name = "TEXT")]
    pub reason_has: Option<String>,
    /// Only those that have not moved for at least so long
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub idle_for: Option<Duration>,
    /// At most so many
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Where to write the plan; a file that is there is not written over
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

impl PlanArgs {
    /// The same, as the runtime takes it.
    pub fn filter(&self) -> BatchFilter {
        BatchFilter {
            status: self.status.map(Into::into),
            definition: self.definition.clone(),
            failed_step: self.failed_step.clone(),
            reason: self.reason_has.clone(),
            idle_for: self.idle_for,
            limit: self.limit,
        }
    }
}

/// Which plan to carry out, and how fast.
#[derive(Debug, Args)]
pub struct CarryOutArgs {
    /// The plan, as `bulk plan` wrote it
    pub plan: PathBuf,
    /// How many sagas are acted on in a second
    #[arg(long, value_name = "N", default_value = "10")]
    pub per_second: NonZeroU32,
    /// Why, and who says so.
    #[command(flatten)]
    pub act: ActArgs,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// What is done with each.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[expect(missing_docs, reason = "the words are the runtime's own")]
pub enum BulkActionArg {
    Retry,
    RetryNow,
    Skip,
    ForceCompleted,
    ForceCompensated,
    Cancel,
    Pause,
    Resume,
}

impl From<BulkActionArg> for BatchAction {
    fn from(action: BulkActionArg) -> Self {
        match action {
            BulkActionArg::Retry => Self::Retry,
            BulkActionArg::RetryNow => Self::RetryNow,
            BulkActionArg::Skip => Self::Skip,
            BulkActionArg::ForceCompleted => Self::ForceCompleted,
            BulkActionArg::ForceCompensated => Self::ForceCompensated,
            BulkActionArg::Cancel => Self::Cancel,
            BulkActionArg::Pause => Self::Pause,
            BulkActionArg::Resume => Self::Resume,
        }
    }
}
