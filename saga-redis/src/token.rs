//! Fencing tokens: an epoch and a counter.

/// The bits of the counter.
const COUNTER_BITS: u32 = 40;

/// The highest counter of an epoch. The script of `acquire` has it too.
pub(crate) const COUNTER_MAX: u64 = (1 << COUNTER_BITS) - 1;

/// The highest epoch: tokens stay below 2^63, so that a store can keep them in a signed column.
pub(crate) const EPOCH_MAX: u64 = (1 << 23) - 1;

/// Joins the parts. Lua must not do this: its numbers are exact to 2^53 only.
pub(crate) fn join(epoch: u64, counter: u64) -> u64 {
    debug_assert!(epoch <= EPOCH_MAX && counter <= COUNTER_MAX);
    epoch << COUNTER_BITS | counter
}

/// The epoch and the counter of a token.
pub(crate) fn parts(token: u64) -> (u64, u64) {
    (token >> COUNTER_BITS, token & COUNTER_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_beyond_what_lua_can_count_is_exact() {
        let token = join(EPOCH_MAX, COUNTER_MAX);
        assert_eq!(token, i64::MAX as u64);
        assert_eq!(parts(token), (EPOCH_MAX, COUNTER_MAX));
        assert_eq!(parts(join(9_000, 7)), (9_000, 7));
        assert!(join(2, 1) > join(1, COUNTER_MAX), "a later epoch is higher");
    }
}
