//! The versions, and the migration from the first to the second.

use saga_core::{
    Migration, Saga,
    saga::{MigrationError, SagaError},
};
use saga_sqlite::SqliteStore;

use crate::steps::{Order, Reserved, book_carrier, charge_card, confirm_order, reserve_stock, take_stock, weigh_order};

/// The shop's tables.
pub const TABLES: &str = "CREATE TABLE stock (pieces INTEGER NOT NULL); INSERT INTO stock VALUES (10);
    CREATE TABLE orders (key TEXT PRIMARY KEY)";

/// The first version.
///
/// # Errors
///
/// None, since the definition holds together.
pub fn version_1() -> Result<Saga<SqliteStore, Order>, SagaError> {
    Saga::named("create-order").input().step::<take_stock>().step::<charge_card>().step::<confirm_order>().build()
}

/// The same name and version with one more step, which the runtime refuses.
///
/// # Errors
///
/// None, since the definition holds together.
pub fn changed() -> Result<Saga<SqliteStore, Order>, SagaError> {
    Saga::named("create-order")
        .input()
        .step::<take_stock>()
        .step::<weigh_order>()
        .step::<charge_card>()
        .step::<confirm_order>()
        .build()
}

/// The second version.
///
/// # Errors
///
/// None, since the definition holds together.
pub fn version_2() -> Result<Saga<SqliteStore, Order>, SagaError> {
    Saga::named("create-order")
        .input()
        .version(2)
        .step::<reserve_stock>()
        .step::<weigh_order>()
        .step::<charge_card>()
        .step::<book_carrier>()
        .step::<confirm_order>()
        .build()
}

/// The migration: a running order has no shelf, and is not weighed.
///
/// # Errors
///
/// None, since the versions fit together.
pub fn to_second(
    version_1: &Saga<SqliteStore, Order>,
    version_2: &Saga<SqliteStore, Order>,
) -> Result<Migration<SqliteStore>, MigrationError> {
    Migration::between(version_1, version_2)
        .step_with::<take_stock, reserve_stock>(|pieces| Reserved { pieces, shelf: "anywhere".to_owned() })
        .assume_done::<weigh_order>()
        .build()
}
