//! Hints between the processes that work on one store. Polling finds the same work, only later.

use async_trait::async_trait;
use tokio::sync::watch;

/// What a process may find when it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hint {
    /// Work that no process has leased.
    Work,
    /// Messages in the outbox.
    Outbox,
    /// Received messages that no process has leased.
    Inbox,
}

impl Hint {
    /// Every hint.
    pub const ALL: [Self; 3] = [Self::Work, Self::Outbox, Self::Inbox];

    /// The hint as it is sent.
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

/// Notifies other processes that there is something for them to do.
///
/// A hint is an optimization. It may arrive late, without a cause, once for many, or not at all, and nothing depends on
/// it. A store without hints, as the default methods are, is complete: its processes poll.
///
/// # Contract
/// - `S-HINT-1` A hint that is given to [`hint`](Hints::hint) after a commit reaches every process that listens, and by then what was committed can be claimed or read. `hint` does not wait, and it writes into no transaction of another caller.
pub trait Hints: Send + Sync {
    /// Notifies the other processes. The engine calls it after the commit that left something for them.
    fn hint(&self, hint: Hint) {
        let _ = hint;
    }

    /// Listens from now on. `None` for a store without hints.
    fn listen(&self) -> Option<Box<dyn Listener>> {
        None
    }
}

/// A receiver of hints. Dropping it ends the listening.
///
/// # Cancel safety
/// A dropped call loses no hint.
#[async_trait]
pub trait Listener: Send {
    /// The next hint. A hint that was sent several times since the last call arrives once.
    async fn next_hint(&mut self) -> Hint;
}

/// Passes hints on to all listeners of this process: a building block for backends that implement [`Hints`].
#[derive(Debug, Clone, Default)]
pub struct HintBoard {
    sent: watch::Sender<HintCounts>,
}

/// How often each hint was sent.
type HintCounts = [u64; Hint::ALL.len()];

impl HintBoard {
    /// A board without listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notifies all listeners.
    pub fn notify(&self, hint: Hint) {
        self.sent.send_modify(|told| told[hint as usize] += 1);
    }

    /// Listens from now on.
    pub fn listen(&self) -> Box<dyn Listener> {
        let mut told = self.sent.subscribe();
        let heard = *told.borrow_and_update();
        Box::new(BoardListener { sent: told, seen: heard })
    }

    /// Whether there is a listener.
    pub fn has_listeners(&self) -> bool {
        self.sent.receiver_count() > 0
    }
}

struct BoardListener {
    sent: watch::Receiver<HintCounts>,
    seen: HintCounts,
}

#[async_trait]
impl Listener for BoardListener {
    async fn next_hint(&mut self) -> Hint {
        loop {
            let told = *self.sent.borrow_and_update();
            for hint in Hint::ALL {
                let place = hint as usize;
                if self.seen[place] != told[place] {
                    self.seen[place] = told[place];
                    return hint;
                }
            }
            if self.sent.changed().await.is_err() {
                // All senders are gone.
                std::future::pending::<()>().await;
            }
        }
    }
}
