//! The journal: rows that triggers append, in the transactions of the servers.

use serde::Deserialize;

const INSTALL: &str = "
    CREATE TABLE journal (
        entry      BIGSERIAL PRIMARY KEY,
        tx         BIGINT NOT NULL DEFAULT txid_current(),
        key        TEXT   NOT NULL,
        lines      JSONB  NOT NULL,
        was        TEXT,
        state      TEXT   NOT NULL,
        was_token  BIGINT,
        token      BIGINT NOT NULL,
        expires_at BIGINT NOT NULL,
        at         BIGINT NOT NULL
    );
    CREATE FUNCTION append() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO journal (key, lines, was, state, was_token, token, expires_at, at) VALUES (
            NEW.key, NEW.lines, CASE TG_OP WHEN 'UPDATE' THEN OLD.state END, NEW.state,
            CASE TG_OP WHEN 'UPDATE' THEN OLD.token END, NEW.token, NEW.expires_at, NEW.changed_at
        );
        RETURN NULL;
    END $$;
    CREATE TRIGGER append AFTER INSERT OR UPDATE ON reservations FOR EACH ROW EXECUTE FUNCTION append();
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE 'the journal is append-only, and reservations are not deleted here';
    END $$;
    CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON journal FOR EACH ROW EXECUTE FUNCTION refuse();
    CREATE TRIGGER refuse BEFORE DELETE ON reservations FOR EACH ROW EXECUTE FUNCTION refuse();
";

const READ: &str = "
    SELECT row_to_json(grouped) FROM (SELECT *, min(entry) OVER (PARTITION BY tx) AS first_of_tx FROM journal) AS grouped
    ORDER BY first_of_tx, token, entry
";

/// One change of a reservation.
#[derive(Debug, Deserialize)]
pub(crate) struct Entry {
    /// The transaction.
    pub(crate) tx: u64,
    pub(crate) key: String,
    pub(crate) lines: Vec<Line>,
    pub(crate) was: Option<String>,
    pub(crate) state: String,
    pub(crate) was_token: Option<u64>,
    pub(crate) token: u64,
    pub(crate) expires_at: i64,
    pub(crate) at: i64,
}

/// A line of the reservation.
#[derive(Debug, Deserialize)]
pub(crate) struct Line {
    pub(crate) resource: String,
    pub(crate) quantity: u64,
}

pub(crate) async fn install(url: &str) {
    saga_servers::psql(url, INSTALL).await.unwrap();
}

/// The entries in the order in which their transactions began to append: for each resource that is the order of the commits,
/// since its row was locked. Several reservations of one transaction were written by their keys, and made by their tokens.
pub(crate) async fn read(url: &str) -> Vec<Entry> {
    let text = saga_servers::psql(url, READ).await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}
