use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;

use super::redis_url::RedisUrl;
use super::server::Server;
use super::signals;
use super::store_url::StoreUrl;
use super::url_parser::url;
use crate::Sweeper;

/// The options of `saga-reservations serve`, for programs that have a command line of their own.
#[derive(Debug, Clone, Args)]
pub struct Serve {
    /// Where the reservations are kept: `sqlite:FILE`, `postgres://USER@HOST/DATABASE`, or `memory:` for a test.
    #[arg(long, value_name = "URL", env = "SAGA_RESERVATIONS_STORE", hide_env_values = true, value_parser = url::<StoreUrl>())]
    store: StoreUrl,
    /// Where the holds are, if not in the store: `redis://:PASSWORD@HOST:PORT`. All servers of a store must have the same.
    #[arg(long, value_name = "URL", env = "SAGA_RESERVATIONS_REDIS", hide_env_values = true, value_parser = url::<RedisUrl>())]
    redis: Option<RedisUrl>,
    /// The address of gRPC, such as 127.0.0.1:50051; with port 0 a free one is chosen.
    #[arg(long, value_name = "ADDR", required_unless_present = "http")]
    grpc: Option<SocketAddr>,
    /// The address of HTTP, such as 127.0.0.1:8080; with port 0 a free one is chosen.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// How often holds that are over are written down as expired, in milliseconds.
    #[arg(long, value_name = "MILLIS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    sweep_interval: u64,
    /// For how many days ended reservations are kept. A request must not be repeated after that. With Redis, a hold that ended
    /// without a confirmation may be forgotten after one day already.
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u16).range(1..))]
    keep_days: u16,
}

impl Serve {
    /// Serves until the process gets SIGTERM or SIGINT. Requests under way are then answered, for ten seconds at most.
    ///
    /// It prints `gRPC listens on ADDR` and `HTTP listens on ADDR` when it is ready.
    ///
    /// # Errors
    /// When the store cannot be opened, an address cannot be listened on, or a server fails.
    ///
    /// # Cancel safety
    /// Dropping it ends it at once. Requests under way take effect whole or not at all.
    pub async fn run(self) -> anyhow::Result<()> {
        let stop = signals::stop()?;
        let store = match &self.redis {
            Some(redis) => redis.open_over(&self.store).await?,
            None => self.store.open().await.context("the store cannot be opened")?,
        };
        let sweeper = Sweeper::default()
            .interval(Duration::from_millis(self.sweep_interval))
            .keep(Duration::from_hours(24 * u64::from(self.keep_days)));
        Server::bind(store, sweeper, self.grpc, self.http).await?.run(stop).await
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        serve: Serve,
    }

    #[test]
    fn no_password_is_shown() {
        let (store, redis) = ("postgres://ada:secret@h/d", "redis://:secret@h");
        let program = Program::parse_from(["p", "--store", store, "--redis", redis, "--http", "127.0.0.1:0"]);
        let shown = format!("{program:?}");
        assert!(shown.contains("Postgres(..)") && !shown.contains("secret"), "{shown}");
    }
}
