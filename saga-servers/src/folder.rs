//! The folder of one server, and the user that the server runs as.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;

use crate::error::Error;
use crate::process::ProcessGroup;
use crate::signal::Signal;
use crate::watchdog::Watchdog;

/// PostgreSQL and PgBouncer refuse to run as root; their packages bring this user.
const UNPRIVILEGED_USER: &str = "postgres";

/// A folder that is removed with its value and watched by a watchdog, or one that another owner keeps.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Dropped after the folder: until then the watchdog would remove it.
    owned: Option<(TempDir, Arc<Watchdog>)>,
}

impl Folder {
    /// A new temporary folder, which is removed with this value, or with this process.
    pub(crate) fn temporary(server: &str) -> Result<Self, Error> {
        let prefix = format!("saga-{server}-");
        let temporary =
            tempfile::Builder::new().prefix(&prefix).tempdir().map_err(Error::system("make a temporary folder"))?;
        let path = temporary.path().to_path_buf();
        let watchdog = Arc::new(Watchdog::start(Some(&path))?);
        let folder = Self { path, owned: Some((temporary, watchdog)) };
        folder.let_others_pass()?;
        Ok(folder)
    }

    /// A new folder `server` in `parent`; it stays, and so does what runs in it.
    pub(crate) fn kept(parent: &Path, server: &str) -> Result<Self, Error> {
        let path = parent.join(server);
        fs::create_dir(&path).map_err(Error::system(format!("make the folder {}", path.display())))?;
        let folder = Self { path, owned: None };
        folder.let_others_pass()?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Runs a server that logs to the file `log`, from its beginning; what it logged before it was restarted is kept. It
    /// ends with this process, by `on_end`, unless the folder is kept.
    pub(crate) fn run(&self, mut command: Command, log: &str, on_end: Signal) -> Result<ProcessGroup, Error> {
        let log = self.path.join(log);
        let shown = || format!("write {}", log.display());
        if log.exists() {
            let before = with_optional_output(&log).map_err(Error::system(shown()))?;
            fs::write(earlier(&log), before).map_err(Error::system(shown()))?;
        }
        let output = fs::File::create(&log).map_err(Error::system(shown()))?;
        let errors = output.try_clone().map_err(Error::system(shown()))?;
        command.current_dir(&self.path).stdin(Stdio::null()).stdout(output).stderr(errors);
        let watchdog = self.owned.as_ref().map(|(_, watchdog)| Arc::clone(watchdog));
        ProcessGroup::spawn_watched(command, on_end, watchdog)
    }

    /// Writes a file that anybody may read.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        fs::write(&path, text).map_err(Error::system(format!("write {}", path.display())))?;
        Ok(path)
    }

    /// Writes a file that only the server's user may read: it may have a password in it.
    pub(crate) fn write_for_server(&self, name: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.write(name, "")?;
        let shown = || format!("give {} away", path.display());
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(Error::system(shown()))?;
        if let Some((user, group)) = unprivileged_user()? {
            chown(&path, Some(user), Some(group)).map_err(Error::system(shown()))?;
        }
        self.write(name, text)
    }

    /// Makes a folder in this one that the server's user owns.
    pub(crate) fn make_for_server(&self, name: &str) -> Result<PathBuf, Error> {
        let path = self.path.join(name);
        fs::create_dir(&path).map_err(Error::system(format!("make the folder {}", path.display())))?;
        if let Some((user, group)) = unprivileged_user()? {
            chown(&path, Some(user), Some(group)).map_err(Error::system(format!("give {} away", path.display())))?;
        }
        Ok(path)
    }

    /// The end of the log `name`, or nothing if there is none.
    pub(crate) fn log_end(&self, name: &str) -> String {
        const LINES: usize = 15;
        let text = fs::read(self.path.join(name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// All that the server logged to the file `log`, also before it was restarted.
    pub(crate) fn whole_log(&self, log: &str) -> Result<String, Error> {
        let log = self.path.join(log);
        let whole = with_optional_output(&log).map_err(Error::system(format!("read {}", log.display())))?;
        Ok(String::from_utf8_lossy(&whole).into_owned())
    }

    /// The server's user may pass through, and see nothing else.
    fn let_others_pass(&self) -> Result<(), Error> {
        let searchable = Permissions::from_mode(0o711);
        fs::set_permissions(&self.path, searchable)
            .map_err(Error::system(format!("open the folder {}", self.path.display())))
    }
}

/// Where the log of a server is kept that was restarted.
fn earlier(log: &Path) -> PathBuf {
    log.with_extension("earlier.log")
}

fn with_optional_output(log: &Path) -> std::io::Result<Vec<u8>> {
    let mut whole = match fs::read(earlier(log)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        read => read?,
    };
    whole.extend(fs::read(log)?);
    Ok(whole)
}

/// A call of `program`: as the unprivileged user if this process is root, and without this process's environment.
pub(crate) fn unprivileged(program: &Path) -> Result<Command, Error> {
    let mut command = match unprivileged_user()? {
        Some((user, group)) => {
            let mut command = Command::new("setpriv");
            command.arg(format!("--reuid={user}")).arg(format!("--regid={group}")).arg("--clear-groups").arg(program);
            command
        }
        None => Command::new(program),
    };
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).env("LC_ALL", "C.UTF-8");
    Ok(command)
}

/// The user and group that servers run as, if this process is root.
fn unprivileged_user() -> Result<Option<(u32, u32)>, Error> {
    if !is_root() {
        return Ok(None);
    }
    Ok(Some((id("-u", UNPRIVILEGED_USER)?, id("-g", UNPRIVILEGED_USER)?)))
}

/// What a process creates belongs to it; `/proc/self` says the same without a call of a program.
fn is_root() -> bool {
    fs::metadata("/proc/self").map_or_else(|_| id("-u", "").is_ok_and(|user| user == 0), |own| own.uid() == 0)
}

fn id(which: &str, user: &str) -> Result<u32, Error> {
    let mut command = Command::new("id");
    command.arg(which);
    if !user.is_empty() {
        command.arg(user);
    }
    let output = command.output().map_err(Error::system("run `id`"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| Error::Refused {
        asked: format!("`id {which} {user}`"),
        answer: "servers do not run as root, and there is no such user; the package postgresql brings it".to_owned(),
    })
}
