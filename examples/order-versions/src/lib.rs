//! A saga whose definition changes while orders run. In the second version, the reservation has another name and stores the
//! shelf, each order is weighed, and a carrier is booked before the confirmation.

mod steps;
mod versions;

pub use crate::{
    steps::{
        Bank, Carrier, Order, Payment, Reserved, book_carrier, charge_card, confirm_order, reserve_stock, take_stock,
        weigh_order,
    },
    versions::{TABLES, changed, to_second, version_1, version_2},
};
