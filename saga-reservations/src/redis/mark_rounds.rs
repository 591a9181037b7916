//! Callers that look for confirmations which Redis was not told of look together.

use saga_core::__private::Batches;

use crate::ReservationsError;
use crate::book::ResourceName;

/// How often one operation looks for such holds. While many are confirmed there are always some for a moment, and a request that
/// finds no units must be refused at last.
pub(super) const ROUNDS_MAX: u32 = 2;

/// The most callers that share a round.
const CALLERS_MAX: usize = 256;

/// Callers share rounds. A caller gets the result of a round that began after it had asked.
#[derive(Clone)]
pub(super) struct MarkRounds(pub(super) Batches<Vec<ResourceName>, Result<(), ReservationsError>>);

impl Default for MarkRounds {
    fn default() -> Self {
        Self(Batches::new(CALLERS_MAX, 1))
    }
}
