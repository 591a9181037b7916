-- The semantic locks that sagas have, and the requests for some. The number is the place in the queue of each entity. A
-- request that gave up names the owner that was in front of it.
CREATE TABLE saga_lock_requests (
    number      INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    owner       TEXT NOT NULL,
    saga        INTEGER NOT NULL,
    key         TEXT NOT NULL,
    name        TEXT NOT NULL,
    work        INTEGER NOT NULL,
    state       TEXT NOT NULL,
    other       TEXT,
    asked_at    INTEGER NOT NULL,
    waits_until INTEGER NOT NULL,
    granted_at  INTEGER
) STRICT;

CREATE UNIQUE INDEX saga_lock_requests_name ON saga_lock_requests (saga, name);
CREATE INDEX saga_lock_requests_owner ON saga_lock_requests (tenant, owner);

-- The entities of each lock and of each request that waits. A granted one has a token.
CREATE TABLE saga_locked_entities (
    tenant TEXT NOT NULL,
    kind   TEXT NOT NULL,
    id     TEXT NOT NULL,
    number INTEGER NOT NULL,
    owner  TEXT NOT NULL,
    token  INTEGER,
    PRIMARY KEY (tenant, kind, id, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX saga_locked_entities_number ON saga_locked_entities (number);
CREATE INDEX saga_locked_entities_owner ON saga_locked_entities (tenant, owner);

-- The last number that was given, to a request or as a token.
CREATE TABLE saga_lock_numbers (
    one  INTEGER PRIMARY KEY CHECK (one = 1),
    last INTEGER NOT NULL
) STRICT;

INSERT INTO saga_lock_numbers (one, last) VALUES (1, 0);

-- For ordinary reads: which entity is locked by which saga, and which sagas wait for it.
CREATE VIEW saga_semantic_locks AS
    SELECT e.tenant, e.kind, e.id, r.key AS saga_key, r.name AS lock, e.token IS NOT NULL AS granted, e.token,
        e.number, coalesce(r.granted_at, r.asked_at) AS since
    FROM saga_locked_entities e JOIN saga_lock_requests r ON r.number = e.number;
