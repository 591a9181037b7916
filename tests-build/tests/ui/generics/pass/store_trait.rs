// pass: a step runs on every store that has a trait of the user
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::store::Store;
use saga_core::{Saga, StepError, saga_compensation, saga_step};

use crate::{connection, ready};

trait ShopDb: Store {
    fn add(conn: &mut Self::Conn, stock: i64) -> Result<(), StepError>;
}

impl ShopDb for MemoryStore {
    fn add(conn: &mut MemoryConn, stock: i64) -> Result<(), StepError> {
        conn.put("stock", stock.to_string().as_bytes())?;
        Ok(())
    }
}

#[saga_step(compensate = release)]
async fn reserve<S: ShopDb>(conn: &mut S::Conn, order: i64) -> Result<i64, StepError> {
    S::add(conn, -order)?;
    Ok(order)
}

#[saga_compensation]
async fn release<S>(conn: &mut <S as Store>::Conn, order: i64) -> Result<(), StepError>
where
    S: ShopDb,
{
    S::add(conn, order)
}

#[test]
fn it_is_a_step_of_that_store() {
    let saga: Saga<MemoryStore, i64> = Saga::named("stock").input::<i64>().step::<reserve>().build().unwrap();
    assert_eq!(saga.name(), "stock");
    connection(|conn| {
        ready(reserve::<MemoryStore>(conn, 3)).unwrap();
        assert_eq!(conn.get("stock"), Some(b"-3".to_vec()));
    });
}
