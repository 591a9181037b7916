//! Signals to processes.

/// A signal, by the name that `kill -s` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// Asks to end.
    Term,
    /// What Ctrl-C sends.
    Interrupt,
    /// PostgreSQL's immediate shutdown.
    Quit,
    /// Ends at once, without a chance to say or write anything.
    Kill,
    /// Stops, until [`Signal::Continue`].
    Stop,
    /// Goes on after [`Signal::Stop`].
    Continue,
}

impl Signal {
    /// The name without `SIG`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Term => "TERM",
            Self::Interrupt => "INT",
            Self::Quit => "QUIT",
            Self::Kill => "KILL",
            Self::Stop => "STOP",
            Self::Continue => "CONT",
        }
    }

    /// The signal of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Self::Term, Self::Interrupt, Self::Quit, Self::Kill, Self::Stop, Self::Continue];
        all.into_iter().find(|signal| signal.name() == name)
    }
}
