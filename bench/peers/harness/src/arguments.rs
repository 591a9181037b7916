//! The command line that every peer's program has.

use clap::{Parser, Subcommand};

use crate::job::Work;

/// Runs the order work on peers of the saga runtime.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs the work once, and prints one line of JSON.
    Run(RunOptions),
    /// Prints the subjects that this program can run, one a line.
    Subjects,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunOptions {
    /// One of those that `subjects` prints.
    #[arg(long)]
    pub(crate) subject: String,
    /// The address of an empty PostgreSQL database, which is the program's own.
    #[arg(long)]
    pub(crate) url: String,
    /// What is done: every saga completes, or one in five is undone.
    #[arg(long)]
    pub(crate) work: Work,
    /// How many sagas are in flight at once.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) in_flight: u32,
    /// How many sagas there are in all.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) sagas: u32,
}
