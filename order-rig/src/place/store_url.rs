use anyhow::bail;

use super::{PostgresPlace, SqlitePlace, without_password};

/// The store that is used when none is given: a file in the folder that the program is started in.
pub const DEFAULT_STORE: &str = "sqlite:order-rig.db";

/// The database that the URL of a store names.
#[derive(Debug, Clone)]
pub enum StoreUrl {
    /// `sqlite:FILE`
    Sqlite(SqlitePlace),
    /// `postgres://user:password@host:port/database`
    Postgres(PostgresPlace),
}

impl StoreUrl {
    /// Reads a store's URL.
    pub fn parse(url: &str) -> anyhow::Result<Self> {
        let Some((scheme, path)) = url.split_once(':') else {
            let shown = without_password(url);
            bail!(
                "--store takes a URL such as {DEFAULT_STORE} or postgres://user:password@host/database, not {shown:?}"
            );
        };
        match scheme {
            "sqlite" => {
                let path = path.strip_prefix("//").unwrap_or(path);
                if path.is_empty() || path.starts_with(':') {
                    bail!("--store needs the path of a file behind sqlite:, as in {DEFAULT_STORE}");
                }
                Ok(Self::Sqlite(SqlitePlace(path.into())))
            }
            "postgres" | "postgresql" => Ok(Self::Postgres(PostgresPlace::parse(url)?)),
            _ => bail!("--store knows the schemes sqlite: and postgres:, as in {DEFAULT_STORE}, but not {scheme}:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::*;
    use crate::place::{Place as _, connect_transport};

    fn outside(url: &str) -> String {
        match StoreUrl::parse(url).expect("a good URL") {
            StoreUrl::Sqlite(place) => place.outside(),
            StoreUrl::Postgres(place) => place.outside(),
        }
        .display()
        .to_string()
    }

    #[test]
    fn a_url_names_a_database_and_the_book_outside_has_its_name() {
        assert_eq!(outside("sqlite:some/shop.db"), "some/shop.db.outside.db");
        assert_eq!(outside("postgres://u:p@h/the%20shop"), "order-rig-the_shop.outside.db");
        let StoreUrl::Sqlite(place) = StoreUrl::parse("sqlite:///tmp/a.db").expect("a good URL") else {
            panic!("it is a file");
        };
        assert_eq!(place.0, Path::new("/tmp/a.db"));
    }

    #[tokio::test]
    async fn other_urls_are_refused_in_one_sentence() {
        for (url, said) in [
            ("shop.db", "takes a URL such as sqlite:order-rig.db"),
            (
                "mysql://u:secret@h/d",
                "knows the schemes sqlite: and postgres:, as in sqlite:order-rig.db, but not mysql:",
            ),
            ("postgres://u:secret@h:port/d", "takes a URL such as postgres://user:password@host"),
            ("postgres?password=secret", "takes a URL such as sqlite:order-rig.db"),
            ("postgres:/u:secret@h/d", "takes a URL such as postgres://user:password@host"),
            ("sqlite:", "needs the path of a file"),
            ("sqlite::memory:", "needs the path of a file"),
        ] {
            let error = StoreUrl::parse(url).expect_err(url).to_string();
            assert!(error.contains(said) && !error.contains("secret") && !error.contains('\n'), "{error}");
        }
        assert!(connect_transport("memory:", Duration::ZERO).await.is_ok_and(|transport| transport.is_none()));
        for url in ["amqp:/u:secret@h", "amqp:u:secret@h", "amqp://us@er:secret@h:port"] {
            let error = connect_transport(url, Duration::ZERO).await.expect_err(url);
            assert!(!format!("{error:#} {error:?}").contains("secret"), "{error:?}");
        }
        let refused = connect_transport("nats://u:secret@h", Duration::ZERO).await.expect_err("unknown").to_string();
        assert!(refused.contains("knows memory:, amqp:, kafka: and sqs:, but not nats:"), "{refused}");
    }
}
