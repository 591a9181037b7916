//! What the tasks need beyond cargo: a C compiler for the bundled SQLite and, with make and a C++ compiler, for librdkafka; OpenSSL's headers
//! for librdkafka with TLS; rustfmt and clippy.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::phases::run;
use crate::workspace::program;

/// Makes sure that there are compilers for C and C++ and make, and returns a note that says which.
pub(crate) fn c_compiler() -> Result<String> {
    let name = |variable: &str, default: &str| std::env::var(variable).unwrap_or_else(|_| default.to_owned());
    let tool = |program: String, packages| Tool { program, asked: &["--version"], packages };
    let compiler = name("CC", "cc");
    let tools = [
        tool(compiler.clone(), &["gcc", "libc6-dev"]),
        tool(name("CXX", "c++"), &["g++"]),
        tool("make".to_owned(), &["make"]),
    ];
    Ok(install_missing(&tools)?.unwrap_or_else(|| format!("C compiler: {compiler}")))
}

/// Makes sure that librdkafka can be built with TLS, and returns a note.
pub(crate) fn openssl() -> Result<String> {
    let asked = &["--exists", "openssl"];
    let tool = Tool { program: "pkg-config".to_owned(), asked, packages: &["pkg-config", "libssl-dev"] };
    Ok(install_missing(&[tool])?.unwrap_or_else(|| "OpenSSL: there".to_owned()))
}

/// What is needed to build, and the packages that bring it.
struct Tool {
    program: String,
    asked: &'static [&'static str],
    packages: &'static [&'static str],
}

/// Installs what does not answer; a note, if that was something.
fn install_missing(tools: &[Tool]) -> Result<Option<String>> {
    let is_missing = |tool: &&Tool| !answers(&tool.program, tool.asked);
    let missing: Vec<_> = tools.iter().filter(is_missing).collect();
    let names = |of: &[&Tool]| {
        of.iter().map(|tool| format!("{} {}", tool.program, tool.asked.join(" "))).collect::<Vec<_>>().join(", ")
    };
    if missing.is_empty() {
        return Ok(None);
    }
    let packages: Vec<&str> = missing.iter().flat_map(|tool| tool.packages.iter().copied()).collect();
    println!("these do not answer: {}; the bundled SQLite and librdkafka are built with them", names(&missing));
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
            "the packages were installed, and still these do not answer: {}; are CC and CXX set to other names?",
            names(&still)
        );
    }
    Ok(Some(format!("{} installed", packages.join(" "))))
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
