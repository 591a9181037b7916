use std::{
    io::{IsTerminal, stderr},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tokio::time::Instant;

use crate::print::{say, show_bar};

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
        let bar = stderr().is_terminal().then(|| bar(total, ProgressDrawTarget::stderr()));
        if let Some(bar) = &bar {
            show_bar(bar);
        }
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
            let (ended, total, rate) = (self.ended, self.total, per_second(self.ended, self.began.elapsed()));
            say(format_args!(
                "{ended} of {total} orders, {rate:.0}/s: {completed} completed, {compensated} compensated"
            ));
        }
    }

    /// The orders are gone through once more.
    pub(super) fn begin_again(&mut self) {
        self.ended = 0;
        if let Some(bar) = &self.bar {
            bar.set_position(0);
        }
    }

    pub(super) fn finish(self) -> Duration {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.began.elapsed()
    }
}

fn bar(total: usize, target: ProgressDrawTarget) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total as u64), target);
    // What stands behind a colon in a template is a colour, so the rate has a key of its own.
    let look = ProgressStyle::with_template("{bar:40} {pos}/{len} orders  {rate}  {msg}");
    if let Ok(look) = look {
        bar.set_style(look.with_key("rate", |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            // Text takes everything.
            let _ = write!(text, "{:.0}/s", state.per_sec());
        }));
    }
    bar
}

/// How many that is by the second.
#[expect(clippy::cast_precision_loss, reason = "a rate is read by its first digits")]
pub(super) fn per_second(count: usize, time: Duration) -> f64 {
    // A run of no time at all has no rate.
    count as f64 / time.as_secs_f64().max(0.001)
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use indicatif::TermLike;

    use super::*;

    /// A terminal that keeps what is written on it.
    #[derive(Debug, Clone, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            200
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().expect("no test panicked").push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_bar_shows_a_whole_rate_and_no_colour() {
        let screen = Screen::default();
        let bar = bar(160, ProgressDrawTarget::term_like(Box::new(screen.clone())));
        for _ in 0..160 {
            bar.inc(1);
        }
        bar.force_draw();
        let shown = screen.0.lock().expect("no test panicked").clone();
        let last = shown.rsplit("orders").next().unwrap_or_default().trim();
        let rate = last.strip_suffix("/s").unwrap_or_else(|| panic!("no rate in {shown:?}"));
        assert!(!rate.is_empty() && rate.bytes().all(|byte| byte.is_ascii_digit()), "{last:?}");
        assert!(!shown.contains('\u{1b}'), "{shown:?}");
    }
}
