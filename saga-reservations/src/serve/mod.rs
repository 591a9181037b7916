//! `saga-reservations serve`: a store of reservations over gRPC and HTTP.

mod grpc;
mod health;
mod http;
mod options;
mod redis_url;
mod server;
mod signals;
mod store_url;
mod url_parser;

pub use self::options::Serve;
pub use self::redis_url::{InvalidRedisUrl, RedisUrl};
pub use self::store_url::{InvalidStoreUrl, StoreUrl};
