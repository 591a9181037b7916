use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::Context as _;

/// The programs that are run, and the folder that they are started in.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `order-rig`, as a program of this crate.
    pub replica: PathBuf,
    /// This program, which says what time it sees.
    pub chaos: PathBuf,
}

impl Programs {
    /// Those that lie beside this one.
    ///
    /// # Errors
    ///
    /// When this program does not know where it lies.
    pub fn beside_this_one() -> anyhow::Result<Self> {
        let chaos = std::env::current_exe().context("this program does not know where it lies")?;
        Ok(Self { replica: chaos.with_file_name("chaos-replica"), chaos })
    }

    /// A call of `order-rig` in that folder.
    pub(crate) fn replica(&self, folder: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(&self.replica);
        command.current_dir(folder).args(args).stdin(Stdio::null());
        command
    }
}

/// Runs a command to its end, on a thread of its own.
pub(crate) async fn finish(mut command: Command) -> anyhow::Result<Output> {
    let shown = format!("{command:?}");
    let run = tokio::task::spawn_blocking(move || command.output()).await?;
    run.with_context(|| format!("cannot run {shown}"))
}
