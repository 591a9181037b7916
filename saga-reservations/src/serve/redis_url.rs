use std::fmt;
use std::str::FromStr;

#[cfg(feature = "redis")]
use anyhow::Context as _;

use super::store_url::StoreUrl;
use crate::contract::ReservationsStore;

/// Where the holds are, if not in the store. Its password is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(String);

/// An address that is not one of Redis.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no address of Redis; write `redis://:PASSWORD@HOST:PORT`, or `rediss://` with TLS")]
pub struct InvalidRedisUrl;

impl FromStr for RedisUrl {
    type Err = InvalidRedisUrl;

    fn from_str(text: &str) -> Result<Self, InvalidRedisUrl> {
        let host = text.strip_prefix("redis://").or_else(|| text.strip_prefix("rediss://"));
        let host = host.filter(|host| !host.is_empty());
        host.map(|_| Self(text.to_owned())).ok_or(InvalidRedisUrl)
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisUrl(..)")
    }
}

impl RedisUrl {
    /// Opens the store with its holds in Redis.
    #[cfg(feature = "redis")]
    pub(super) async fn open_over(&self, store: &StoreUrl) -> anyhow::Result<std::sync::Arc<dyn ReservationsStore>> {
        let sql = store.open_sql().await.context("the store cannot be opened")?;
        let sql =
            sql.context("holds in Redis need a store that lasts: write `--store sqlite:FILE` or `postgres://..`")?;
        let connected = crate::RedisReservations::connect(&self.0, sql).await;
        Ok(std::sync::Arc::new(connected.context("the holds in Redis cannot be opened")?))
    }

    /// Says that it cannot.
    #[cfg(not(feature = "redis"))]
    #[expect(clippy::unused_async, reason = "with the feature it waits")]
    pub(super) async fn open_over(&self, _store: &StoreUrl) -> anyhow::Result<std::sync::Arc<dyn ReservationsStore>> {
        Err(anyhow::anyhow!(self.not_built()))
    }

    /// Names all that this address needs: `redis-tls` brings `redis`.
    #[cfg(any(test, not(feature = "redis")))]
    fn not_built(&self) -> String {
        let feature = if self.0.starts_with("rediss:") { "redis-tls" } else { "redis" };
        format!("this program was built without the feature `{feature}`; build it with `--features {feature}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_redis_is_never_shown() {
        let url: RedisUrl = "redis://:secret@h:6379".parse().unwrap();
        assert!(!format!("{url:?}").contains("secret"));
        "rediss://:secret@h:6379".parse::<RedisUrl>().unwrap();
        for wrong in ["", "redis:", "redis://", "rediss://", "redisss://:secret@h", "postgres://h"] {
            assert_eq!(wrong.parse::<RedisUrl>(), Err(InvalidRedisUrl));
        }
        for (url, feature) in [("redis://:secret@h", "redis"), ("rediss://:secret@h", "redis-tls")] {
            let said = url.parse::<RedisUrl>().unwrap().not_built();
            assert!(said.ends_with(&format!("build it with `--features {feature}`")), "{said}");
            assert!(!said.contains("secret"));
        }
        assert!(!InvalidRedisUrl.to_string().contains("secret"));
    }
}
