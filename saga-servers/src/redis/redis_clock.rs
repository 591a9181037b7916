//! The clock of a Redis server, which a test may set.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;
use crate::folder::{Folder, unprivileged};
use crate::programs::{libfaketime, program};

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
        // The library is loaded into the server only: what it shares would belong to root if the program loaded it that
        // changes the user.
        let mut call = unprivileged(&program("env", CLOCK, "coreutils")?)?;
        // Redis' own allocator asks for the time before the library is ready, and would wait for ever: that of libc does not.
        call.arg(format!("LD_PRELOAD={}:libc.so.6", self.library.display()));
        call.arg(format!("FAKETIME_TIMESTAMP_FILE={}", self.shift.display()));
        // By default, what the library shares is named after the number of the process, and an earlier process of that number may
        // have left it to another user.
        let name = self.shift.parent().and_then(Path::file_name).unwrap_or_default().display();
        call.arg(format!("FAKETIME_SHARED=/{name}-semaphore /{name}-memory"));
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
