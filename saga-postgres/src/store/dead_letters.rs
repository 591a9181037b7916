//! Dead letters.

use async_trait::async_trait;
use saga_core::key::Tenant;
use saga_core::store::{
    DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterReason, DeadLetterState, DeadLetters, Message, NewDeadLetter,
    StoreError, WorkId,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row as _};

use crate::error::store_error;
use crate::rows::arrays::{Statement, column, placeholders};
use crate::rows::rows::{self, FromRow, clean};
use crate::store::store::PostgresStore;

/// The number of arguments of `bury_letters`.
const ARGUMENTS: usize = 12;

/// The columns of a [`DeadLetter`].
const SELECT_LETTERS: &str = "SELECT l.id, l.fingerprint, l.tenant, l.reason, l.detail, l.source, l.headers, l.payload, \
     l.message, l.attempts, l.seen, l.buried_at, l.state, l.decided_at, l.note FROM {schema}.dead_letters l ";

#[async_trait]
impl DeadLetters for PostgresStore {
    async fn add_dead_letters(&self, letters: Vec<NewDeadLetter>) -> Result<Vec<bool>, StoreError> {
        // All calls insert in one order, so that none waits in a circle.
        let mut order: Vec<usize> = (0..letters.len()).collect();
        order.sort_by_key(|index| letters[*index].fingerprint);
        let sorted: Vec<&NewDeadLetter> = order.iter().map(|index| &letters[*index]).collect();
        let sql = self.sql(&format!("SELECT {{schema}}.bury_letters({})", placeholders(ARGUMENTS)));
        let query = sqlx::query(sql).bind(Vec::<i32>::new()).bind(vec![0; letters.len()]);
        let query = bind_dead_letters(query, &sorted);
        let rows = self.write_rows("add_dead_letters", query).await?;
        let answers: Option<Vec<bool>> = rows
            .first()
            .map(|row| row.try_get(0))
            .transpose()
            .map_err(|error| store_error("add_dead_letters", error))?;
        let mut new = vec![false; letters.len()];
        for (index, is_new) in order.into_iter().zip(answers.unwrap_or_default()) {
            new[index] = is_new;
        }
        Ok(new)
    }

    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        let sql = format!(
            "{SELECT_LETTERS} WHERE l.tenant = $1 AND ($2::text IS NULL OR l.state = $2) \
             AND ($3::text IS NULL OR l.reason = $3) AND l.id > $4 ORDER BY l.id LIMIT $5"
        );
        let query = sqlx::query(self.sql(&sql))
            .bind(filter.tenant.as_str().to_owned())
            .bind(filter.state.map(DeadLetterState::as_str))
            .bind(filter.reason.map(DeadLetterReason::as_str))
            .bind(filter.after.map_or(i64::MIN, |after| after.0))
            .bind(rows::limit(filter.limit));
        let rows = self.read_rows("dead_letters", query).await?;
        rows.iter()
            .map(DeadLetter::from_row)
            .collect::<Result<_, _>>()
            .map_err(|error| store_error("dead_letters", error))
    }

    async fn dead_letter(&self, tenant: &Tenant, id: DeadLetterId) -> Result<Option<DeadLetter>, StoreError> {
        let sql = self.sql(&format!("{SELECT_LETTERS} WHERE l.id = $1 AND l.tenant = $2"));
        let query = sqlx::query(sql).bind(id.0).bind(tenant.as_str().to_owned());
        let rows = self.read_rows("dead_letter", query).await?;
        rows.first().map(DeadLetter::from_row).transpose().map_err(|error| store_error("dead_letter", error))
    }

    async fn replay_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        work: WorkId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        let (store, tenant, note) = (self.clone(), tenant.clone(), clean(note));
        self.in_transaction("replay_dead_letter", move |conn| {
            Box::pin(async move {
                let replayed = store.replay_on(conn, &tenant, id, work, &note).await;
                replayed.map_err(|error| store_error("replay_dead_letter", error))
            })
        })
        .await
    }

    async fn discard_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        let (store, tenant, note) = (self.clone(), tenant.clone(), clean(note));
        self.in_transaction("discard_dead_letter", move |conn| {
            Box::pin(async move {
                let discarded = store.discard_on(conn, &tenant, id, &note).await;
                discarded.map_err(|error| store_error("discard_dead_letter", error))
            })
        })
        .await
    }
}

impl PostgresStore {
    async fn replay_on(
        &self,
        conn: &mut PgConnection,
        tenant: &Tenant,
        id: DeadLetterId,
        work: WorkId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, sqlx::Error> {
        let Some((state, message)) = self.lock_dead_letter(conn, tenant, id).await? else { return Ok(None) };
        if let (DeadLetterState::Open, Some(message)) = (state, message) {
            self.decide(conn, id, DeadLetterState::Replayed, note).await?;
            self.receive_again(conn, work, &message).await?;
        }
        Ok(Some(state))
    }

    async fn discard_on(
        &self,
        conn: &mut PgConnection,
        tenant: &Tenant,
        id: DeadLetterId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, sqlx::Error> {
        let Some((state, _)) = self.lock_dead_letter(conn, tenant, id).await? else { return Ok(None) };
        if state == DeadLetterState::Open {
            self.decide(conn, id, DeadLetterState::Discarded, note).await?;
        }
        Ok(Some(state))
    }

    /// Locks a letter, so that the second of two decisions sees the first.
    async fn lock_dead_letter(
        &self,
        conn: &mut PgConnection,
        tenant: &Tenant,
        id: DeadLetterId,
    ) -> Result<Option<(DeadLetterState, Option<Message>)>, sqlx::Error> {
        let sql = "SELECT state, message FROM {schema}.dead_letters WHERE id = $1 AND tenant = $2 FOR UPDATE";
        let query = sqlx::query(self.sql(sql)).bind(id.0).bind(tenant.as_str()).persistent(false);
        let Some(row) = query.fetch_optional(conn).await? else { return Ok(None) };
        Ok(Some((rows::parsed(&row, 0, DeadLetterState::parse)?, rows::message_or_none(&row, 1)?)))
    }

    async fn decide(
        &self,
        conn: &mut PgConnection,
        id: DeadLetterId,
        state: DeadLetterState,
        note: &str,
    ) -> Result<(), sqlx::Error> {
        let sql =
            "UPDATE {schema}.dead_letters SET state = $2, decided_at = clock_timestamp(), note = $3 WHERE id = $1";
        let query = sqlx::query(self.sql(sql)).bind(id.0).bind(state.as_str()).bind(note);
        query.persistent(false).execute(conn).await.map(drop)
    }
}

/// Binds the columns of letters, in the argument order of both functions.
pub(crate) fn bind_dead_letters<'q>(query: Statement<'q>, letters: &[&NewDeadLetter]) -> Statement<'q> {
    query
        .bind(column(letters, |letter| letter.id.0))
        .bind(column(letters, |letter| letter.fingerprint.to_vec()))
        .bind(column(letters, |letter| letter.tenant.as_str()))
        .bind(column(letters, |letter| letter.reason.as_str()))
        .bind(column(letters, |letter| clean(&letter.detail)))
        .bind(column(letters, |letter| clean(&letter.source)))
        .bind(column(letters, |letter| serde_json::json!(letter.headers).to_string()))
        .bind(column(letters, |letter| &*letter.payload))
        .bind(column(letters, |letter| letter.message.as_ref().map(Message::encode)))
        .bind(column(letters, |letter| i64::from(letter.attempts)))
}

impl FromRow for DeadLetter {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            letter: NewDeadLetter::from_row(row)?,
            seen: rows::unsigned(row, 10)?,
            first_seen_at: rows::moment(row, 11)?,
            state: rows::parsed(row, 12, DeadLetterState::parse)?,
            decided_at: rows::moment_or_none(row, 13)?,
            note: row.try_get(14)?,
        })
    }
}

impl FromRow for NewDeadLetter {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let fingerprint: &[u8] = row.try_get(1)?;
        Ok(Self {
            id: DeadLetterId(row.try_get(0)?),
            fingerprint: fingerprint.try_into().map_err(|_| rows::unreadable(1, "a fingerprint has 32 bytes"))?,
            tenant: rows::tenant(row, 2)?,
            reason: rows::parsed(row, 3, DeadLetterReason::parse)?,
            detail: row.try_get(4)?,
            source: row.try_get(5)?,
            headers: serde_json::from_str(rows::text(row, 6)?).map_err(|error| rows::unreadable(6, error))?,
            payload: row.try_get(7)?,
            message: rows::message_or_none(row, 8)?,
            attempts: rows::narrow(row, 9)?,
        })
    }
}
