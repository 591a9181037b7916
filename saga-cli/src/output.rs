use std::fmt::Display;
use std::io::{self, Write};
use std::ops::ControlFlow;

use anyhow::Context as _;

use crate::plain::OneLine;

/// Prints a part of the output, and flushes it. A reader that has closed the pipe is no failure, as with `.. | head -1`.
///
/// # Errors
///
/// When `out` cannot be written for another reason, such as a full disk.
pub fn print(out: &mut dyn Write, text: impl Display) -> io::Result<()> {
    print_part(out, text).map(|_| ())
}

/// Prints the line that says what became of an action. If it cannot be printed, the error says it.
pub(crate) fn print_done(out: &mut dyn Write, line: impl Display) -> anyhow::Result<()> {
    print(out, format_args!("{line}\n")).with_context(|| format!("{line}, but this could not be printed"))
}

/// Prints one row of a list. It breaks once the reader has closed the pipe, so that the rest of the list need not be read.
pub(crate) fn print_row(out: &mut dyn Write, row: impl Display) -> io::Result<ControlFlow<()>> {
    print_part(out, format_args!("{row}\n"))
}

fn print_part(out: &mut dyn Write, text: impl Display) -> io::Result<ControlFlow<()>> {
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ControlFlow::Break(())),
        printed => printed.map(ControlFlow::Continue),
    }
}

/// Prints a line on standard error, with control characters escaped. It is printed for a person, so nothing fails if the
/// person has closed the pipe, as in `.. 2>&1 | head -1`.
pub fn print_remark(line: impl Display) {
    // What cannot be said cannot be reported either, and the exit code says how the program ended.
    _ = writeln!(io::stderr(), "{}", OneLine(line));
}

/// An error and its causes on one line, as a program's last words. A cause that an error before it has quoted is left out,
/// and control characters are escaped.
pub fn error_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(|cause| cause.to_string().replace('\n', " ")) {
        if !line.contains(cause.trim()) {
            let colon = if line.is_empty() { "" } else { ": " };
            line = line + colon + &cause;
        }
    }
    OneLine(line).to_string()
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn a_cause_that_was_quoted_is_left_out() {
        let error = anyhow!("the disk\nis full").context("cannot write: the disk\nis full").context("cannot save");
        assert_eq!(error_line(&error), "cannot save: cannot write: the disk is full");
        assert_eq!(error_line(&anyhow!("no room").context("cannot write")), "cannot write: no room");
    }

    #[test]
    fn an_error_does_not_control_the_terminal() {
        assert_eq!(error_line(&anyhow!("\u{1b}[2Jgone").context("cannot send")), "cannot send: \\u{1b}[2Jgone");
    }
}
