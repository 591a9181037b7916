use std::fmt::Display;
use std::io::{self, Write};

/// Prints a part of the output, and flushes it. A reader that has closed the pipe is no failure, as with `.. | head -1`.
///
/// # Errors
///
/// When `out` cannot be written for another reason, such as a full disk.
pub fn print(out: &mut dyn Write, text: impl Display) -> io::Result<()> {
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

/// Prints a line on standard error. It is printed for a person, so nothing fails if the person has closed the pipe, as in `.. 2>&1 | head -1`.
pub fn print_remark(line: impl Display) {
    // What cannot be said cannot be reported either, and the exit code says how the program ended.
    _ = writeln!(io::stderr(), "{line}");
}

/// An error and its causes on one line, as a program's last words. A cause that an error before it has quoted is left out.
pub fn error_line(error: &anyhow::Error) -> String {
    let mut line = String::new();
    for cause in error.chain().map(|cause| cause.to_string().replace('\n', " ")) {
        if !line.contains(cause.trim()) {
            let colon = if line.is_empty() { "" } else { ": " };
            line = line + colon + &cause;
        }
    }
    line
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
}
