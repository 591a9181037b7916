//! What the tasks need beyond cargo: a C compiler for the bundled SQLite and, with make and a C++ compiler, for librdkafka; rustfmt
//! and clippy.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::phases::run;
use crate::workspace::program;

/// Makes sure that there are compilers for C and C++ and make, and returns a note that says which.
pub(crate) fn c_compiler() -> Result<String> {
    let name = |variable: &str, default: &str| std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    let programs = [
        (name("CC", "cc"), &["gcc", "libc6-dev"][..]),
        (name("CXX", "c++"), &["g++"][..]),
        ("make".to_owned(), &["make"][..]),
    ];
    let is_missing = |(name, _): &&(String, &[&str])| !answers(name, &["--version"]);
    let missing: Vec<_> = programs.iter().filter(is_missing).collect();
    let names = |of: &[&(String, &[&str])]| of.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    if missing.is_empty() {
        println!("C compiler: {}", programs[0].0);
        return Ok(format!("C compiler: {}", programs[0].0));
    }
    let packages: Vec<&str> = missing.iter().flat_map(|(_, packages)| packages.iter().copied()).collect();
    println!("missing: {}; the bundled SQLite and librdkafka are built with them", names(&missing));
    if !answers("apt-get", &["--version"]) || !is_root() {
        bail!(
            "install them and run this again, on Debian or Ubuntu with: sudo apt-get install -y {}",
            packages.join(" ")
        );
    }
    println!("installing {} with apt-get", packages.join(" "));
    run(apt_get().arg("update"))?;
    run(apt_get().args(["install", "-y", "--no-install-recommends"]).args(&packages))?;
    let still: Vec<_> = missing.into_iter().filter(is_missing).collect();
    if !still.is_empty() {
        bail!(
            "the packages were installed, and still these do not run: {}; are CC and CXX set to other names?",
            names(&still)
        );
    }
    Ok(format!("C compiler: {} installed", packages.join(" ")))
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
