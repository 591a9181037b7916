use std::sync::Arc;

use crate::contract::ReservationsStore;

/// Where the reservations are.
pub(super) type Store = Arc<dyn ReservationsStore>;
