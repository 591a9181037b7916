use super::mistake::Mistake;

/// How long what is kept must be kept, in ticks. The clocks of the two services differ by more than a message may be old, so
/// that each of the horizons matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizons {
    /// `A`: the age up to which a message is acted on.
    pub age_max: i8,
    /// `S`: by how much the clocks of two services differ.
    pub skew: i8,
    /// How long an ended saga is kept in full.
    pub full: i8,
    /// How long a host keeps a step after it was told that its saga is closed.
    pub hosted: i8,
    /// For how much longer than the saga its key is kept.
    pub key: i8,
}

impl Horizons {
    /// After how long a saga is deleted with its key.
    pub(super) fn deleted_after(self) -> i8 {
        self.full + self.key
    }

    /// The horizons as the runtime demands them, or as the mistake has them.
    pub(super) fn of(mistake: Option<Mistake>) -> Self {
        let (age_max, skew) = (1, 2);
        let margin = if mistake == Some(Mistake::NoMargin) { 0 } else { skew };
        // A message that is just accepted, and what is due at the same moment, may come in any order.
        let full = age_max + margin + 1;
        let hosted = if mistake == Some(Mistake::ClosesAtTheEnd) { 0 } else { age_max + margin };
        let key = match mistake {
            Some(Mistake::ReusesKeysEarly) => 0,
            // The message that a saga is closed may itself be late.
            Some(Mistake::ForgetsTheWay) => hosted + 1,
            _ => age_max + margin + hosted + 1,
        };
        Self { age_max, skew, full, hosted, key }
    }
}
