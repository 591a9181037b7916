//! The statements around the handler of a request that takes effect once.
//!
//! Several statements go in one message, and such a message carries no bound values. The statements are prepared under names,
//! so that a connection plans them once all the same, and `EXECUTE` takes the values as literals.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use saga_core::store::{IdempotencyKey, KeyedRequest};

use crate::clock::micros;
use crate::options::PostgresOptions;
use crate::rows::rows::signed;

/// How long the transaction may wait between two statements, before the server takes its process for stopped.
const IDLE_MILLIS_MAX: u32 = 60_000;

/// Locks the key, without waiting: one row, also without a key.
const LOCK: &str = "(text, text, text) AS SELECT current_setting('transaction_read_only')::boolean, \
     (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, \
     pg_try_advisory_xact_lock({schema}.request_lock($1, $2, $3))";
/// What is kept under the key. It is a statement of its own, and so sees what was committed until the key was locked. Both
/// in one PL/pgSQL function take twice the processor time, since each transaction prepares the function's expressions.
const LOOK: &str = "(text, text, text, bytea) AS SELECT CASE \
     WHEN k.expires_at <= clock_timestamp() AND coalesce(k.leased_until <= clock_timestamp(), true) THEN 'granted' \
     WHEN k.fingerprint <> $4 THEN 'other' \
     WHEN k.response IS NOT NULL THEN 'replay' \
     WHEN k.leased_until > clock_timestamp() THEN 'in-flight' \
     ELSE 'granted' END, k.epoch, k.response \
     FROM {schema}.idempotency_keys k WHERE k.tenant = $1 AND k.principal = $2 AND k.key = $3";
const KEEP: &str = "(text, text, text, bytea, bigint, bigint, bytea) AS INSERT INTO {schema}.idempotency_keys AS k \
     (tenant, principal, key, fingerprint, epoch, leased_until, response, expires_at) \
     VALUES ($1, $2, $3, $4, $5, NULL, $7, clock_timestamp() + $6 * interval '1 microsecond') \
     ON CONFLICT (tenant, principal, key) DO UPDATE SET fingerprint = excluded.fingerprint, epoch = excluded.epoch, \
     leased_until = NULL, response = excluded.response, expires_at = excluded.expires_at";

/// The statements, for one schema.
pub(crate) struct RequestStatements {
    /// Of the prepared statements. Another text has another name, since a pooler may keep connections over a new version.
    suffix: String,
    prepare: String,
    begin: String,
    close: String,
}

impl RequestStatements {
    /// `guard` names the cursor that refuses a commit. A handler cannot guess it.
    pub(crate) fn new(options: &PostgresOptions, guard: &str) -> Self {
        let all = [("lock", LOCK), ("look", LOOK), ("keep", KEEP)];
        let all = all.map(|(name, text)| (name, options.render(text.to_owned())));
        let mut hasher = DefaultHasher::new();
        all.hash(&mut hasher);
        let suffix = format!("{:016x}", hasher.finish());
        let prepare = all.map(|(name, text)| format!("PREPARE saga_{name}_{suffix} {text}")).join("; ");
        let begin = format!(
            "{}; SET LOCAL idle_in_transaction_session_timeout = {IDLE_MILLIS_MAX}; \
             DECLARE {guard} NO SCROLL CURSOR WITH HOLD FOR SELECT {}.refuse_request_commit()",
            options.begin(),
            options.quoted_schema()
        );
        Self { suffix, prepare, begin, close: format!("CLOSE {guard}") }
    }

    /// Begins the transaction, locks the key and looks it up: a row of the lock, and one of what is kept, if there is one.
    pub(crate) fn admit(&self, request: Option<&KeyedRequest>) -> String {
        let Self { suffix, begin, .. } = self;
        let Some(KeyedRequest { key, fingerprint, .. }) = request else {
            return format!("{begin}; EXECUTE saga_lock_{suffix}(NULL, NULL, NULL)");
        };
        let (key, fingerprint) = (key_literals(key), bytes(fingerprint));
        // A plan that was made while the table was empty would read the whole of it later.
        format!(
            "{begin}; EXECUTE saga_lock_{suffix}({key}); SET LOCAL enable_seqscan = off; \
             EXECUTE saga_look_{suffix}({key}, {fingerprint}); SET LOCAL enable_seqscan TO DEFAULT"
        )
    }

    /// The same on a connection whose transaction failed because the statements are not prepared. It is one message, since a
    /// pooler may send the next one over another connection.
    pub(crate) fn prepare_and_admit(&self, request: Option<&KeyedRequest>) -> String {
        format!("ROLLBACK; BEGIN; {}; COMMIT; {}", self.prepare, self.admit(request))
    }

    /// Rolls the transaction back. It fails as [`keep`](Self::keep) does.
    pub(crate) fn undo(&self) -> String {
        format!("{}; ROLLBACK", self.close)
    }

    /// Lets the transaction commit, and keeps the response of a request. It fails if this is not the transaction that was
    /// begun for it.
    pub(crate) fn keep(&self, request: Option<&KeyedRequest>, epoch: u64, response: &[u8]) -> String {
        let Self { suffix, close, .. } = self;
        let Some(KeyedRequest { key, fingerprint, ttl }) = request else { return close.clone() };
        let (key, fingerprint, response) = (key_literals(key), bytes(fingerprint), bytes(response));
        let (epoch, ttl) = (signed(epoch), micros(*ttl));
        format!("{close}; EXECUTE saga_keep_{suffix}({key}, {fingerprint}, {epoch}, {ttl}, {response})")
    }
}

fn key_literals(key: &IdempotencyKey) -> String {
    format!("{}, {}, {}", text(key.tenant().as_str()), text(key.principal()), text(key.as_str()))
}

/// A literal that means the same whatever `standard_conforming_strings` is. None of the texts has a control character.
fn text(text: &str) -> String {
    format!("E'{}'", text.replace('\\', r"\\").replace('\'', "''"))
}

fn bytes(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut literal = String::with_capacity(bytes.len() * 2 + 6);
    literal.push_str(r"E'\\x");
    literal
        .extend(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|half| char::from(DIGITS[usize::from(half)])));
    literal.push('\'');
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_literal_ends_where_its_text_ends() {
        assert_eq!(text("ada"), "E'ada'");
        assert_eq!(text(r"a\'; DROP TABLE x; --"), r"E'a\\''; DROP TABLE x; --'");
        assert_eq!(bytes(&[0, 0xa5, 0xff]), r"E'\\x00a5ff'");
    }
}
