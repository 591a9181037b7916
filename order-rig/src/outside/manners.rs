use std::time::Duration;

use super::Dice;

/// What the services outside are like, beside the weather.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manners {
    /// Under how many of a thousand keys calls are kept waiting.
    pub held_per_mille: u32,
    /// Whether a key whose undo was seen is refused from then on.
    pub late_calls: LateCalls,
    /// Whether everything that happens to a call is written down.
    pub journal: Journal,
}

/// What becomes of a call that arrives after its undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LateCalls {
    /// It is refused: the undo barred its key.
    #[default]
    Refused,
    /// It is carried out, as by a service that does not honour the key of an undo.
    CarriedOut,
}

/// What is written down of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Journal {
    /// What they changed.
    #[default]
    Changes,
    /// Each call, what became of it, and when.
    Calls,
}

impl Default for Manners {
    fn default() -> Self {
        Self { held_per_mille: 0, late_calls: LateCalls::Refused, journal: Journal::Changes }
    }
}

/// How long a call is kept waiting before anything is done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// It is not.
    No,
    /// For so long, which is longer than its caller waits.
    For(Duration),
    /// Until its undo has come, and a moment longer.
    PastUndo,
}

/// Later calls under a key that is held for a time are not held, so that everything ends.
const HELD_CALLS_MAX: u32 = 2;

impl Dice {
    /// How long the `nth` call under a key is held, from 1, where calls under so many of a thousand keys are.
    pub fn hold(self, key: &str, nth: u32, held_per_mille: u32) -> Hold {
        if self.roll("held", key) >= u64::from(held_per_mille) {
            return Hold::No;
        }
        match self.roll("held for", key) {
            0..400 => Hold::PastUndo,
            roll if nth <= HELD_CALLS_MAX => Hold::For(Duration::from_millis(2_000 + 18 * (roll - 400))),
            _ => Hold::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_asked_share_of_keys_is_held_and_some_of_them_past_their_undo() {
        let dice = Dice::new(4);
        let holds: Vec<Hold> = (0..2_000).map(|n| dice.hold(&format!("order-{n}:charge-card"), 1, 100)).collect();
        let held = holds.iter().filter(|hold| **hold != Hold::No).count();
        let past_undo = holds.iter().filter(|hold| **hold == Hold::PastUndo).count();
        assert!((150..250).contains(&held), "{held} of 2,000");
        assert!((40..130).contains(&past_undo), "{past_undo} of 2,000");
        assert!((0..2_000).all(|n| dice.hold(&format!("order-{n}:charge-card"), 1, 0) == Hold::No));
    }

    #[test]
    fn a_key_that_is_held_past_its_undo_is_held_in_every_call() {
        let dice = Dice::new(4);
        for n in 0..500 {
            let key = format!("order-{n}:charge-card");
            let later = dice.hold(&key, 9, 1_000);
            match dice.hold(&key, 1, 1_000) {
                Hold::PastUndo => assert_eq!(later, Hold::PastUndo),
                Hold::For(time) => assert!(later == Hold::No && time >= Duration::from_secs(2), "{time:?}"),
                Hold::No => panic!("all are held"),
            }
        }
    }
}
