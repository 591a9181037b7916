use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use tokio::process::Command;

/// How far the shift of a clock may be from what was asked for, while a program starts.
const TOLERANCE_MICROS: i64 = 20_000_000;

/// The time of this machine, in microseconds since 1970: what the databases and the services outside write down.
#[expect(clippy::disallowed_methods, reason = "what is written down is compared with what other processes wrote down")]
pub(crate) fn now_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Prints the time that this process sees, in microseconds since 1970.
pub fn print_time() {
    println!("{}", now_micros());
}

/// The environment in which a program sees another time of day. How long things take it sees as it is.
#[derive(Debug, Clone)]
pub(crate) struct ClockShift {
    library: PathBuf,
}

impl ClockShift {
    /// Finds the library, and proves with a program that it applies.
    pub(crate) async fn proven(program: &Path) -> anyhow::Result<Self> {
        let shift = Self { library: saga_servers::libfaketime()? };
        for minutes in [-10, 10] {
            let output = Command::new(program).arg("clock").envs(shift.environment(minutes)).output().await;
            let output = output.with_context(|| format!("cannot run {}", program.display()))?;
            let seen: i64 = String::from_utf8_lossy(&output.stdout).trim().parse().context("no time was said")?;
            let off = seen - now_micros() - minutes * 60_000_000;
            if off.abs() > TOLERANCE_MICROS {
                bail!("a clock that should be {minutes} minutes off is {} s from there", off / 1_000_000);
            }
        }
        Ok(shift)
    }

    pub(crate) fn environment(&self, minutes: i64) -> Vec<(&'static str, String)> {
        let seconds = minutes * 60;
        vec![
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME", format!("{seconds:+}s")),
            // Time-outs go by this clock, and the kernel knows only the true one.
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
        ]
    }

    /// Whether the library is loaded in that process.
    pub(crate) fn is_loaded(&self, process: u32) -> bool {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        maps.contains(&*self.library.to_string_lossy())
            || self.library.canonicalize().is_ok_and(|path| maps.contains(&*path.to_string_lossy()))
    }
}
