//! What an application reserves with.

mod client;
mod heartbeat;
mod held;

pub use self::client::ReservationsClient;
pub use self::heartbeat::HoldLost;
pub use self::held::Held;
