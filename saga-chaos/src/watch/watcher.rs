use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use saga_testkit::checker::Standing;
use sqlx::{Connection as _, PgConnection, Row as _};
use tokio::time::{Instant, sleep};

use crate::world::{Diary, Happened, Waves};

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The orders that ended, or changed how they ended, since shortly before the last look.
const ENDED: &str = "SELECT s.key, p.status, extract(epoch FROM p.ended_at)::float8 AS ended
                     FROM saga.sagas s JOIN saga.progress p USING (id)
                     WHERE p.ended_at IS NOT NULL AND p.ended_at > to_timestamp($1)";
/// How far a commit may lag behind the time that is written in it.
const OVERLAP_SECONDS: f64 = 20.0;

/// A client that asks again and again for the state of the orders.
#[derive(Debug)]
pub(crate) struct Watcher {
    url: String,
    diary: Arc<Diary>,
    waves: Arc<Waves>,
    watched: Mutex<Watched>,
}

/// What was seen so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watched {
    pub(crate) ended: BTreeMap<String, Standing>,
    /// The longest time in which no order ended, while there were some under way.
    pub(crate) standstill: Duration,
}

impl Watcher {
    pub(crate) fn new(url: &str, diary: &Arc<Diary>, waves: &Arc<Waves>) -> Self {
        let (diary, waves) = (Arc::clone(diary), Arc::clone(waves));
        Self { url: url.to_owned(), diary, waves, watched: Mutex::default() }
    }

    /// Looks, for as long as it is polled, over whatever happens to the database.
    pub(crate) async fn watch(&self) {
        let mut since = 0.0;
        let mut moved = Instant::now();
        loop {
            if let Ok(mut conn) = PgConnection::connect(&self.url).await {
                while let Ok(rows) = sqlx::query(ENDED).bind(since - OVERLAP_SECONDS).fetch_all(&mut conn).await {
                    let news = self.take(&rows, &mut since);
                    if news > 0 {
                        moved = Instant::now();
                    }
                    self.note_standstill(moved.elapsed());
                    sleep(LOOK_EVERY).await;
                }
            }
            self.note_standstill(moved.elapsed());
            sleep(LOOK_EVERY).await;
        }
    }

    /// What was seen so far.
    pub(crate) fn watched(&self) -> Watched {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note_standstill(&self, since: Duration) {
        if self.waves.under_way() == 0 {
            return;
        }
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.standstill = watched.standstill.max(since);
    }

    fn take(&self, rows: &[sqlx::postgres::PgRow], since: &mut f64) -> usize {
        let mut news = 0;
        for row in rows {
            let (order, status): (String, String) = (row.get("key"), row.get("status"));
            let standing = match status.as_str() {
                "completed" => Standing::Completed,
                "compensated" => Standing::Compensated,
                _ => continue,
            };
            *since = since.max(row.get("ended"));
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            if watched.ended.insert(order.clone(), standing) != Some(standing) {
                news += 1;
                self.diary.enter(0, Happened::Seen { order, standing });
            }
        }
        news
    }
}
