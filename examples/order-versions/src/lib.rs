//! A saga that changed while orders were under way. The second version reserves stock by another name and remembers the
//! shelf, weighs each order, and books a carrier before it confirms.

mod steps;
mod versions;

pub use crate::{
    steps::{
        Bank, Carrier, Order, Payment, Reserved, book_carrier, charge_card, confirm_order, reserve_stock, take_stock,
        weigh_order,
    },
    versions::{TABLES, changed, to_second, version_1, version_2},
};
