//! A private broker that speaks Kafka's protocol: tansu, a program in Rust, behind a gateway that repairs two of its answers.

mod bytes;
mod gateway;
mod repairs;
mod server;

pub use self::server::TansuServer;
