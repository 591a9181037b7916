//! How much processor time was spent, by this process and by a server.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// The kernel counts processor time in hundredths of a second, on every machine that this runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// The processor time until now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cpu {
    /// Of this process, and of those it began that have ended.
    pub(crate) client: Duration,
    /// Of the PostgreSQL server: of its first process, of those it began, and of those among them that have ended.
    pub(crate) server: Duration,
}

impl Cpu {
    /// Reads both. The server is the one with this data folder.
    pub(crate) fn read(data: &Path) -> Result<Self> {
        let file = data.join("postmaster.pid");
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        let first = text.lines().next().unwrap_or_default();
        let mut server = Stat::of(first)?.with_ended_children();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            // One that ended meanwhile is counted with its parent the next time.
            let Ok(stat) = Stat::of(&name.to_string_lossy()) else { continue };
            if stat.parent == first {
                server += stat.own();
            }
        }
        Ok(Self { client: Stat::of("self")?.with_ended_children(), server })
    }

    /// What was spent since `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        Self { client: self.client.saturating_sub(before.client), server: self.server.saturating_sub(before.server) }
    }
}

/// The processor time of this process until now.
pub(crate) fn of_this_process() -> Result<Duration> {
    Ok(Stat::of("self")?.own())
}

/// What the kernel tells of a process.
struct Stat {
    parent: String,
    /// In user mode, in the kernel, and the same of the children that ended.
    ticks: [f64; 4],
}

impl Stat {
    fn of(process: &str) -> Result<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
        // The name in brackets may hold anything.
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |field: usize| fields.get(field).and_then(|ticks| ticks.parse().ok()).unwrap_or(0.0);
        let parent = fields.get(1).copied().unwrap_or_default().to_owned();
        Ok(Self { parent, ticks: [ticks(11), ticks(12), ticks(13), ticks(14)] })
    }

    fn own(&self) -> Duration {
        Duration::from_secs_f64((self.ticks[0] + self.ticks[1]) / TICKS_PER_SECOND)
    }

    fn with_ended_children(&self) -> Duration {
        Duration::from_secs_f64(self.ticks.iter().sum::<f64>() / TICKS_PER_SECOND)
    }
}
