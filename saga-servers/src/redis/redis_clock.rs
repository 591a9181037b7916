//! The clock of a Redis server, which a test may set.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::folder::{Folder, unprivileged};
use crate::programs::{libfaketime, program};

/// Where the C library keeps semaphores and memory that have names.
const SHARED_MEMORY: &str = "/dev/shm";
/// For errors.
const CLOCK: &str = "the clock of Redis";

/// The clock of a server: a file says how far it is from that of the machine.
#[derive(Debug)]
pub(crate) struct RedisClock {
    library: PathBuf,
    shift: PathBuf,
}

impl RedisClock {
    pub(crate) fn in_folder(folder: &Folder) -> Result<Self, Error> {
        Ok(Self { library: libfaketime()?, shift: folder.write("clock", "+0")? })
    }

    /// The call of a server that sees this clock. How long things take it sees as it is.
    pub(crate) fn call(&self, server: &Path) -> Result<Command, Error> {
        remove_left_behind();
        // The library is loaded into the server only: what it shares would belong to root if the program loaded it that
        // changes the user.
        let mut call = unprivileged(&program("env", CLOCK, "coreutils")?)?;
        // Redis' own allocator asks for the time before the library is ready, and would wait for ever: that of libc does not.
        call.arg(format!("LD_PRELOAD={}:libc.so.6", self.library.display()));
        call.arg(format!("FAKETIME_TIMESTAMP_FILE={}", self.shift.display()));
        call.args(["FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_NO_CACHE=1"]).arg(server);
        Ok(call)
    }

    /// The server reads the file each time that it looks at its clock, so it is replaced whole.
    pub(crate) fn set(&self, seconds: i64) -> Result<(), Error> {
        let next = self.shift.with_extension("next");
        let written = std::fs::write(&next, format!("{seconds:+}"));
        written.and_then(|()| std::fs::rename(&next, &self.shift)).map_err(Error::system(format!("set {CLOCK}")))
    }
}

/// Removes what the library shared in processes that are gone. It names these files after the number of the process, and a process that is
/// killed leaves them behind: then no later process of that number could start.
fn remove_left_behind() {
    let Ok(files) = std::fs::read_dir(SHARED_MEMORY) else { return };
    for file in files.flatten() {
        let name = file.file_name();
        let name = name.to_string_lossy();
        let process = ["faketime_shm_", "sem.faketime_sem_"].iter().find_map(|prefix| name.strip_prefix(prefix));
        if process.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            // One that belongs to another user stays.
            _ = std::fs::remove_file(file.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SHARED_MEMORY, remove_left_behind};

    #[test]
    fn what_a_dead_process_left_is_removed_and_what_a_live_one_has_stays() {
        // Numbers of processes end at 4,194,304.
        let dead = format!("{SHARED_MEMORY}/faketime_shm_{}", 5_000_000 + std::process::id());
        let live = format!("{SHARED_MEMORY}/sem.faketime_sem_{}", std::process::id());
        for path in [&dead, &live] {
            std::fs::write(path, "").unwrap();
        }
        remove_left_behind();
        let are_there = [&dead, &live].map(|path| std::path::Path::new(path).exists());
        std::fs::remove_file(live).unwrap();
        assert_eq!(are_there, [false, true]);
    }
}
