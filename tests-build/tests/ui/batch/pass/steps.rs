use saga_core::{
    Batch, BatchResults, Event, IntoStepError, Output, Saga, Service, State, StepError,
    memory::{MemoryConn, MemoryStore},
    saga_compensation, saga_step,
};
use serde::{Deserialize, Serialize};

type StepResult<T> = Result<T, StepError>;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    pieces: u32,
}

#[derive(Serialize, Deserialize)]
struct Reserved(u32);

impl Event for Reserved {
    const NAME: &'static str = "reserved";
}

#[derive(Debug)]
struct SoldOut;

impl IntoStepError for SoldOut {
    fn into_step_error(self) -> StepError {
        StepError::reject("sold out")
    }
}

#[saga_step(compensate = release_stock)]
async fn reserve_stock(_tx: &mut MemoryConn, orders: Batch<Order>) -> Result<BatchResults<String>, StepError> {
    Ok(orders.map_each(|order| format!("{} pieces", order.pieces)))
}

#[saga_compensation]
async fn release_stock(_tx: &mut MemoryConn, _order: Order, _reservation: String) -> Result<(), StepError> {
    Ok(())
}

#[saga_step(no_compensation)]
async fn through_an_alias(
    _tx: &mut MemoryConn,
    orders: Batch<Order>,
    State(limit): State<u32>,
) -> StepResult<BatchResults<u32>> {
    Ok(orders.map_each_with(|ctx, order| {
        if order.pieces > limit {
            return Err(StepError::reject("too many"));
        }
        ctx.emit(&Reserved(order.pieces))?;
        Ok(order.pieces)
    }))
}

#[saga_step(no_compensation)]
async fn own_error(_tx: &mut MemoryConn, orders: Batch<Order>) -> Result<BatchResults<u32>, SoldOut> {
    Ok(orders.map_each(|order| if order.pieces > 9 { Err(SoldOut) } else { Ok(order.pieces) }))
}

#[saga_step(no_compensation)]
async fn with_question_mark(_tx: &mut MemoryConn, texts: Batch<String>) -> Result<BatchResults<u32>, StepError> {
    Ok(texts.map_each(|text| -> Result<u32, StepError> { Ok(text.parse::<u32>()?) }))
}

trait ShopConn: Send {
    fn take(&mut self, pieces: u32) -> Result<(), StepError>;
}

impl ShopConn for MemoryConn {
    fn take(&mut self, pieces: u32) -> Result<(), StepError> {
        self.add("taken", pieces.into())?;
        Ok(())
    }
}

#[saga_step]
async fn on_any_connection<C: ShopConn>(conn: &mut C, orders: Batch<Order>) -> Result<BatchResults<()>, StepError> {
    conn.take(orders.iter().map(|order| order.pieces).sum())?;
    Ok(orders.map_each(|_| ()))
}

mod contracts {
    use saga_core::{StepError, saga_step};

    #[saga_step(service = "stock", no_compensation)]
    pub async fn count_stock(pieces: u32) -> Result<u32, StepError>;
}

#[saga_step(implements = contracts::count_stock)]
async fn count_stock(_tx: &mut MemoryConn, pieces: Batch<u32>) -> Result<BatchResults<u32>, StepError> {
    Ok(pieces.map_each(|pieces| pieces + 1))
}

#[test]
fn batch_steps_are_added_like_any_other() {
    let saga: Saga<MemoryStore, Order> = Saga::named("create-order")
        .input::<Order>()
        .step::<reserve_stock>()
        .step::<through_an_alias>()
        .step::<own_error>()
        .step_from::<with_question_mark, _>(|_: &Order, Output(pieces): Output<own_error>| pieces.to_string())
        .step::<on_any_connection>()
        .build()
        .unwrap();
    assert_eq!(saga.name(), "create-order");
    let stock = Service::<MemoryStore>::named("stock").host::<count_stock>().build();
    assert!(stock.is_ok());
}

#[test]
fn batch_steps_are_called_with_inputs_of_a_test() {
    let mut transaction = MemoryStore::new().transaction();
    let orders = Batch::for_test([3, 12].map(|pieces| Order { pieces }));
    let answers = crate::ready(own_error(transaction.conn(), orders)).map(BatchResults::into_results);
    let answers = answers.ok().unwrap();
    assert_eq!(answers[0].as_ref().ok(), Some(&3));
    assert!(answers[1].is_err());
}
