use std::time::Duration;

/// Decides what befalls a call, by a seed and the call's key. The same seed and key always give the same.
#[derive(Debug, Clone, Copy)]
pub struct Dice {
    seed: u64,
}

/// What befalls one call, whatever it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Nothing in particular.
    Fair,
    /// The answer takes its time.
    Slow(Duration),
    /// The service breaks down before it has done anything.
    BreaksBefore,
    /// The service breaks down after the work was done and before it could say so.
    BreaksAfter,
}

/// From this call under one key on the weather is fair, so that everything ends.
const CALLS_UNTIL_FAIR: u32 = 4;

impl Dice {
    /// Dice that fall as this seed says.
    pub fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// What befalls the `nth` call under a key, from 1.
    pub fn weather(self, key: &str, nth: u32) -> Weather {
        let salt = format!("weather {nth}");
        match self.roll(&salt, key) {
            _ if nth >= CALLS_UNTIL_FAIR => Weather::Fair,
            0..30 => Weather::BreaksBefore,
            30..90 => Weather::BreaksAfter,
            90..150 => Weather::Slow(Duration::from_millis(20 + self.roll("slow", key) / 5)),
            // Longer than the shop waits: the call outlives its caller.
            150..160 => Weather::Slow(Duration::from_millis(1_300)),
            _ => Weather::Fair,
        }
    }

    /// Whether the card's bank says no.
    pub fn declines(self, key: &str) -> bool {
        self.roll("declines", key) < 120
    }

    /// Whether the carrier does not take this parcel.
    pub fn turns_away(self, key: &str) -> bool {
        self.roll("turns away", key) < 50
    }

    /// What the carrier asks for, in percent of the freight that the shop quoted.
    pub fn price_percent(self, key: &str) -> i64 {
        let roll = self.roll("price", key);
        let percent = if roll < 120 { 200 + roll } else { 90 + roll / 50 };
        percent.cast_signed()
    }

    /// A number from 0 to 999.
    pub(super) fn roll(self, salt: &str, key: &str) -> u64 {
        // FNV-1a, then the last steps of splitmix64: the same on every machine and in every release.
        let hash = salt.bytes().chain([0]).chain(key.bytes()).fold(0xcbf2_9ce4_8422_2325 ^ self.seed, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_a_thousand(holds: impl Fn(&str) -> bool) -> usize {
        (0..1_000).filter(|n| holds(&format!("order-{n}:charge-card"))).count()
    }

    #[test]
    fn the_same_seed_and_key_always_give_the_same() {
        for nth in 1..5 {
            assert_eq!(Dice::new(7).weather("a:charge-card", nth), Dice::new(7).weather("a:charge-card", nth));
        }
        let differs = of_a_thousand(|key| Dice::new(7).declines(key) != Dice::new(8).declines(key));
        assert!(differs > 100, "another seed changed only {differs} of 1,000");
    }

    #[test]
    fn each_kind_of_trouble_comes_about_as_often_as_it_should() {
        let dice = Dice::new(1);
        let near = |count: usize, per_mille: usize| {
            assert!(count.abs_diff(per_mille) < 15 + per_mille / 3, "{count} in 1,000, expected about {per_mille}");
        };
        near(of_a_thousand(|key| dice.declines(key)), 120);
        near(of_a_thousand(|key| dice.turns_away(key)), 50);
        near(of_a_thousand(|key| dice.price_percent(key) >= 200), 120);
        near(of_a_thousand(|key| dice.weather(key, 1) == Weather::BreaksBefore), 30);
        near(of_a_thousand(|key| dice.weather(key, 1) == Weather::BreaksAfter), 60);
        near(of_a_thousand(|key| matches!(dice.weather(key, 1), Weather::Slow(_))), 70);
    }

    #[test]
    fn a_key_that_was_called_often_enough_gets_an_answer() {
        assert_eq!(of_a_thousand(|key| Dice::new(3).weather(key, CALLS_UNTIL_FAIR) == Weather::Fair), 1_000);
    }
}
