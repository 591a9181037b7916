use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use saga_core::env::BoxFuture;
use saga_core::step::CancelSignal;
use saga_core::store::{MemberId, SagaWithSteps};

use super::plan::{Disturbance, Place};

/// What one run does to the saga, over all lives of its process.
#[derive(Debug)]
pub(super) struct Director {
    /// The step that rejects, so that the way back is run.
    pub(super) rejected: Option<&'static str>,
    pub(super) disturbance: Disturbance,
    pub(super) commits: Commits,
    is_lifted: AtomicBool,
    pub(super) halt: Halt,
    /// How the process misreads what is stored of a saga.
    pub(super) misreads: Option<Misread>,
    book: Mutex<Book>,
}

/// A mistake that is planted in what is read of a saga.
pub(super) type Misread = fn(&mut SagaWithSteps);

/// Whether consecutive steps of a saga may be one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Commits {
    Shared,
    OfEachStep,
}

/// Where the process is held up until another task has acted meanwhile.
#[derive(Debug, Default)]
pub(super) struct Halt {
    reached: CancelSignal,
    released: CancelSignal,
}

impl Halt {
    /// Waits until the process is held up.
    pub(super) async fn reached(&self) {
        self.reached.cancelled().await;
    }

    /// Lets the process go on, or never holds it up.
    pub(super) fn release(&self) {
        self.released.cancel();
    }

    async fn wait(&self) {
        self.reached.cancel();
        self.released.cancelled().await;
    }
}

/// What becomes of a process at a boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Passage {
    GoesOn,
    Crashes,
    Halts,
}

#[derive(Debug, Default)]
struct Book {
    /// The boundaries that were passed, in the order in which they were first, and how often.
    passed: Vec<String>,
    counts: BTreeMap<String, u64>,
    /// How often the disturbance was done.
    done: u64,
    /// What a transaction wrote that was to write nothing.
    written: Option<String>,
}

impl Director {
    pub(super) fn new(rejected: Option<&'static str>, disturbance: Disturbance, commits: Commits) -> Self {
        Self {
            rejected,
            disturbance,
            commits,
            is_lifted: AtomicBool::new(false),
            halt: Halt::default(),
            misreads: None,
            book: Mutex::default(),
        }
    }

    pub(super) fn misreading(self, misreads: Option<Misread>) -> Self {
        Self { misreads, ..self }
    }

    /// From now on nothing is disturbed.
    pub(super) fn lift(&self) {
        self.is_lifted.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_lifted(&self) -> bool {
        self.is_lifted.load(Ordering::Relaxed)
    }

    /// Notes that a boundary was passed, and says what becomes of the process there.
    fn pass(&self, boundary: &str) -> Passage {
        let mut book = self.lock();
        let count = book.counts.entry(boundary.to_owned()).or_default();
        *count += 1;
        if *count > 1 {
            return Passage::GoesOn;
        }
        book.passed.push(boundary.to_owned());
        let passage = match &self.disturbance {
            Disturbance::Crash { boundary: chosen, .. } if chosen == boundary => Passage::Crashes,
            Disturbance::Halt { boundary: chosen, .. } if chosen == boundary => Passage::Halts,
            _ => return Passage::GoesOn,
        };
        if self.is_lifted() {
            return Passage::GoesOn;
        }
        book.done += 1;
        passage
    }

    /// Whether a function is disturbed at this place, now. `is_once` disturbs it the first time only.
    pub(super) fn disturbs(&self, place: Place, is_once: bool) -> bool {
        let (chosen, counts) = match &self.disturbance {
            Disturbance::FailOnce(chosen) | Disturbance::FailAlways(chosen) | Disturbance::Twice(chosen) => {
                (*chosen, true)
            }
            Disturbance::FailEachOnce => (Place { is_behind: false, ..place }, true),
            Disturbance::Crash { is_amid_errors: true, .. } | Disturbance::Halt { is_amid_errors: true, .. } => {
                (Place { is_behind: false, ..place }, false)
            }
            Disturbance::None | Disturbance::Crash { .. } | Disturbance::Halt { .. } | Disturbance::Answered { .. } => {
                return false;
            }
        };
        if self.is_lifted() || chosen != place {
            return false;
        }
        let mut book = self.lock();
        let name = format!("disturbed {place}");
        let count = book.counts.entry(name).or_default();
        *count += 1;
        let is_disturbed = !is_once || *count == 1;
        book.done += u64::from(is_disturbed && counts);
        is_disturbed
    }

    /// Whether a transaction of these steps is to write nothing.
    pub(super) fn is_answered(&self, steps: &str) -> bool {
        matches!(&self.disturbance, Disturbance::Answered { step } if *step == steps)
    }

    /// Notes the rows in front of a transaction that is to write nothing, and behind it.
    pub(super) fn compare(&self, before: Option<&[String]>, after: Option<&[String]>) {
        let mut book = self.lock();
        book.done += 1;
        let written = match (before, after) {
            (Some(before), Some(after)) => difference(before, after),
            _ => Some("there are no `tables` to compare".to_owned()),
        };
        book.written = book.written.take().or(written);
    }

    /// What a transaction wrote that was to write nothing.
    pub(super) fn written(&self) -> Option<String> {
        self.lock().written.clone()
    }

    pub(super) fn passed(&self) -> Vec<String> {
        self.lock().passed.clone()
    }

    /// Whether what was to be done was done.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.disturbance, Disturbance::None) || self.lock().done > 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is in one list of rows and not in the other.
fn difference(before: &[String], after: &[String]) -> Option<String> {
    let gone = before.iter().find(|row| !after.contains(row)).map(|row| format!("the row {row:?} is gone"));
    let new = after.iter().find(|row| !before.contains(row)).map(|row| format!("the row {row:?} is there"));
    let moved = (before.len() != after.len()).then(|| "a row is there more or less often".to_owned());
    new.or(gone).or(moved)
}

/// Reads the user's tables.
pub(super) type Look = dyn Fn() -> BoxFuture<'static, Option<Vec<String>>> + Send + Sync;

/// One life of the process.
pub(super) struct Life {
    pub(super) director: Arc<Director>,
    look: Arc<Look>,
    is_dead: AtomicBool,
    died: CancelSignal,
    member: Mutex<Option<MemberId>>,
}

impl Life {
    pub(super) fn new(director: &Arc<Director>, look: &Arc<Look>) -> Arc<Self> {
        Arc::new(Self {
            director: Arc::clone(director),
            look: Arc::clone(look),
            is_dead: AtomicBool::new(false),
            died: CancelSignal::new(),
            member: Mutex::default(),
        })
    }

    /// The user's tables as they are now.
    pub(super) async fn look(&self) -> Option<Vec<String>> {
        (self.look)().await
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Acquire)
    }

    /// Passes a boundary outside a function. A dead process goes no further.
    pub(super) async fn pass(&self, boundary: &str) {
        if !self.pass_in_function(boundary).await {
            pending::<()>().await;
        }
    }

    /// Passes a boundary where staying for good would hold a connection: answers whether the process lives.
    pub(super) async fn pass_in_function(&self, boundary: &str) -> bool {
        if self.is_dead() {
            return false;
        }
        match self.director.pass(boundary) {
            Passage::GoesOn => {}
            Passage::Halts => self.director.halt.wait().await,
            Passage::Crashes => {
                self.is_dead.store(true, Ordering::Release);
                self.died.cancel();
            }
        }
        !self.is_dead()
    }

    /// A dead process does nothing.
    pub(super) async fn live(&self) {
        if self.is_dead() {
            pending::<()>().await;
        }
    }

    /// Waits until the process has crashed.
    pub(super) async fn died(&self) {
        self.died.cancelled().await;
    }

    pub(super) fn set_member(&self, member: MemberId) {
        *self.member.lock().unwrap_or_else(PoisonError::into_inner) = Some(member);
    }

    pub(super) fn member(&self) -> Option<MemberId> {
        *self.member.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Life").field("director", &self.director).field("is_dead", &self.is_dead).finish_non_exhaustive()
    }
}
