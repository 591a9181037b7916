use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use rusqlite::{Connection as Book, OpenFlags};
use sqlx::{Connection as _, PgConnection};
use tokio::time::{Instant, sleep};

use crate::world::{Database, Waves};

const LOOK_EVERY: Duration = Duration::from_millis(300);

/// What is asked of each database, and how it is called.
const QUESTIONS: [(&str, &str); 5] = [
    ("sagas that are unfinished or stuck", "saga.progress WHERE ended_at IS NULL"),
    ("messages that wait to be sent", "saga.outbox"),
    ("ordering keys that are parked", "saga.parked"),
    ("rows of work", "saga.work"),
    ("dead letters that are open", "saga.dead_letters WHERE state = 'open'"),
];

/// The same where what has ended is purged.
const NOT_PURGED: (&str, &str) = ("sagas that are not purged", "saga.sagas");

/// Something that should not be there when everything is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotAtRest {
    count: i64,
    what: String,
    /// The command that shows it.
    command: String,
}

impl fmt::Display for NotAtRest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}; look: {}", self.count, self.what, self.command)
    }
}

/// Waits until everything is over, for so long at most, and says what is not.
pub(crate) async fn wait_for_rest(
    databases: &[Database],
    book: &Path,
    waves: &Waves,
    limit: Duration,
) -> anyhow::Result<Vec<NotAtRest>> {
    let begin = Instant::now();
    loop {
        let found = look_for_rest(databases, book, waves).await;
        match found {
            Ok(found) if found.is_empty() => return Ok(found),
            found if begin.elapsed() >= limit => return found,
            _ => sleep(LOOK_EVERY).await,
        }
    }
}

/// Has everything go on whenever something came late, until `limit` is over, and says what is not at rest then.
pub(crate) async fn come_to_rest(
    limit: Duration,
    mut look: impl AsyncFnMut() -> anyhow::Result<Vec<NotAtRest>>,
    mut go_on: impl AsyncFnMut() -> anyhow::Result<Vec<NotAtRest>>,
) -> anyhow::Result<Vec<NotAtRest>> {
    let begin = Instant::now();
    loop {
        let late = look().await?;
        if late.is_empty() || begin.elapsed() >= limit {
            return Ok(late);
        }
        let not_at_rest = go_on().await?;
        if !not_at_rest.is_empty() {
            return Ok(not_at_rest);
        }
    }
}

/// Looks once.
pub(crate) async fn look_for_rest(
    databases: &[Database],
    book: &Path,
    waves: &Waves,
) -> anyhow::Result<Vec<NotAtRest>> {
    let purged = waves.purges().then_some(NOT_PURGED);
    let mut found = Vec::new();
    let under_way = i64::try_from(waves.under_way())?;
    if under_way > 0 {
        let what = "files of orders are still being run".to_owned();
        found.push(NotAtRest { count: under_way, what, command: "tail orders-*.log".to_owned() });
    }
    for Database { role, url, .. } in databases {
        let mut conn = PgConnection::connect(url).await.with_context(|| format!("cannot look at {}", role.name()))?;
        for (what, rows) in QUESTIONS.into_iter().chain(purged) {
            let statement = format!("SELECT count(*) FROM {rows}");
            let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).fetch_one(&mut conn).await?;
            if count > 0 {
                let command = format!("psql {url} -xc \"SELECT * FROM {rows}\"");
                found.push(NotAtRest { count, what: format!("{what} in {}", role.name()), command });
            }
        }
        conn.close().await?;
    }
    let calls = calls_under_way(book)?;
    if calls > 0 {
        let command = format!("sqlite3 {} 'SELECT * FROM journal ORDER BY id DESC'", book.display());
        found.push(NotAtRest { count: calls, what: "calls are still held outside".to_owned(), command });
    }
    Ok(found)
}

fn calls_under_way(book: &Path) -> anyhow::Result<i64> {
    let book = Book::open_with_flags(book, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    book.busy_timeout(Duration::from_secs(10))?;
    let open =
        "SELECT coalesce(sum(CASE event WHEN 'called' THEN 1 WHEN 'answered' THEN -1 ELSE 0 END), 0) FROM journal";
    Ok(book.query_row(open, [], |row| row.get(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late() -> Vec<NotAtRest> {
        vec![NotAtRest { count: 1, what: "rows of work in orders".to_owned(), command: "psql".to_owned() }]
    }

    #[tokio::test]
    async fn what_is_still_late_at_the_limit_is_not_at_rest() {
        let found = come_to_rest(Duration::ZERO, async || Ok(late()), async || Ok(Vec::new())).await;
        assert_eq!(found.unwrap(), late());
    }

    #[tokio::test]
    async fn what_came_late_and_ended_is_at_rest() {
        let (mut looks, mut went_on) = (vec![Vec::new(), late()], 0);
        let look = async || anyhow::Ok(looks.pop().unwrap_or_default());
        let go_on = async || {
            went_on += 1;
            anyhow::Ok(Vec::new())
        };
        let found = come_to_rest(Duration::from_mins(1), look, go_on).await.unwrap();
        assert!(found.is_empty() && went_on == 1);
    }

    #[tokio::test]
    async fn what_does_not_come_to_rest_is_not_looked_at_again() {
        let found = come_to_rest(Duration::from_mins(1), async || Ok(late()), async || Ok(late())).await;
        assert_eq!(found.unwrap(), late());
    }
}
