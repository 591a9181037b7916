//! Standard output and standard error, neither of which ends the program when its reader is gone.

use std::{
    fmt::Display,
    io::{self, Write},
    sync::{Mutex, PoisonError},
};

use indicatif::{ProgressBar, WeakProgressBar};

/// The progress bar that stands on standard error, if there is one.
static BAR: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Prints on standard output. A reader that has seen enough and has gone away is no failure.
pub fn print(text: impl Display) -> io::Result<()> {
    saga_cli::print(&mut io::stdout(), text)
}

/// Says a line on standard error, above the progress bar if there is one. A standard error that is closed or full is
/// no reason to stop working, so it cannot fail.
pub fn say(line: impl Display) {
    above_bar(format!("{line}\n").as_bytes());
}

/// Lines that are said from now on stand above this bar.
pub(crate) fn show_bar(bar: &ProgressBar) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.downgrade());
}

/// Standard error as a writer that cannot fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        above_bar(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn above_bar(text: &[u8]) {
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(WeakProgressBar::upgrade);
    // A standard error that is closed is no reason to stop working.
    let write = || drop(io::stderr().lock().write_all(text));
    match bar.filter(|bar| !bar.is_finished()) {
        Some(bar) => bar.suspend(write),
        None => write(),
    }
}
