//! What the tasks need beyond cargo: a C compiler for the bundled SQLite, rustfmt and clippy.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::phases::run;
use crate::workspace::program;

/// Makes sure that there is a C compiler, and returns a note that says which.
pub(crate) fn c_compiler() -> Result<String> {
    let name = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    if answers(&name, &["--version"]) {
        println!("C compiler: {name}");
        return Ok(format!("C compiler: {name}"));
    }
    println!("no C compiler: `{name} --version` does not run, and the bundled SQLite is built with one");
    if !answers("apt-get", &["--version"]) || !is_root() {
        bail!(
            "install a C compiler and run this again, on Debian or Ubuntu with: sudo apt-get install -y gcc libc6-dev"
        );
    }
    println!("installing gcc with apt-get");
    run(apt_get().arg("update"))?;
    run(apt_get().args(["install", "-y", "--no-install-recommends", "gcc", "libc6-dev"]))?;
    if !answers(&name, &["--version"]) {
        bail!("gcc was installed, and still `{name} --version` does not run; is the variable CC set to another name?");
    }
    Ok("C compiler: gcc, installed".to_owned())
}

/// Makes sure that `cargo fmt` and `cargo clippy` are there.
pub(crate) fn components() -> Result<String> {
    for (subcommand, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if answers("cargo", &[subcommand, "--version"]) {
            continue;
        }
        println!("`cargo {subcommand}` is missing");
        if !answers("rustup", &["--version"]) {
            bail!(
                "install the component {component} of your Rust toolchain, with rustup: rustup component add {component}"
            );
        }
        run(program("rustup").args(["component", "add", component]))?;
    }
    println!("rustfmt and clippy are there");
    Ok(String::new())
}

fn apt_get() -> Command {
    let mut command = program("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Whether `name` can be run, and succeeds.
pub(super) fn answers(name: &str, arguments: &[&str]) -> bool {
    let silent =
        program(name).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    silent.is_ok_and(|status| status.success())
}

/// Whether `name` can be run, and prints `answer`.
pub(super) fn answers_with(name: &str, arguments: &[&str], answer: &str) -> bool {
    let output = program(name).args(arguments).stdin(Stdio::null()).output();
    output.is_ok_and(|output| output.status.success() && output.stdout.trim_ascii() == answer.as_bytes())
}

pub(super) fn is_root() -> bool {
    program("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
