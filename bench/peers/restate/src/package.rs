//! The server's program, which npm brings into a folder beside what cargo builds.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

const VERSION: &str = "1.7.12";

/// The server's program, fetched if this is the first time.
pub(crate) fn server_program() -> Result<PathBuf> {
    let package = format!("@restatedev/restate-server-{}", platform()?);
    let folder = build_folder()?.join(format!("restate-server-{VERSION}"));
    let program = folder.join("node_modules").join(&package).join("bin/restate-server");
    if !program.is_file() {
        fetch(&format!("{package}@{VERSION}"), &folder)?;
    }
    ensure!(program.is_file(), "the package {package} has no program at {}", program.display());
    Ok(program)
}

/// The folder `target`, two above this program's.
fn build_folder() -> Result<PathBuf> {
    let own = env::current_exe().context("this program does not know where it is")?;
    let folder = own.ancestors().nth(2).with_context(|| format!("{} lies in no build folder", own.display()))?;
    Ok(folder.to_path_buf())
}

/// As the packages are called.
fn platform() -> Result<&'static str> {
    match (env::consts::OS, env::consts::ARCH) {
        ("linux", "x86_64") => Ok("linux-x64"),
        ("linux", "aarch64") => Ok("linux-arm64"),
        (system, processor) => bail!("there is no measured package of the Restate server for {system} on {processor}"),
    }
}

/// Installs `package` next to `folder` and moves it there, so that a broken download leaves nothing behind.
fn fetch(package: &str, folder: &Path) -> Result<()> {
    eprintln!("fetching {package}, some 200 MB, with npm");
    let partial = folder.with_extension("partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    fs::create_dir_all(&partial).with_context(|| format!("cannot make {}", partial.display()))?;
    let mut command = Command::new("npm");
    command.args(["install", "--no-audit", "--no-fund", "--no-save", "--ignore-scripts", "--prefix"]);
    command.arg(&partial).arg(package).stdin(Stdio::null()).stdout(Stdio::null());
    let status = command.status().context("cannot run npm, which brings the Restate server")?;
    ensure!(status.success(), "npm install {package} ended with {status}");
    fs::rename(&partial, folder).with_context(|| format!("cannot make {}", folder.display()))
}
