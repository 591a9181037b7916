use std::collections::BTreeMap;
use std::fmt;

/// A refused operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Where the saga was, and after which disturbance.
    pub point: String,
    /// The reason, as the runtime gives it.
    pub reason: String,
}

/// Writes a line for each reason, with how often it was given.
pub(super) fn write_reasons(
    f: &mut fmt::Formatter<'_>,
    refusals: &[Refusal],
    line: impl Fn(u64, &str) -> String,
) -> fmt::Result {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for refusal in refusals {
        *reasons.entry(&refusal.reason).or_default() += 1;
    }
    reasons.into_iter().try_for_each(|(reason, times)| write!(f, "\n- {}", line(times, reason)))
}
