use clap::Args;

use super::StoreArgs;

/// What to cancel.
#[derive(Debug, Args)]
pub struct CancelArgs {
    /// The key: the order's id
    pub key: String,
    /// Why; it is kept with the saga
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}
