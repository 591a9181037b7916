//! Taking slots and permits.

use std::sync::Arc;

use super::bulkheads::Bulkheads;
use super::concurrency_key::ConcurrencyKey;
use super::permits::{ConcurrencyPermit, QueueSlot};

impl Bulkheads {
    /// A place, if there is room for another one.
    pub(crate) fn try_place(self: &Arc<Self>, seat: ConcurrencyKey) -> Option<QueueSlot> {
        let mut state = self.lock();
        if self.room(&state, seat) == 0 {
            state.is_short = true;
            return None;
        }
        state.places.enter_pool(seat);
        state.places.enter_limits(seat);
        drop(state);
        Some(QueueSlot::new(self, seat, None))
    }

    /// A place for what this process has already.
    pub(crate) fn place(self: &Arc<Self>, seat: ConcurrencyKey) -> QueueSlot {
        let mut state = self.lock();
        state.places.enter_pool(seat);
        state.places.enter_limits(seat);
        drop(state);
        QueueSlot::new(self, seat, None)
    }

    /// A line, if one is free for this command.
    pub(crate) fn try_line(self: &Arc<Self>, seat: ConcurrencyKey) -> Option<ConcurrencyPermit> {
        let mut state = self.lock();
        let users = self.seats.users[seat.pool as usize];
        let has_share = state.lines.of_definition(seat) < self.sizes.lines_of_one(seat.pool)
            && state.lines.fair_room(seat, self.sizes.lines(seat.pool, users), users) > 0;
        if !has_share || !self.is_within_limits(&state, seat) {
            return None;
        }
        state.lines.enter_pool(seat);
        state.lines.enter_limits(seat);
        drop(state);
        Some(ConcurrencyPermit::new(self, seat, Some(self.time())))
    }

    /// The right to run beside the lines of the pool, if the limits allow it.
    pub(crate) fn try_beside(self: &Arc<Self>, seat: ConcurrencyKey) -> Option<ConcurrencyPermit> {
        let mut state = self.lock();
        if !self.is_within_limits(&state, seat) {
            return None;
        }
        state.lines.enter_limits(seat);
        drop(state);
        Some(ConcurrencyPermit::new(self, seat, None))
    }
}
