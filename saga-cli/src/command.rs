use clap::error::ErrorKind;
use clap::parser::MatchesError;
use clap::{Arg, ArgMatches, Error, FromArgMatches, Subcommand};
use saga_core::Tenant;

use crate::action::Action;

/// The name of the option for the tenant.
const TENANT: &str = "tenant";

/// The commands of `retention` that act on the sagas of all tenants.
const OF_ALL_TENANTS: [&str; 2] = ["show", "apply"];

/// The operator's commands. An application adds them to its own with `#[command(flatten)]`. Each of them takes `--tenant`,
/// except those that act on the sagas of all tenants.
#[derive(Debug)]
pub struct Command {
    pub(crate) action: Action,
    pub(crate) tenant: Option<Tenant>,
}

impl Subcommand for Command {
    fn augment_subcommands(command: clap::Command) -> clap::Command {
        let own = Action::augment_subcommands(clap::Command::new("admin"));
        command.subcommands(own.get_subcommands().cloned().map(with_tenant))
    }

    fn augment_subcommands_for_update(command: clap::Command) -> clap::Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        Action::has_subcommand(name)
    }
}

impl FromArgMatches for Command {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self { action: Action::from_arg_matches(matches)?, tenant: tenant_of(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The command, or each of its subcommands, with the option `--tenant`.
fn with_tenant(command: clap::Command) -> clap::Command {
    if !command.has_subcommands() {
        let help = "The tenant whose sagas and messages these are [default: the default tenant]";
        let parse = |name: &str| Tenant::new(name);
        return command.arg(Arg::new(TENANT).long(TENANT).value_name("NAME").help(help).value_parser(parse));
    }
    let is_retention = command.get_name() == "retention";
    let is_of_all = move |inner: &clap::Command| is_retention && OF_ALL_TENANTS.contains(&inner.get_name());
    command.mut_subcommands(|inner| if is_of_all(&inner) { inner } else { with_tenant(inner) })
}

/// The tenant that the command line names.
fn tenant_of(matches: &ArgMatches) -> Result<Option<Tenant>, Error> {
    let mut innermost = matches;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    match innermost.try_get_one::<Tenant>(TENANT) {
        Ok(tenant) => Ok(tenant.cloned()),
        // A command of all tenants.
        Err(MatchesError::UnknownArgument { .. }) => Ok(None),
        Err(error) => Err(Error::raw(ErrorKind::InvalidValue, format!("--{TENANT}: {error}\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_sound() {
        Command::augment_subcommands(clap::Command::new("shop")).debug_assert();
    }
}
