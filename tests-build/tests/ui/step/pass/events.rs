// pass: a transactional step emits, and a test sees it
use saga_core::memory::MemoryConn;
use saga_core::{Event, StepContext, StepError, saga_step};
use serde::{Deserialize, Serialize};

use crate::{connection, ready};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct OrderPlaced {
    order: u64,
}

impl Event for OrderPlaced {
    const NAME: &'static str = "order-placed";
}

#[saga_step]
async fn place_order(tx: &mut MemoryConn, ctx: &StepContext, order: u64) -> Result<(), StepError> {
    tx.put(ctx.saga_key(), b"placed")?;
    ctx.emit(&OrderPlaced { order })
}

#[test]
fn the_event_is_seen() {
    let ctx = StepContext::for_test("order-7:place-order");
    connection(|conn| {
        ready(place_order(conn, &ctx, 7)).unwrap();
        assert_eq!(conn.get("order-7"), Some(b"placed".to_vec()));
    });
    assert_eq!(ctx.emitted::<OrderPlaced>(), [OrderPlaced { order: 7 }]);
}
