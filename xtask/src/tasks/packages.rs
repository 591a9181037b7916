//! The servers' packages, and what else the tests take from the system's packages.

use std::process::Command;

use anyhow::{Result, bail};
use saga_servers::installed;

use super::prerequisites::{answers, is_root};
use crate::phases::run;
use crate::workspace::program;

const INSTALL: &str = "xtask/src/install.sh";

/// Makes sure that the servers are installed, and returns a note that says what was done.
///
/// A service of the system is neither started nor used: only the programs are.
pub(crate) fn server_packages() -> Result<String> {
    let missing = installed::missing_packages();
    if missing.is_empty() {
        println!("PostgreSQL, PgBouncer, RabbitMQ, Redis, Java, pika, httpx, grpcio and libfaketime are there");
        return Ok("servers: there".to_owned());
    }
    let names = missing.join(" ");
    println!("missing: {names}");
    let Some(mut install) = privileged_shell() else {
        bail!(
            "the tests run on private servers, and these packages are missing: {names}; install them and run this \
             again, on Debian or Ubuntu with: sudo apt-get install -y {names}"
        );
    };
    run(install.arg(INSTALL).args(&missing))?;
    let still = installed::missing_packages();
    if !still.is_empty() {
        bail!("apt-get installed {names}, and still their programs are not found: {}", still.join(" "));
    }
    Ok(format!("servers: {names} installed"))
}

/// A shell that may install packages, if there is apt-get and a way to be root.
fn privileged_shell() -> Option<Command> {
    if !answers("apt-get", &["--version"]) {
        return None;
    }
    if is_root() {
        return Some(program("sh"));
    }
    // Without a terminal the user cannot type the password that sudo may ask for.
    let asks_nothing = answers("sudo", &["-n", "true"]);
    let may_ask = std::io::IsTerminal::is_terminal(&std::io::stdin()) && answers("sudo", &["--version"]);
    (asks_nothing || may_ask).then(|| {
        let mut sudo = program("sudo");
        sudo.arg("sh");
        sudo
    })
}
