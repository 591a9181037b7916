//! Dead letters.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use saga_core::key::Tenant;
use saga_core::store::{
    DeadLetter, DeadLetterFilter, DeadLetterId, DeadLetterReason, DeadLetterState, DeadLetters, Message, NewDeadLetter,
    StoreError, Timestamp, WorkId,
};

use crate::statements::rows::{self, FromRow};
use crate::store::inbox::receive_again;
use crate::store::store::SqliteStore;
use crate::writer::session::Session;

/// The columns of a [`DeadLetter`]. A condition follows.
macro_rules! select_letters {
    ($condition:expr) => {
        concat!(
            "SELECT id, fingerprint, tenant, reason, detail, source, headers, payload, message, attempts, seen, ",
            "buried_at, state, decided_at, note FROM saga_dead_letters ",
            $condition
        )
    };
}

#[async_trait]
impl DeadLetters for SqliteStore {
    async fn add_dead_letters(&self, letters: Vec<NewDeadLetter>) -> Result<Vec<bool>, StoreError> {
        self.call("add_dead_letters", move |session| {
            let now = session.now();
            letters.iter().map(|letter| Ok(insert_open(&session.conn, letter, now)?)).collect()
        })
        .await
    }

    async fn dead_letters(&self, filter: &DeadLetterFilter) -> Result<Vec<DeadLetter>, StoreError> {
        let filter = filter.clone();
        self.query("dead_letters", move |conn| {
            conn.prepare_cached(select_letters!(
                "WHERE tenant = ?1 AND (?2 IS NULL OR state = ?2) AND (?3 IS NULL OR reason = ?3) AND id > ?4 \
                 ORDER BY id LIMIT ?5"
            ))?
            .query_map(
                (
                    filter.tenant.as_str(),
                    filter.state.map(DeadLetterState::as_str),
                    filter.reason.map(DeadLetterReason::as_str),
                    filter.after.map_or(i64::MIN, |after| after.0),
                    rows::limit(filter.limit),
                ),
                DeadLetter::from_row,
            )?
            .collect()
        })
        .await
    }

    async fn dead_letter(&self, tenant: &Tenant, id: DeadLetterId) -> Result<Option<DeadLetter>, StoreError> {
        let tenant = tenant.clone();
        self.query("dead_letter", move |conn| {
            conn.prepare_cached(select_letters!("WHERE id = ?1 AND tenant = ?2"))?
                .query_row((id.0, tenant.as_str()), DeadLetter::from_row)
                .optional()
        })
        .await
    }

    async fn replay_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        work: WorkId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        let (tenant, note) = (tenant.clone(), note.to_owned());
        self.call("replay_dead_letter", move |session| {
            let Some((state, message)) = state_and_message(&session.conn, &tenant, id)? else { return Ok(None) };
            if let (DeadLetterState::Open, Some(message)) = (state, message) {
                decide(session, id, DeadLetterState::Replayed, &note)?;
                receive_again(session, work, &message, session.now())?;
            }
            Ok(Some(state))
        })
        .await
    }

    async fn discard_dead_letter(
        &self,
        tenant: &Tenant,
        id: DeadLetterId,
        note: &str,
    ) -> Result<Option<DeadLetterState>, StoreError> {
        let (tenant, note) = (tenant.clone(), note.to_owned());
        self.call("discard_dead_letter", move |session| {
            let Some((state, _)) = state_and_message(&session.conn, &tenant, id)? else { return Ok(None) };
            if state == DeadLetterState::Open {
                decide(session, id, DeadLetterState::Discarded, &note)?;
            }
            Ok(Some(state))
        })
        .await
    }
}

/// Inserts a letter, or counts it where one with its fingerprint is open; answers whether it is new.
pub(crate) fn insert_open(conn: &Connection, letter: &NewDeadLetter, now: Timestamp) -> rusqlite::Result<bool> {
    let sql = "UPDATE saga_dead_letters SET seen = seen + 1 WHERE fingerprint = ?1 AND state = 'open'";
    if conn.prepare_cached(sql)?.execute([letter.fingerprint])? > 0 {
        return Ok(false);
    }
    insert(conn, letter, DeadLetterState::Open, now)?;
    Ok(true)
}

/// Inserts a letter that is discarded from the beginning.
pub(crate) fn insert_discarded(session: &Session, letter: &NewDeadLetter, note: &str) -> rusqlite::Result<()> {
    insert(&session.conn, letter, DeadLetterState::Discarded, session.now())?;
    decide(session, letter.id, DeadLetterState::Discarded, note)
}

fn insert(conn: &Connection, letter: &NewDeadLetter, state: DeadLetterState, now: Timestamp) -> rusqlite::Result<()> {
    let sql = "INSERT INTO saga_dead_letters (id, fingerprint, tenant, reason, detail, source, headers, payload, \
         message, attempts, seen, buried_at, state, saga_key) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 1, ?11, ?12, ?13)";
    conn.prepare_cached(sql)?.execute(params![
        letter.id.0,
        letter.fingerprint,
        letter.tenant.as_str(),
        letter.reason.as_str(),
        letter.detail,
        letter.source,
        rows::pairs_text(&letter.headers),
        letter.payload,
        letter.message.as_ref().map(Message::encode),
        letter.attempts,
        now.0,
        state.as_str(),
        letter.saga_key(),
    ])?;
    Ok(())
}

fn state_and_message(
    conn: &Connection,
    tenant: &Tenant,
    id: DeadLetterId,
) -> rusqlite::Result<Option<(DeadLetterState, Option<Message>)>> {
    conn.prepare_cached("SELECT state, message FROM saga_dead_letters WHERE id = ?1 AND tenant = ?2")?
        .query_row((id.0, tenant.as_str()), |row| {
            let message = if rows::is_set(row, 1)? { Some(rows::message(row, 1)?) } else { None };
            Ok((rows::parsed(row, 0, DeadLetterState::parse)?, message))
        })
        .optional()
}

fn decide(session: &Session, id: DeadLetterId, state: DeadLetterState, note: &str) -> rusqlite::Result<()> {
    let sql = "UPDATE saga_dead_letters SET state = ?2, decided_at = ?3, note = ?4 WHERE id = ?1";
    session.conn.prepare_cached(sql)?.execute((id.0, state.as_str(), session.now().0, note))?;
    Ok(())
}

impl FromRow for DeadLetter {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            letter: NewDeadLetter::from_row(row)?,
            seen: rows::unsigned(row, 10)?,
            first_seen_at: Timestamp(row.get(11)?),
            state: rows::parsed(row, 12, DeadLetterState::parse)?,
            decided_at: row.get::<_, Option<i64>>(13)?.map(Timestamp),
            note: row.get(14)?,
        })
    }
}

impl FromRow for NewDeadLetter {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: DeadLetterId(row.get(0)?),
            fingerprint: row.get(1)?,
            tenant: rows::tenant(row, 2)?,
            reason: rows::parsed(row, 3, DeadLetterReason::parse)?,
            detail: row.get(4)?,
            source: row.get(5)?,
            headers: rows::pairs(row, 6)?,
            payload: row.get(7)?,
            message: if rows::is_set(row, 8)? { Some(rows::message(row, 8)?) } else { None },
            attempts: row.get(9)?,
        })
    }
}
