//! The measurement of one run.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cpu::spent_by;

/// Measures from its making until [`Meter::stop`].
#[derive(Debug)]
pub struct Meter {
    processes: Vec<String>,
    began: Instant,
    cpu_before: Duration,
}

/// What a run took.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
}

impl Meter {
    /// Starts to measure this process, when all is set up and just before the first saga is started.
    ///
    /// # Errors
    /// The system does not tell the processor time.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// Starts to measure, together with the processes that the peer has beside this one and the database.
    ///
    /// # Errors
    /// The system does not tell the processor time of one of them.
    pub fn start_with(servers: &[u32]) -> Result<Self> {
        let mut processes = vec!["self".to_owned()];
        processes.extend(servers.iter().map(u32::to_string));
        let cpu_before = spent_by_all(&processes)?;
        #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
        let began = Instant::now();
        Ok(Self { processes, began, cpu_before })
    }

    /// What was spent, when the last saga has durably ended.
    ///
    /// # Errors
    /// A measured process has ended.
    pub fn stop(self) -> Result<Measured> {
        let elapsed = self.began.elapsed();
        let cpu = spent_by_all(&self.processes)?.saturating_sub(self.cpu_before);
        Ok(Measured { elapsed, cpu })
    }
}

fn spent_by_all(processes: &[String]) -> Result<Duration> {
    processes.iter().map(|process| spent_by(process)).sum()
}
