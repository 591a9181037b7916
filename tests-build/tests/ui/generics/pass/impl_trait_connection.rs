// pass: a step takes its connection as `&mut impl Trait`, also beside type parameters of its own
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::SagaError;
use saga_core::store::Store;
use saga_core::{Saga, StepContext, StepError, saga_compensation, saga_step};

use crate::{connection, ready};

trait Stock: Send {
    fn add(&mut self, pieces: i64) -> Result<(), StepError>;
}

impl Stock for MemoryConn {
    fn add(&mut self, pieces: i64) -> Result<(), StepError> {
        self.put("stock", pieces.to_string().as_bytes())?;
        Ok(())
    }
}

#[saga_step(compensate = release)]
async fn reserve(conn: &mut impl Stock, order: i64) -> Result<i64, StepError> {
    conn.add(-order)?;
    Ok(order)
}

#[saga_compensation]
async fn release(conn: &mut (impl Stock + Sync), _ctx: &StepContext, order: i64) -> Result<(), StepError> {
    conn.add(order)
}

trait Price: Send + 'static {
    const CENTS: i64;
}

struct Tea;

impl Price for Tea {
    const CENTS: i64 = 350;
}

#[saga_step(no_compensation)]
async fn book<P: Price>(conn: &mut impl Stock, order: i64) -> Result<i64, StepError> {
    conn.add(order * P::CENTS)?;
    Ok(order * P::CENTS)
}

fn everywhere<S: Store<Conn: Stock + Sync>>() -> Result<Saga<S, i64>, SagaError> {
    Saga::named("stock").input::<i64>().step::<reserve>().step::<book<Tea>>().build()
}

#[test]
fn one_definition_fits_each_of_them() {
    assert_eq!(everywhere::<MemoryStore>().unwrap().name(), "stock");
    connection(|conn| {
        assert_eq!(ready(reserve(conn, 3)).unwrap(), 3);
        assert_eq!(conn.get("stock"), Some(b"-3".to_vec()));
        assert_eq!(ready(book::<Tea>(conn, 2)).unwrap(), 700);
    });
}
