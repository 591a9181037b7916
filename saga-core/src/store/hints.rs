//! Hints between the processes that work on one store: what polling finds as well, only sooner.

use async_trait::async_trait;
use tokio::sync::watch;

/// What there may be for a process that nobody told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hint {
    /// Work that nobody has.
    Work,
    /// Messages in the outbox.
    Outbox,
    /// Received messages that nobody has.
    Inbox,
}

impl Hint {
    /// Every hint.
    pub const ALL: [Self; 3] = [Self::Work, Self::Outbox, Self::Inbox];

    /// The hint as it is written down.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Work => "work",
            Self::Outbox => "outbox",
            Self::Inbox => "inbox",
        }
    }

    /// The hint of that name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hint| hint.as_str() == text)
    }
}

/// Telling other processes that there is something to do for them.
///
/// A hint is never more than that. It may be heard late, without cause, once for many, or not at all, and nothing depends
/// on it: a store that has none, as the defaults are, is a complete store whose processes poll.
///
/// # Contract
/// - `S-HINT-1` What is given to [`hint`](Hints::hint) behind a commit is told to every process that listens, and by then what was committed is there to be claimed or read. `hint` itself waits for nothing and writes nothing into anybody's transaction.
pub trait Hints: Send + Sync {
    /// Tells the others. It is called behind the commit that left something for them.
    fn hint(&self, hint: Hint) {
        let _ = hint;
    }

    /// Listens from now on; nothing where this store has no hints.
    fn listen(&self) -> Option<Box<dyn Listener>> {
        None
    }
}

/// Who listens for hints. Dropping it ends that.
///
/// # Cancel safety
/// A call that is dropped has lost no hint.
#[async_trait]
pub trait Listener: Send {
    /// The next hint. What was told several times since the last call is heard once.
    async fn heard(&mut self) -> Hint;
}

/// Hands hints on to all who listen in this process: a part that backends build [`Hints`] of.
#[derive(Debug, Clone, Default)]
pub struct HintBoard {
    told: watch::Sender<Told>,
}

/// How often each hint was told.
type Told = [u64; Hint::ALL.len()];

impl HintBoard {
    /// A board that nobody listens to yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells everybody who listens.
    pub fn tell(&self, hint: Hint) {
        self.told.send_modify(|told| told[hint as usize] += 1);
    }

    /// Listens from now on.
    pub fn listen(&self) -> Box<dyn Listener> {
        let mut told = self.told.subscribe();
        let heard = *told.borrow_and_update();
        Box::new(BoardListener { told, heard })
    }

    /// Whether somebody listens.
    pub fn has_listeners(&self) -> bool {
        self.told.receiver_count() > 0
    }
}

struct BoardListener {
    told: watch::Receiver<Told>,
    heard: Told,
}

#[async_trait]
impl Listener for BoardListener {
    async fn heard(&mut self) -> Hint {
        loop {
            let told = *self.told.borrow_and_update();
            for hint in Hint::ALL {
                let place = hint as usize;
                if self.heard[place] != told[place] {
                    self.heard[place] = told[place];
                    return hint;
                }
            }
            if self.told.changed().await.is_err() {
                // Nobody is left who could tell anything.
                std::future::pending::<()>().await;
            }
        }
    }
}
