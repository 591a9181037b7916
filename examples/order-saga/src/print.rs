use std::{
    fmt::Display,
    io::{self, Write},
};

/// Prints on standard output. Whoever reads it may have seen enough and gone away, which is no failure.
pub(crate) fn print(text: impl Display) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}
