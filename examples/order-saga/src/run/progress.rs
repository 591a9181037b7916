use std::{
    io::{IsTerminal, stderr},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;

/// Says on standard error how far the run is: a bar on a terminal, else a plain line now and then.
#[derive(Debug)]
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    total: usize,
    ended: usize,
    began: Instant,
    said: Instant,
}

const LINE_INTERVAL: Duration = Duration::from_secs(1);

impl Progress {
    pub(super) fn of(total: usize) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(total as u64);
            let look = "{bar:40} {pos}/{len} orders  {per_sec:.0}  {msg}";
            if let Ok(style) = ProgressStyle::with_template(look) {
                bar.set_style(style);
            }
            bar
        });
        let now = Instant::now();
        Self { bar, total, ended: 0, began: now, said: now }
    }

    /// An order has ended.
    pub(super) fn ended(&mut self, completed: usize, compensated: usize) {
        self.ended += 1;
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{completed} completed, {compensated} compensated"));
            bar.inc(1);
        } else if self.said.elapsed() >= LINE_INTERVAL {
            self.said = Instant::now();
            let rate = per_second(self.ended, self.began.elapsed());
            let total = self.total;
            eprintln!(
                "{} of {total} orders, {rate:.0}/s: {completed} completed, {compensated} compensated",
                self.ended
            );
        }
    }

    /// Says something beside the bar.
    pub(super) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    pub(super) fn finish(self) -> Duration {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.began.elapsed()
    }
}

/// How many that is by the second.
#[expect(clippy::cast_precision_loss, reason = "a rate is read by its first digits")]
pub(super) fn per_second(count: usize, time: Duration) -> f64 {
    // A run of no time at all has no rate.
    count as f64 / time.as_secs_f64().max(0.001)
}
