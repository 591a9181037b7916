/// The steps of an order, in their order.
pub(super) const STEPS: [&str; 5] = ["place-order", "reserve-stock", "charge-card", "book-shipment", "confirm-order"];

/// Which of them has that name.
pub(super) fn place_of(step: &str) -> Option<u8> {
    (0..).zip(STEPS).find(|(_, name)| *name == step).map(|(place, _)| place)
}
