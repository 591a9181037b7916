use clap::{ArgMatches, Args as _, Error, FromArgMatches, Subcommand};

use super::StoreArgs;

/// An operator's command, and the store that it is about: each of them takes `--store` as the commands of this program do.
#[derive(Debug)]
pub struct AdminArgs {
    /// What to do.
    pub command: saga_cli::Command,
    /// Where.
    pub store: StoreArgs,
}

impl Subcommand for AdminArgs {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        let own = saga_cli::Command::augment_subcommands(clap::Command::new("admin"));
        command.subcommands(own.get_subcommands().cloned().map(with_store))
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        saga_cli::Command::has_subcommand(name)
    }
}

impl FromArgMatches for AdminArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut innermost = matches;
        while let Some((_, inner)) = innermost.subcommand() {
            innermost = inner;
        }
        let store = StoreArgs::from_arg_matches(innermost)?;
        Ok(Self { command: saga_cli::Command::from_arg_matches(matches)?, store })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The command, or each of its subcommands, with the option `--store`.
fn with_store(command: clap::Command) -> clap::Command {
    if command.has_subcommands() {
        return command.mut_subcommands(with_store);
    }
    // Only the option: the rest would describe the store in place of the command.
    let store = StoreArgs::augment_args(clap::Command::new("store"));
    command.args(store.get_arguments().cloned())
}
