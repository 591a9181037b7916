// pass: a step runs on every store whose connection has a trait of the user
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::saga::SagaError;
use saga_core::store::Store;
use saga_core::{Saga, StepError, saga_compensation, saga_step};

use crate::{connection, ready};

trait ShopConn: Send {
    fn add(&mut self, stock: i64) -> Result<(), StepError>;
}

impl ShopConn for MemoryConn {
    fn add(&mut self, stock: i64) -> Result<(), StepError> {
        self.put("stock", stock.to_string().as_bytes())?;
        Ok(())
    }
}

#[saga_step(compensate = release)]
async fn reserve<C: ShopConn>(conn: &mut C, order: i64) -> Result<i64, StepError> {
    conn.add(-order)?;
    Ok(order)
}

#[saga_compensation]
async fn release<C>(conn: &mut C, order: i64) -> Result<(), StepError>
where
    C: ShopConn,
{
    conn.add(order)
}

fn everywhere<S: Store<Conn: ShopConn>>() -> Result<Saga<S, i64>, SagaError> {
    Saga::named("stock").input::<i64>().step::<reserve>().build()
}

#[test]
fn one_definition_fits_each_of_them() {
    assert_eq!(everywhere::<MemoryStore>().unwrap().name(), "stock");
    connection(|conn| {
        assert_eq!(ready(reserve(conn, 3)).unwrap(), 3);
        ready(release(conn, 5)).unwrap();
        assert_eq!(conn.get("stock"), Some(b"5".to_vec()));
    });
}
