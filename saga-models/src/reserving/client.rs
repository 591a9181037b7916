use std::time::Duration;

use saga_reservations::{Action, FencingToken, Late, Reserve};

/// How long a hold lasts, in ticks.
const TTL: Duration = Duration::from_secs(2);

/// What a client asks for. It asks for each once, and the message may come again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ask {
    /// Hold the units.
    Reserve,
    /// Confirm the hold under this token.
    Confirm(u64),
    /// The same, also if the hold is over and the units are free.
    ConfirmIfFree(u64),
    /// Extend the hold.
    Extend(u64),
    /// Give the hold up; without a token the client has got no answer.
    Release(Option<u64>),
    /// Give the confirmed units back.
    GiveBack(u64),
}

/// A message on its way. It may come several times until it is too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Message {
    /// Which client asked.
    pub client: usize,
    /// For what.
    pub ask: Ask,
    /// When.
    pub at: i64,
}

/// What a client did and was told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own, and all combinations may occur")]
pub struct Client {
    /// Whether it has asked for the units.
    pub has_asked: bool,
    /// Whether it has extended its hold.
    pub has_extended: bool,
    /// Whether it has asked to confirm or to release: it asks for one of them.
    pub has_decided: bool,
    /// Whether it has asked to give back what is confirmed.
    pub has_returned: bool,
    /// The token that it was told last.
    pub token: Option<u64>,
    /// Until when it was told that its units are held.
    pub held_until: Option<i64>,
    /// Whether it was told that its hold is over, released or given back.
    pub told_ended: bool,
    /// Whether it was told that its units are confirmed.
    pub told_confirmed: bool,
}

impl Client {
    /// What it may ask for next.
    pub(super) fn asks(&self) -> Vec<Ask> {
        let mut asks = Vec::new();
        if !self.has_asked {
            asks.push(Ask::Reserve);
        } else if !self.has_decided {
            match self.token {
                Some(token) => {
                    asks.extend([Ask::Confirm(token), Ask::ConfirmIfFree(token), Ask::Release(Some(token))]);
                }
                None => asks.push(Ask::Release(None)),
            }
        }
        // A client that has lost its hold may not know it yet.
        asks.extend(self.token.filter(|_| !self.has_extended).map(Ask::Extend));
        if let Some(token) = self.token.filter(|_| self.told_confirmed && !self.has_returned) {
            asks.push(Ask::GiveBack(token));
        }
        asks
    }

    pub(super) fn has_sent(&mut self, ask: Ask) {
        match ask {
            Ask::Reserve => self.has_asked = true,
            Ask::Extend(_) => self.has_extended = true,
            Ask::Confirm(_) | Ask::ConfirmIfFree(_) | Ask::Release(_) => self.has_decided = true,
            Ask::GiveBack(_) => self.has_returned = true,
        }
    }
}

impl Ask {
    /// The operation of the book.
    pub(super) fn action(self, client: usize) -> Action {
        let token = FencingToken;
        match self {
            Self::Reserve => Action::Reserve(request_of(client).ttl(TTL)),
            Self::Confirm(known) => Action::Confirm { token: token(known), late: Late::Refuse },
            Self::ConfirmIfFree(known) => Action::Confirm { token: token(known), late: Late::IfFree },
            Self::Extend(known) => Action::Extend { token: token(known), ttl: TTL },
            Self::Release(known) => Action::Release { token: known.map(token) },
            Self::GiveBack(known) => Action::GiveBack { token: token(known) },
        }
    }

    /// The token that the message carries.
    pub(super) fn token(self) -> Option<u64> {
        match self {
            Self::Reserve => None,
            Self::Confirm(token) | Self::ConfirmIfFree(token) | Self::Extend(token) | Self::GiveBack(token) => {
                Some(token)
            }
            Self::Release(token) => token,
        }
    }
}

/// The first client wants a bag and a seat, the second one only a seat. There is one of each.
fn request_of(client: usize) -> Reserve {
    if client == 0 { Reserve::of("bag", 1).and("seat", 1) } else { Reserve::of("seat", 1) }
}
