//! Where things are: the database of the store and the shop, the book of the services outside, the broker.

mod broker;
#[expect(clippy::module_inception, reason = "it is the place that all others are kinds of")]
mod place;
mod postgres;
mod sqlite;
mod store_url;
mod transport;
mod url;

pub use broker::Broker;
pub use place::{Place, exists, read_book};
pub use postgres::PostgresPlace;
pub use sqlite::SqlitePlace;
pub use store_url::{DEFAULT_STORE, StoreUrl};
pub use transport::connect_transport;
use url::pooler_in;
pub use url::without_password;
