//! Reservations while their servers, PostgreSQL and Redis are killed: the test `kills` of `saga-reservations`, for longer.

use std::process::Command;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use crate::phases::run;
use crate::tasks::packages::server_packages;
use crate::workspace::cargo;

/// Three servers of reservations and sixteen clients, while servers, PostgreSQL and Redis are killed, stopped and emptied. A
/// judge reads what triggers wrote in the database and what the clients were answered.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask chaos reservations", bin_name = "cargo xtask chaos reservations")]
struct Reservations {
    /// How many reservations each client makes; there is a fault for each 24 of all
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u64).range(4..))]
    rounds: u64,
    /// The faults and the requests follow from it [default: another one each time]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Where the holds are
    #[arg(long, value_enum, default_value_t = Holds::Both)]
    holds: Holds,
}

/// Where the holds are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Holds {
    /// Two runs at the same time
    Both,
    /// PostgreSQL
    Postgres,
    /// Redis, over PostgreSQL
    Redis,
}

/// Builds the test and runs it.
pub(super) fn reservations(arguments: &[String]) -> Result<()> {
    let asked = Reservations::try_parse_from(["reservations"].into_iter().chain(arguments.iter().map(String::as_str)));
    let asked = asked.unwrap_or_else(|error| error.exit());
    eprintln!("{}", server_packages()?);
    run(&mut asked.test_command())
}

impl Reservations {
    fn test_command(&self) -> Command {
        let mut command = cargo();
        command.args(["test", "--package", "saga-reservations", "--test", "kills", "--", "--nocapture", "--exact"]);
        let (postgres, redis) =
            ("nothing_is_oversold_through_kills", "nothing_is_oversold_through_kills_and_flushes_of_redis");
        let names = [(postgres, self.holds != Holds::Redis), (redis, self.holds != Holds::Postgres)];
        command.args(names.iter().filter(|(_, is_run)| *is_run).map(|(name, _)| name));
        command.env("SAGA_RESERVATIONS_ROUNDS", self.rounds.to_string());
        if let Some(seed) = self.seed {
            command.env("SAGA_RESERVATIONS_SEED", seed.to_string());
        }
        command
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::Reservations;

    fn parsed(arguments: &[&str]) -> Result<Reservations, String> {
        let all = ["reservations"].iter().chain(arguments);
        Reservations::try_parse_from(all).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_sound() {
        Reservations::command().debug_assert();
    }

    #[test]
    fn the_test_gets_what_is_asked_for() {
        let command = parsed(&["--seed", "7", "--rounds", "500", "--holds", "redis"]).unwrap().test_command();
        let variables: Vec<_> = command.get_envs().map(|(name, value)| (name, value.unwrap_or_default())).collect();
        for (name, value) in [("SAGA_RESERVATIONS_ROUNDS", "500"), ("SAGA_RESERVATIONS_SEED", "7")] {
            assert!(variables.contains(&(name.as_ref(), value.as_ref())), "{variables:?}");
        }
        let arguments: Vec<_> = command.get_args().collect();
        assert_eq!(arguments.last(), Some(&"nothing_is_oversold_through_kills_and_flushes_of_redis".as_ref()));
        assert!(!arguments.contains(&"nothing_is_oversold_through_kills".as_ref()));
    }

    #[test]
    fn what_is_misspelled_is_named() {
        for (arguments, named) in [
            (&["--sed", "7"][..], "--sed"),
            (&["--seed", "seven"], "seven"),
            (&["--rounds", "3"], "3"),
            (&["--holds", "reddis"], "reddis"),
            (&["--seconds", "60"], "--seconds"),
        ] {
            let error = parsed(arguments).unwrap_err();
            assert!(error.contains(&format!("'{named}'")), "{arguments:?}: {error}");
        }
    }
}
