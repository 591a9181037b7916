//! `cargo xtask check`: what must hold besides the tests.

use anyhow::Result;
use clap::Args;

use super::api::{Api, api};
use super::book::book;
use super::prerequisites::components;
use super::tidy::{Tidy, tidy};
use crate::phases::Phases;
use crate::workspace::{WITH_SERVERS, cargo};

/// Libraries as users have them who need a part: the features of the workspace's own programs add up to nearly all. Those of a
/// group are looked at together, since none turns on a feature of another.
const PARTS: [&[(&str, &str)]; 4] = [
    &[("saga-core", "")],
    &[
        ("saga-sql", "saga-sql/sqlite"),
        ("saga-http", "saga-http/client"),
        ("saga-redis", "saga-redis/sqlite"),
        ("saga-reservations", "saga-reservations/sqlite,saga-reservations/redis"),
    ],
    &[
        ("saga-sql", "saga-sql/postgres"),
        ("saga-http", "saga-http/server"),
        ("saga-reservations", "saga-reservations/postgres"),
    ],
    &[("saga-reservations", "saga-reservations/client")],
];

/// What is checked.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Leaves out clippy of the whole workspace: it has compiled the tests.
    #[arg(long, hide = true)]
    linted: bool,
}

/// Formatting, clippy, rustdoc, the public API, the guide and tidy, warnings denied. `tasks` are those that documents may name.
pub(crate) fn check(options: &Check, tasks: &[String]) -> Result<()> {
    let mut phases = Phases::of("check");
    phases.run("prerequisites", components)?;
    phases.command("fmt", cargo().args(["fmt", "--all", "--check"]))?;
    // A workspace of its own; to build it only for its lints would take minutes of everybody's time.
    let peers = ["fmt", "--all", "--check", "--manifest-path", "bench/peers/Cargo.toml"];
    phases.command("fmt of the peers", cargo().args(peers))?;
    if !options.linted {
        let everything = ["--workspace", "--all-targets", "--features", WITH_SERVERS];
        phases.command("clippy", cargo().arg("clippy").args(everything).args(["--", "-D", "warnings"]))?;
    }
    for part in PARTS {
        let libraries = part.iter().flat_map(|(library, features)| ["--package", library, "--features", features]);
        let mut clippy = cargo();
        clippy.args(["clippy", "--lib", "--no-default-features"]).args(libraries).args(["--", "-D", "warnings"]);
        phases.command("clippy of a part", &mut clippy)?;
    }
    phases.run("doc and api", || api(&Api::checked()))?;
    phases.run("book", book)?;
    phases.run("tidy", || tidy(&Tidy::default(), tasks).map(|()| String::new()))
}
