//! What the services tell each other.

use saga_core::Event;
use serde::{Deserialize, Serialize};

macro_rules! events {
    ($($name:literal $event:ident { $($field:ident: $type:ty),* })*) => {$(
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub(crate) struct $event { $(pub(crate) $field: $type),* }

        impl Event for $event {
            const NAME: &'static str = $name;
        }
    )*};
}

events! {
    "order-placed" OrderPlaced { cents: i64, quantity: i64 }
    "note-added" NoteAdded { cents: i64 }
    "stock-reserved" StockReserved { quantity: i64 }
    "stock-rejected" StockRejected { reason: String }
    "stock-released" StockReleased { quantity: i64 }
    "card-charged" CardCharged { payment: String }
    "card-declined" CardDeclined { reason: String }
    "order-shipped" OrderShipped { parcel: i64 }
    "order-expired" OrderExpired {}
}
