//! `cargo xtask services`: the servers of the test command, for a person.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use saga_servers::{RunningProcess, Services};
use serde_json::{Value, json};

use super::packages::server_packages;
use crate::interrupt::run_interruptibly;
use crate::phases::now;
use crate::workspace::root;

/// Says, in the workspace's root, which servers are up.
const STATE: &str = ".services.json";

/// What to do with the servers.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum ServicesTask {
    /// Installs what is missing, starts private servers on free ports, and prints their addresses.
    Up,
    /// Stops them and removes their folder.
    Down,
    /// Prints their addresses for a shell: eval "$(cargo xtask services env)".
    Env,
}

pub(crate) fn services(task: ServicesTask) -> Result<()> {
    let state = State::read(&root().join(STATE))?;
    match task {
        ServicesTask::Up => up(state),
        ServicesTask::Down => down(state),
        ServicesTask::Env => env(state),
    }
}

fn up(state: Option<State>) -> Result<()> {
    if let Some(state) = &state
        && state.processes.iter().all(RunningProcess::is_running)
    {
        println!("they are up already");
        state.show();
        return Ok(());
    }
    if let Some(state) = state {
        println!("some of them died; starting all anew");
        state.end(&root().join(STATE))?;
    }
    server_packages()?;
    let begun = now();
    let folder = tempfile::Builder::new().prefix("saga-services-").tempdir().context("cannot make a folder")?;
    // The user that PostgreSQL runs as passes through.
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    let services = run_interruptibly(async { Ok(Services::start_in(folder.path()).await?) })?;
    let addresses = services.addresses().variables().into_iter().map(|(name, url)| (name.to_owned(), url.to_owned()));
    let addresses = addresses.collect();
    let state = State { folder: folder.keep(), addresses, processes: services.leave_running() };
    let state = state.keep(&root().join(STATE))?;
    println!("up after {:.1} s in {}", begun.elapsed().as_secs_f64(), state.folder.display());
    state.show();
    Ok(())
}

fn down(state: Option<State>) -> Result<()> {
    let Some(state) = state else {
        println!("none are up");
        return Ok(());
    };
    state.end(&root().join(STATE))?;
    println!("they are down");
    Ok(())
}

fn env(state: Option<State>) -> Result<()> {
    let Some(state) = state else { bail!("no servers are up; start them with: cargo xtask services up") };
    if !state.processes.iter().all(RunningProcess::is_running) {
        bail!("a server died; start all anew with: cargo xtask services up");
    }
    for (name, url) in &state.addresses {
        println!("{}", export(name, url));
    }
    Ok(())
}

/// A line that a shell can evaluate, whatever is in the address.
fn export(name: &str, url: &str) -> String {
    format!("export {name}='{}'", url.replace('\'', r"'\''"))
}

/// What is up.
#[derive(Debug, PartialEq, Eq)]
struct State {
    folder: PathBuf,
    addresses: Vec<(String, String)>,
    processes: Vec<RunningProcess>,
}

impl State {
    fn read(path: &Path) -> Result<Option<Self>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let state = Self::from_json(&value);
        state
            .map(Some)
            .with_context(|| format!("{} says nothing; delete it, and end what is left by hand", path.display()))
    }

    /// Writes the file that says what is up. If that fails, it ends all: nobody could find it later.
    fn keep(self, path: &Path) -> Result<Self> {
        let Err(error) = self.write(path) else { return Ok(self) };
        let folder = self.folder.display().to_string();
        match self.end(path) {
            Ok(()) => Err(error.context("the servers were stopped again")),
            Err(left) => Err(error.context(format!("end by hand what runs in {folder}, since {left:#}"))),
        }
    }

    fn write(&self, path: &Path) -> Result<()> {
        fs::write(path, self.to_json().to_string()).with_context(|| format!("cannot write {}", path.display()))
    }

    fn from_json(value: &Value) -> Option<Self> {
        let addresses = value.get("addresses")?.as_array()?.iter();
        let processes = value.get("processes")?.as_array()?.iter();
        Some(Self {
            folder: value.get("folder")?.as_str()?.into(),
            addresses: addresses
                .map(|pair| Some((pair[0].as_str()?.into(), pair[1].as_str()?.into())))
                .collect::<Option<_>>()?,
            processes: processes.map(RunningProcess::from_json).collect::<Option<_>>()?,
        })
    }

    fn to_json(&self) -> Value {
        let processes: Vec<Value> = self.processes.iter().map(RunningProcess::to_json).collect();
        json!({ "folder": self.folder, "addresses": self.addresses, "processes": processes })
    }

    fn show(&self) {
        for (name, url) in &self.addresses {
            println!("  {name:<28} {url}");
        }
        println!("for a shell: eval \"$(cargo xtask services env)\"; to end them: cargo xtask services down");
    }

    /// Ends all, and removes the folder and the file that says so.
    fn end(self, path: &Path) -> Result<()> {
        run_interruptibly(async {
            for process in &self.processes {
                process.end().await?;
            }
            Ok(())
        })?;
        removed(&self.folder, fs::remove_dir_all(&self.folder))?;
        removed(path, fs::remove_file(path))
    }
}

/// What is not there is removed.
fn removed(path: &Path, result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use saga_servers::RunningProcess;
    use serde_json::json;

    use super::{State, export};

    #[test]
    fn a_shell_reads_the_address_as_it_is() {
        assert_eq!(export("A", "amqp://guest:it's@h:1/%2F"), r"export A='amqp://guest:it'\''s@h:1/%2F'");
    }

    #[test]
    fn servers_that_could_not_be_found_later_are_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        let process = json!({ "id": server.id(), "command_line_has": "sleep 1000", "on_end": "KILL" });
        let process = RunningProcess::from_json(&process).expect("a process");
        // A process that has just begun has no command line for a moment.
        while !process.is_running() {
            std::thread::yield_now();
        }
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let state = State { folder: data.clone(), addresses: Vec::new(), processes: vec![process.clone()] };
        let error = format!("{:#}", state.keep(&folder.path().join("none").join("state.json")).unwrap_err());
        assert!(error.contains("the servers were stopped again: cannot write "), "{error}");
        assert!(!process.is_running() && !data.exists());
        server.wait().unwrap();
    }

    #[test]
    fn the_state_is_read_as_it_was_written() {
        let process = RunningProcess::from_json(&json!({ "id": 7, "command_line_has": "/tmp/x", "on_end": "KILL" }))
            .expect("a process");
        let addresses = vec![("A".to_owned(), "b://c:1".to_owned())];
        let state = State { folder: "/tmp/x".into(), addresses, processes: vec![process] };
        assert_eq!(State::from_json(&state.to_json()), Some(state));
        assert_eq!(State::from_json(&json!({ "folder": "/tmp/x" })), None);
    }
}
