use std::{
    fs::File,
    io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
};

use tempfile::TempDir;

/// A disk of a few megabytes, which only programs see that are started with it. It is gone with this value.
#[derive(Debug)]
pub(crate) struct SmallDisk {
    /// It keeps the disk, until its standard input is closed.
    holder: Child,
    _stdin: Option<ChildStdin>,
    folder: TempDir,
    is_root: bool,
}

/// Mounts the disk in a view of the folders that no other process has, says so, and waits.
const HOLD: &str = "mount -t tmpfs -o size=32m tmpfs \"$0\" && cd \"$0\" && echo mounted && exec cat";

impl SmallDisk {
    /// # Panics
    ///
    /// Where this machine lets the tests mount nothing: neither as root, nor as a user in a namespace of their own.
    pub(crate) fn mount() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let id = Command::new("id").arg("-u").output().expect("id runs");
        let is_root = id.stdout.trim_ascii() == b"0";
        let mut command = Command::new("unshare");
        command.args(["--mount"]).args((!is_root).then_some("--map-root-user")).args(["sh", "-c", HOLD]);
        command.arg(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder = command.spawn().expect("unshare is installed, with util-linux");
        let mut said = String::new();
        BufReader::new(holder.stdout.take().expect("a pipe")).read_line(&mut said).expect("text");
        let mut problem = String::new();
        if said.is_empty() {
            holder.stderr.take().expect("a pipe").read_to_string(&mut problem).expect("text");
        }
        assert_eq!(
            said,
            "mounted\n",
            "a full disk cannot be tested here, since no small one can be mounted ({}); run this as root, or let users \
             make namespaces: sysctl kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0",
            problem.trim()
        );
        let stdin = holder.stdin.take();
        Self { holder, _stdin: stdin, folder, is_root }
    }

    /// The same program in a folder on the disk.
    pub(crate) fn command(&self, program: &Command) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--mount", "--target", &self.holder.id().to_string()]);
        command.args((!self.is_root).then_some(["--user", "--preserve-credentials"]).into_iter().flatten());
        let inside = "cd \"$0\" && exec \"$@\"";
        command.args(["--", "sh", "-c", inside]).arg(self.folder.path());
        command.arg(program.get_program()).args(program.get_args());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Leaves no room on it.
    pub(crate) fn fill(&self) {
        let mut file = File::create(self.path("filler")).expect("a file");
        // Down to the last page, which a larger piece would leave.
        let error = loop {
            if let Err(error) = file.write_all(&[b'x'; 4096]) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    }

    /// Makes room on it.
    pub(crate) fn make_room(&self) {
        std::fs::remove_file(self.path("filler")).expect("it is removed");
    }

    /// Copies a file from it.
    pub(crate) fn copy(&self, name: &str, to: &Path) {
        std::fs::copy(self.path(name), to).expect("it is copied");
    }

    fn path(&self, name: &str) -> PathBuf {
        format!("/proc/{}/cwd/{name}", self.holder.id()).into()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
