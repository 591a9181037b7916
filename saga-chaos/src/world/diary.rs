use std::io::Write as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use saga_testkit::checker::Standing;

use super::now_micros;

/// What this program did to others, or saw of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Happened {
    /// A process was given a wave of orders to start.
    Started { call: u64, wave: u64 },
    /// That process said that each of them has ended.
    Answered { call: u64 },
    /// A watcher read how an order ended.
    Seen { order: String, standing: Standing },
    /// A replica, or a server, was killed.
    Killed,
    /// A replica was stopped.
    Stopped,
    /// It went on.
    Continued,
    /// A replica does not reach its database.
    CutOff,
    /// It reaches it again.
    Reconnected,
    /// The operator saw that a dead letter is open, and which order it names.
    LetterOpened { letter: i64, order: String },
    /// The operator is about to decide about it.
    LetterDecided { letter: i64 },
    /// From here on nothing is disturbed any more.
    FaultsEnded,
}

impl Happened {
    /// The start that it answers.
    pub(crate) fn answered(&self) -> Option<u64> {
        if let Self::Answered { call } = self { Some(*call) } else { None }
    }
}

/// One line of the diary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiaryLine {
    pub(crate) at_micros: i64,
    /// Which process it is about; 0 is none of the replicas.
    pub(crate) process: u16,
    pub(crate) what: Happened,
}

/// What was done and seen, and a log of it for people.
#[derive(Debug)]
pub(crate) struct Diary {
    begun_micros: i64,
    pages: Mutex<Pages>,
    is_shown: bool,
}

#[derive(Debug)]
struct Pages {
    lines: Vec<DiaryLine>,
    calls: u64,
    log: std::fs::File,
}

impl Diary {
    /// A diary whose log is a file in that folder; `is_shown` prints it as well.
    pub(crate) fn open(folder: &Path, is_shown: bool) -> anyhow::Result<Self> {
        let path = folder.join("chaos.log");
        let log = std::fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let pages = Mutex::new(Pages { lines: Vec::new(), calls: 0, log });
        Ok(Self { begun_micros: now_micros(), pages, is_shown })
    }

    pub(crate) fn enter(&self, process: u16, what: Happened) {
        self.pages().lines.push(DiaryLine { at_micros: now_micros(), process, what });
    }

    /// The number of a start, which no other one has.
    pub(crate) fn next_call(&self) -> u64 {
        let mut pages = self.pages();
        pages.calls += 1;
        pages.calls
    }

    /// Writes a line into the log.
    pub(crate) fn say(&self, text: impl std::fmt::Display) {
        let millis = (now_micros() - self.begun_micros) / 1_000;
        let line = format!("{:>6}.{:01} s  {text}", millis / 1_000, millis % 1_000 / 100);
        if self.is_shown {
            eprintln!("{line}");
        }
        // A log that cannot be written stops nothing.
        let _ = writeln!(self.pages().log, "{line}");
    }

    pub(crate) fn lines(&self) -> Vec<DiaryLine> {
        self.pages().lines.clone()
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
