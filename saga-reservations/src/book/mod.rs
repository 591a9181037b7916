//! The rules, without a database: what may be done with reservations, and what becomes of them.

mod book;
mod holding;
mod name;
mod operation;
mod refusal;
mod reservation;
mod reserve;
mod resource;

pub use self::book::Book;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) use self::book::{Change, Changes};
pub use self::name::{InvalidName, NAME_BYTES_MAX, ReservationKey, ResourceName};
pub use self::operation::{Action, Late, Operation};
pub use self::refusal::{Reason, Refusal};
pub use self::reservation::{FencingToken, Line, Reservation, State};
#[cfg(feature = "redis")]
pub(crate) use self::reserve::check_ttl;
pub use self::reserve::{InvalidReserve, LINES_MAX, Reserve, TTL_MAX, TTL_MIN};
pub use self::resource::{CAPACITY_MAX, Resource};
