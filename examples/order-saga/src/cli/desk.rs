use clap::Args;

use super::StoreArgs;

/// Which saga, why, and who says so.
#[derive(Debug, Args)]
pub struct DeskArgs {
    /// The key: the order's id; in the store of a service that does a step of it, ID>STEP
    pub key: String,
    /// Why, and who says so.
    #[command(flatten)]
    pub act: ActArgs,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Why something is done, and who says so.
#[derive(Debug, Args)]
pub struct ActArgs {
    /// Why; it is kept with the saga
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Who does it; it is kept with the saga [default: the user of the operating system]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
}

impl ActArgs {
    /// Who does it.
    pub fn by(&self) -> String {
        let user = || ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
        self.by.clone().or_else(user).unwrap_or_else(|| "somebody".to_owned())
    }
}
