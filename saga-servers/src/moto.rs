//! A private server that stands for Amazon SQS and SNS: moto, a mock in Python.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::error::Error;
use crate::folder::Folder;
use crate::ports::{STARTS_MAX, free_port, says_port_is_taken};
use crate::process::ProcessGroup;
use crate::programs::python_with_venv;
use crate::signal::Signal;
use crate::wait::LOOK_EVERY;

const SERVER: &str = "moto";
const VERSION: &str = "5.2.5";
const LOG: &str = "moto.log";
/// Not `moto.py`: the program imports a module of that name.
const PROGRAM: &str = "serve.py";
const START_PATIENCE: Duration = Duration::from_mins(1);

/// A mock of Amazon SQS and SNS on a free port, empty, which accepts all credentials. It keeps everything in its memory.
///
/// It obeys groups, their order, visibility, redrive policies and the limits of batches and sizes. It does not refuse characters that
/// SQS does not carry, more than ten attributes, and handles that have expired.
#[derive(Debug)]
pub struct MotoServer {
    process: Option<ProcessGroup>,
    port: u16,
    folder: Folder,
}

impl MotoServer {
    /// Starts a server and waits until it answers. Where moto is not installed, it is first installed with pip into a folder of its
    /// own, `~/.cache/saga-servers/moto-VERSION`.
    ///
    /// # Errors
    /// There is no Python, moto cannot be installed, or it does not start; the error has the end of its log.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start() -> Result<Self, Error> {
        let python = tokio::task::spawn_blocking(installed).await;
        let python = python.map_err(|error| Error::system("install moto")(std::io::Error::other(error)))??;
        let folder = Folder::temporary(SERVER)?;
        let program = folder.write(PROGRAM, include_str!("moto.py"))?;
        let mut server = Self { process: None, port: 0, folder };
        for _ in 1..STARTS_MAX {
            server.port = free_port()?;
            if server.run(&python, &program).await? {
                return Ok(server);
            }
        }
        Err(server.not_started("each port that was tried was taken meanwhile"))
    }

    /// The address, such as `http://127.0.0.1:5000`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// How many requests with messages came so far, by their names: `send_message_batch`, `receive_message`, `delete_message_batch`,
    /// `change_message_visibility_batch` and `publish_batch`.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn requests(&self) -> Result<BTreeMap<String, usize>, Error> {
        let mut requests = BTreeMap::new();
        for name in self.folder.whole_log(LOG)?.lines().filter_map(|line| line.strip_prefix("request: ")) {
            *requests.entry(name.to_owned()).or_default() += 1;
        }
        Ok(requests)
    }

    /// Ends the server; all that it had is lost.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the signal was sent all the same.
    pub async fn kill(&mut self) -> Result<(), Error> {
        match self.process.take() {
            Some(mut process) => process.kill().await,
            None => Ok(()),
        }
    }

    /// Whether it is ready; false if its port was taken.
    async fn run(&mut self, python: &Path, program: &Path) -> Result<bool, Error> {
        let mut call = Command::new(python);
        call.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        call.arg("-u").arg(program).args(["-H", "127.0.0.1", "-p", &self.port.to_string()]);
        self.process = Some(self.folder.run(call, LOG, Signal::Kill)?);
        let port = self.port;
        // No closure: the future of one could not be sent to another thread from everywhere.
        let looking = async {
            loop {
                let process = self.process.as_mut().map(ProcessGroup::ended).transpose()?;
                if process.flatten().is_some() {
                    return Ok::<_, Error>(false);
                }
                if answers(port).await {
                    return Ok(true);
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        match tokio::time::timeout(START_PATIENCE, looking).await.ok().transpose()? {
            Some(true) => Ok(true),
            Some(false) if says_port_is_taken(&self.folder.whole_log(LOG)?) => Ok(false),
            Some(false) => Err(self.not_started("it ended")),
            None => Err(self.not_started("it did not answer within a minute")),
        }
    }

    fn not_started(&self, reason: &str) -> Error {
        Error::Start { server: SERVER, reason: reason.to_owned(), log: self.folder.log_end(LOG) }
    }
}

/// Whether a server answers there that is moto.
async fn answers(port: u16) -> bool {
    let asking = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(b"GET /moto-api/data.json HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").await?;
        let mut answer = vec![0; 64];
        let length = stream.read(&mut answer).await?;
        answer.truncate(length);
        Ok::<_, std::io::Error>(answer)
    };
    asking.await.is_ok_and(|answer| String::from_utf8_lossy(&answer).contains(" 200 "))
}

/// The Python of the environment with moto, which is made if it is not there. It is made beside and then renamed, so that what has its
/// name is whole. Of several processes, one makes it and the others wait.
fn installed() -> Result<PathBuf, Error> {
    let parent = cache()?;
    let environment = parent.join(format!("moto-{VERSION}"));
    let python = environment.join("bin/python");
    if python.exists() {
        return Ok(python);
    }
    std::fs::create_dir_all(&parent).map_err(Error::system(format!("make the folder {}", parent.display())))?;
    let lock = std::fs::File::create(parent.join("moto.lock")).map_err(Error::system("make a file to lock"))?;
    lock.lock().map_err(Error::system("lock a file"))?;
    if python.exists() {
        return Ok(python);
    }
    let new = tempfile::Builder::new().prefix("moto-new-").tempdir_in(&parent);
    let new = new.map_err(Error::system("make a temporary folder"))?;
    let venv = new.path().join("venv");
    call(Command::new(python_with_venv()?).args(["-m", "venv"]).arg(&venv), "make a virtual environment of Python")?;
    let package = format!("moto[server]=={VERSION}");
    let mut pip = Command::new(venv.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &package]);
    call(&mut pip, "install moto from PyPI: is there a network, or a mirror in PIP_INDEX_URL?")?;
    std::fs::rename(&venv, &environment).map_err(Error::system(format!("make {}", environment.display())))?;
    Ok(python)
}

/// `saga-servers` in the user's folder of caches.
fn cache() -> Result<PathBuf, Error> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")));
    let caches = caches.ok_or_else(|| Error::Refused {
        asked: "the folder of caches".to_owned(),
        answer: "neither XDG_CACHE_HOME nor HOME is set".to_owned(),
    })?;
    Ok(caches.join("saga-servers"))
}

/// Runs a program to its end; a failure has the end of what it printed.
fn call(command: &mut Command, doing: &str) -> Result<(), Error> {
    let output = command.stdin(Stdio::null()).output().map_err(Error::system(doing))?;
    if output.status.success() {
        return Ok(());
    }
    let printed = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    Err(Error::Refused { asked: doing.to_owned(), answer: lines[lines.len().saturating_sub(10)..].join("\n") })
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn it_answers_until_it_is_killed() {
        let mut server = MotoServer::start().await.expect("it starts");
        let address = server.url().strip_prefix("http://").expect("an address").to_owned();
        assert!(TcpStream::connect(&address).is_ok(), "it listens at its address");
        server.kill().await.expect("it can be killed");
        assert!(TcpStream::connect(&address).is_err(), "a killed server answers");
    }

    #[test]
    fn what_could_not_be_installed_is_said() {
        let error =
            call(Command::new("sh").args(["-c", "echo no route to host >&2; exit 1"]), "install moto from PyPI");
        let said = error.expect_err("it failed").to_string();
        assert_eq!(said, "install moto from PyPI failed: no route to host");
    }
}
