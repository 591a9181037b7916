-- The requests that take effect once. A row without a response is leased by a call outside of a transaction, or was.
CREATE TABLE saga_idempotency_keys (
    tenant       TEXT NOT NULL,
    principal    TEXT NOT NULL,
    key          TEXT NOT NULL,
    fingerprint  BLOB NOT NULL,
    epoch        INTEGER NOT NULL,
    leased_until INTEGER,
    response     BLOB,
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (tenant, principal, key)
) STRICT;

CREATE INDEX saga_idempotency_keys_expiry ON saga_idempotency_keys (expires_at);
