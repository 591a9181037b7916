use serde_json::Value;

use super::{REAL_ORDERS, Ran, Shop, number};

/// Every order has ended, the books agree, and every kind of undo really ran.
#[track_caller]
pub(crate) fn all_ended(shop: &Shop, ran: &Ran) -> Value {
    assert_eq!(ran.code, 0, "{ran}");
    let said = ran.json();
    assert_eq!(number(&said, "orders"), REAL_ORDERS);
    assert_eq!(number(&said, "started") + number(&said, "already_started"), REAL_ORDERS);
    assert_eq!((number(&said, "refused"), number(&said, "stuck")), (0, 0));
    assert_eq!(number(&said, "completed") + number(&said, "compensated"), REAL_ORDERS);
    for (step, least) in [("place-order", 400), ("reserve-stock", 5), ("charge-card", 3), ("book-shipment", 3)] {
        let undos = number(&said["undos_by_step"], step);
        assert!(undos >= least, "only {undos} undos of {step}: {said}");
    }
    let audit = shop.verify();
    assert_eq!(number(&audit, "orders"), REAL_ORDERS);
    assert_eq!(audit["confirmed"], said["completed"]);
    assert_eq!(audit["cancelled"], said["compensated"]);
    said
}

/// What must be equal between two runs of which each took one order at a time.
pub(crate) fn decided(said: &Value) -> Vec<&Value> {
    ["completed", "compensated", "compensated_by_reason", "steps", "undos_by_step"].map(|field| &said[field]).to_vec()
}
