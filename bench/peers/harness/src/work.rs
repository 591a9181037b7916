//! The order work: three steps, each one row in a table of its own, and the undos of two of them.

use serde::{Deserialize, Serialize};

/// One order, the input of a saga.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Order {
    /// Its number, from 0 on.
    pub id: i64,
    /// What it costs.
    pub amount: i64,
    /// Whether its third step fails, so that the first two are undone.
    pub is_declined: bool,
}

impl Order {
    /// The third step's check of the order.
    ///
    /// # Errors
    /// The order is declined.
    pub fn check(&self) -> Result<(), Declined> {
        if self.is_declined { Err(Declined) } else { Ok(()) }
    }
}

/// The third step's failure, which is final: trying again changes nothing.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, thiserror::Error)]
#[error("the order is declined")]
pub struct Declined;

/// What writes one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// The first step.
    Reserve,
    /// The second step.
    Charge,
    /// The third step, which is not done for a declined order.
    Confirm,
    /// The undo of [`Step::Charge`].
    Refund,
    /// The undo of [`Step::Reserve`].
    Release,
}

impl Step {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Reserve, Self::Charge, Self::Confirm, Self::Refund, Self::Release];

    /// The table that it writes to.
    pub const fn table(self) -> &'static str {
        match self {
            Self::Reserve => "reservations",
            Self::Charge => "payments",
            Self::Confirm => "confirmations",
            Self::Refund => "refunds",
            Self::Release => "releases",
        }
    }

    /// The statement that it is: `$1` is the order's number, `$2` its amount.
    pub const fn insert(self) -> &'static str {
        match self {
            Self::Reserve => "INSERT INTO reservations (order_id, amount) VALUES ($1, $2)",
            Self::Charge => "INSERT INTO payments (order_id, amount) VALUES ($1, $2)",
            Self::Confirm => "INSERT INTO confirmations (order_id, amount) VALUES ($1, $2)",
            Self::Refund => "INSERT INTO refunds (order_id, amount) VALUES ($1, $2)",
            Self::Release => "INSERT INTO releases (order_id, amount) VALUES ($1, $2)",
        }
    }

    /// The statement that makes its table. A row's key is random, as identifiers in such tables are.
    pub const fn create_table(self) -> &'static str {
        match self {
            Self::Reserve => {
                "CREATE TABLE reservations (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), \
                 order_id bigint NOT NULL, amount bigint NOT NULL)"
            }
            Self::Charge => {
                "CREATE TABLE payments (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), \
                 order_id bigint NOT NULL, amount bigint NOT NULL)"
            }
            Self::Confirm => {
                "CREATE TABLE confirmations (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), \
                 order_id bigint NOT NULL, amount bigint NOT NULL)"
            }
            Self::Refund => {
                "CREATE TABLE refunds (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), \
                 order_id bigint NOT NULL, amount bigint NOT NULL)"
            }
            Self::Release => {
                "CREATE TABLE releases (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), \
                 order_id bigint NOT NULL, amount bigint NOT NULL)"
            }
        }
    }
}
