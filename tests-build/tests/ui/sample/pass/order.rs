// pass: the order saga as the documentation writes it
use saga_core::memory::{MemoryConn as PgConnection, MemoryStore as PostgresStore};
use saga_core::{Output, Saga, State, StepContext, StepError, saga_compensation, saga_step};
use serde::{Deserialize, Serialize};

use crate::{connection, ready};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    total: u64,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Reservation {
    shelf: u32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Payment {
    id: String,
}

#[derive(Debug, Clone)]
struct Gateway;

impl Gateway {
    async fn charge(&self, key: &str, total: u64) -> Result<Payment, StepError> {
        std::future::ready(()).await;
        Ok(Payment { id: format!("{key} {total}") })
    }
}

/// A step with a transaction: its writes commit together with the record that it ran.
#[saga_step(compensate = release_stock)]
async fn reserve_stock(tx: &mut PgConnection, order: Order) -> Result<Reservation, StepError> {
    tx.put("reserved", order.total.to_string().as_bytes())?;
    Ok(Reservation { shelf: 4 })
}

/// Undoes `reserve_stock`: it gets that step's input and its output.
#[saga_compensation]
async fn release_stock(tx: &mut PgConnection, order: Order, reservation: Reservation) -> Result<(), StepError> {
    tx.put("released", format!("{} from {}", order.total, reservation.shelf).as_bytes())?;
    Ok(())
}

/// A step without a transaction: it calls the outside world, and hands it the step's own key.
#[saga_step(compensate = refund_card, retry(attempts = 8, base = "100ms", cap = "30s"), timeout = "10s", on_exhausted = "compensate")]
async fn charge_card(ctx: &StepContext, order: Order, State(gateway): State<Gateway>) -> Result<Payment, StepError> {
    gateway.charge(ctx.key(), order.total).await
}

/// The charge may or may not have gone through, so this compensation takes an `Option`.
#[saga_compensation]
async fn refund_card(
    ctx: &StepContext,
    order: Order,
    payment: Option<Payment>,
    State(_gateway): State<Gateway>,
) -> Result<(), StepError> {
    if payment.is_none() && order.total == 0 {
        return Err(StepError::reject(format!("nothing to refund for {}", ctx.original_key())));
    }
    Ok(())
}

/// A step that needs what an earlier one returned.
#[saga_step]
async fn confirm_order(
    tx: &mut PgConnection,
    order: Order,
    Output(payment): Output<charge_card>,
) -> Result<(), StepError> {
    tx.put("confirmed", format!("{} by {}", order.total, payment.id).as_bytes())?;
    Ok(())
}

fn create_order() -> Saga<PostgresStore, Order> {
    Saga::named("create-order")
        .input::<Order>()
        .step::<reserve_stock>()
        .step::<charge_card>()
        .step::<confirm_order>()
        .build()
        .expect("create-order is a valid saga")
}

#[test]
fn the_saga_is_built() {
    assert_eq!(create_order().name(), "create-order");
}

#[test]
fn the_functions_are_called_as_ordinary_functions() {
    connection(|conn| {
        let order = Order { total: 12 };
        let reservation = ready(reserve_stock(conn, order.clone())).unwrap();
        assert_eq!(conn.get("reserved"), Some(b"12".to_vec()));
        ready(release_stock(conn, order.clone(), reservation)).unwrap();
        assert_eq!(conn.get("released"), Some(b"12 from 4".to_vec()));
        let ctx = StepContext::for_test("order-7:charge-card");
        let payment = ready(charge_card(&ctx, order.clone(), State(Gateway))).unwrap();
        assert_eq!(payment, Payment { id: "order-7:charge-card 12".to_owned() });
        ready(confirm_order(conn, order, Output(payment))).unwrap();
        assert_eq!(conn.get("confirmed"), Some(b"12 by order-7:charge-card 12".to_vec()));
        let ctx = StepContext::for_test("order-7:charge-card:undo");
        let refused = ready(refund_card(&ctx, Order { total: 0 }, None, State(Gateway))).unwrap_err();
        assert_eq!(refused.rejection().unwrap().message(), "nothing to refund for order-7:charge-card");
    });
}
