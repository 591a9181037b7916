//! The card processor. It honours keys: a key is charged once, however often it is asked for. Its test cards decide how it behaves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::request::Charge;

/// A card that is charged.
pub const GOOD: &str = "4242 4242 4242 4242";
/// Another one.
pub const OTHER_GOOD: &str = "5555 5555 5555 4444";
/// A card that is declined.
pub const DECLINED: &str = "4000 0000 0000 0002";
/// A card whose first charge is lost on the way to the processor.
pub const LOST_REQUEST: &str = "4000 0000 0000 0119";
/// A card whose first charge is made, and its answer is lost.
pub const LOST_ANSWER: &str = "4000 0000 0000 0127";

/// The card processor. A clone is the same processor.
#[derive(Debug, Clone, Default)]
pub struct CardProcessor(Arc<Mutex<Ledger>>);

#[derive(Debug, Default)]
struct Ledger {
    /// The charges by their keys.
    charges: BTreeMap<String, Charge>,
    /// How often each key was asked for.
    calls: BTreeMap<String, u32>,
    /// The highest token of each card.
    tokens: BTreeMap<String, u64>,
    /// How often the processor was asked what became of a charge.
    inquiries: u32,
}

/// Why a charge has no receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChargeError {
    /// The card was not charged, and will not be.
    Declined,
    /// A booking that got the account later has charged the card: this one has lost it.
    Overtaken,
    /// It is unknown whether it was charged.
    NoAnswer,
}

impl CardProcessor {
    /// Charges a card, and returns the receipt.
    pub fn charge(&self, key: &str, charge: &Charge) -> Result<String, ChargeError> {
        let mut ledger = self.ledger();
        let calls = ledger.calls.entry(key.to_owned()).or_default();
        *calls += 1;
        let is_first = *calls == 1;
        // The key comes first: a repeat of a charge that was made gets its receipt, also when another booking has the account.
        if ledger.charges.contains_key(key) {
            return Ok(receipt(key));
        }
        let token = ledger.tokens.entry(charge.card.clone()).or_default();
        if charge.token < *token {
            return Err(ChargeError::Overtaken);
        }
        *token = charge.token;
        match charge.card.as_str() {
            DECLINED => return Err(ChargeError::Declined),
            LOST_REQUEST if is_first => return Err(ChargeError::NoAnswer),
            _ => {}
        }
        ledger.charges.insert(key.to_owned(), charge.clone());
        if is_first && charge.card == LOST_ANSWER { Err(ChargeError::NoAnswer) } else { Ok(receipt(key)) }
    }

    /// The receipt of the charge with this key, if there is one.
    pub fn find(&self, key: &str) -> Option<String> {
        let mut ledger = self.ledger();
        ledger.inquiries += 1;
        ledger.charges.contains_key(key).then(|| receipt(key))
    }

    /// How many charges were made.
    pub fn charges(&self) -> usize {
        self.ledger().charges.len()
    }

    /// How many charges of this card were made.
    pub fn charges_of(&self, card: &str) -> usize {
        self.ledger().charges.values().filter(|charge| charge.card == card).count()
    }

    /// How many cents were charged.
    pub fn cents(&self) -> i64 {
        self.ledger().charges.values().map(|charge| charge.cents).sum()
    }

    /// How often it was asked what became of a charge.
    pub fn inquiries(&self) -> u32 {
        self.ledger().inquiries
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn receipt(key: &str) -> String {
    format!("receipt of {key}")
}

impl fmt::Display for ChargeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Declined => "the card is declined",
            Self::Overtaken => "another booking has the account of the card by now",
            Self::NoAnswer => "the card processor does not answer",
        })
    }
}

impl std::error::Error for ChargeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_booking_that_has_lost_the_account_charges_nothing() {
        let cards = CardProcessor::default();
        let charge = |token| Charge { card: GOOD.to_owned(), cents: 100, token };
        assert!(cards.charge("one", &charge(7)).is_ok());
        assert_eq!(cards.charge("late", &charge(6)), Err(ChargeError::Overtaken));
        assert!(cards.charge("one", &charge(7)).is_ok(), "a repeated charge has the same token");
        assert_eq!((cards.charges_of(GOOD), cards.charges_of(OTHER_GOOD)), (1, 0));
    }

    #[test]
    fn a_charge_that_was_made_is_answered_with_its_receipt_also_when_another_booking_has_the_account() {
        let cards = CardProcessor::default();
        let charge = |token| Charge { card: LOST_ANSWER.to_owned(), cents: 100, token };
        assert_eq!(cards.charge("one", &charge(6)), Err(ChargeError::NoAnswer));
        assert_eq!(cards.charge("two", &charge(7)), Err(ChargeError::NoAnswer));
        assert_eq!(cards.charge("one", &charge(6)), Ok(receipt("one")));
        assert_eq!((cards.charges_of(LOST_ANSWER), cards.cents()), (2, 200));
    }
}
