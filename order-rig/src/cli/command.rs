use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

use super::{AdminArgs, OutsideArgs, RunArgs, ServiceArgs, VerifyArgs};
use crate::place::DEFAULT_STORE;

/// Runs orders through a saga: place, reserve, charge, ship, confirm. If a step fails, the finished steps are undone.
///
/// Exit codes: 0, success, also of a service that was asked to stop; 1, something needs an operator (a stuck saga, or an
/// invalid line); 2, the command could not be carried out, or its result not be printed; 3, `cancel`, `pause` or `resume` of an order that has ended; 130,
/// interrupted.
#[derive(Debug, Parser)]
#[command(name = "order-rig", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do; to run the orders where nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// How to run the orders.
    #[command(flatten)]
    pub run: RunArgs,
}

impl Cli {
    /// What the program was started with. An option in front of the subcommand is refused with a tip where it belongs.
    pub fn of_arguments() -> Self {
        Self::try_parse().unwrap_or_else(|mut error| {
            if error.kind() == ErrorKind::ArgumentConflict && error.get(ContextKind::PriorArg).is_some() {
                let tip = "options stand behind the subcommand, as in `order-rig list --store URL`";
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            error.exit()
        })
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the orders (the default)
    Run(RunArgs),
    /// Run one of the services: orders, payments or shipping
    Service(ServiceArgs),
    /// Audit the shop's tables and the journals of the external services, and check that no service has work left
    Verify(VerifyArgs),
    /// What an operator does with sagas.
    #[command(flatten)]
    Admin(AdminArgs),
    /// Print the saga definition as Mermaid
    Graph,
    /// Serve the payment gateway and the carrier as a separate process
    Outside(OutsideArgs),
}

impl Command {
    /// The URL of the store that it is about.
    pub fn store(&self) -> &str {
        match self {
            Self::Run(args) => &args.store.store,
            Self::Service(args) => args.store(),
            Self::Verify(args) => args.stores.first().map_or(DEFAULT_STORE, String::as_str),
            Self::Admin(args) => &args.store.store,
            Self::Outside(args) => &args.store.store,
            Self::Graph => DEFAULT_STORE,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_says_what_each_operators_command_does() {
        let mut cli = Cli::command();
        let page = cli.render_long_help().to_string();
        for (name, what) in [
            ("show", "Show what happened to one saga"),
            ("list", "List the sagas"),
            ("cancel", "Cancel a saga"),
            ("pause", "Pause a saga"),
            ("audit", "List the actions of operators"),
        ] {
            let line = page.lines().find(|line| line.trim_start().starts_with(&format!("{name} ")));
            assert!(line.is_some_and(|line| line.contains(what)), "{name}: no {what:?} in\n{page}");
            let command = cli.find_subcommand_mut(name).expect("a command");
            let own = command.render_long_help().to_string();
            assert!(own.starts_with(what) && own.contains("--store <URL>"), "{own}");
        }
        let nested = cli.find_subcommand_mut("bulk").expect("a command").render_help().to_string();
        assert!(nested.contains("Write a plan") && !page.contains("Where everything"), "{nested}\n{page}");
    }

    #[test]
    fn running_is_what_happens_where_nothing_is_said() {
        let cli = Cli::parse_from(["order-rig", "--orders", "-", "--json"]);
        assert!(cli.command.is_none() && cli.run.orders.json);
        let cli = Cli::parse_from(["order-rig", "run", "--concurrency", "1"]);
        assert!(matches!(cli.command, Some(Command::Run(args)) if args.orders.concurrency.get() == 1));
    }
}
