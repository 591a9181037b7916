//! Hints between processes.

use saga_core::store::{Hint, Hints, Listener};

use crate::options::Relay;
use crate::store::store::PostgresStore;

impl Hints for PostgresStore {
    fn hint(&self, hint: Hint) {
        if hint == Hint::Outbox && self.shared().options.relay == Relay::Cdc {
            return;
        }
        self.shared().hints.tell(hint);
    }

    fn listen(&self) -> Option<Box<dyn Listener>> {
        self.shared().hints.listen()
    }
}
