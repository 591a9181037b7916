use clap::{Args, ValueEnum};
use serde_json::Value;

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

/// As what somebody saw it.
#[derive(Debug, Args)]
pub struct SeenArgs {
    /// The revision that `show` printed: if the order has moved since, nothing is done [default: as it stands now]
    #[arg(long, value_name = "N")]
    pub revision: Option<u64>,
}

/// What to try again.
#[derive(Debug, Args)]
pub struct RetryArgs {
    /// Which saga, why, and who says so.
    #[command(flatten)]
    pub desk: DeskArgs,
    /// As what somebody saw it.
    #[command(flatten)]
    pub seen: SeenArgs,
    /// Another input for the stuck step, as JSON; the history keeps the hashes of both
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub input: Option<Value>,
}

/// What to go past.
#[derive(Debug, Args)]
pub struct SkipArgs {
    /// Which saga, why, and who says so.
    #[command(flatten)]
    pub desk: DeskArgs,
    /// As what somebody saw it.
    #[command(flatten)]
    pub seen: SeenArgs,
    /// What the step would have given, as JSON, where a later step takes it
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub output: Option<Value>,
}

/// What to end.
#[derive(Debug, Args)]
pub struct ForceArgs {
    /// Which saga, why, and who says so.
    #[command(flatten)]
    pub desk: DeskArgs,
    /// As what somebody saw it.
    #[command(flatten)]
    pub seen: SeenArgs,
    /// As what it ends; what took effect stays as it is
    #[arg(long = "as", value_name = "END")]
    pub end: EndArg,
}

/// How a saga ends.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[expect(missing_docs, reason = "the words are the runtime's own")]
pub enum EndArg {
    Completed,
    Compensated,
}

/// What to start instead of what.
#[derive(Debug, Args)]
pub struct RestartArgs {
    /// Which saga, why, and who says so.
    #[command(flatten)]
    pub desk: DeskArgs,
    /// The step that the new saga begins with; what stands before it is taken over
    #[arg(long, value_name = "STEP")]
    pub from: String,
    /// The key of the new saga
    #[arg(long, value_name = "KEY")]
    pub new_key: String,
}

/// What people did.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// At most so many lines
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: usize,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// The store.
    #[command(flatten)]
    pub store: StoreArgs,
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("this is no JSON: {error}"))
}
