-- The definitions that sagas and work rows refer to: a small table, so that the large ones carry a number.
CREATE TABLE saga_definitions (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    UNIQUE (name, version)
) STRICT;

-- What a saga was started with. Written once, so that an advance never copies the input.
CREATE TABLE saga_sagas (
    id         INTEGER PRIMARY KEY,
    tenant     TEXT NOT NULL,
    key        TEXT NOT NULL,
    definition INTEGER NOT NULL,
    digest     BLOB NOT NULL,
    input      BLOB NOT NULL,
    input_hash BLOB NOT NULL,
    started_at INTEGER NOT NULL,
    UNIQUE (tenant, key)
) STRICT;

-- Where a saga stands: the row that every advance compares and sets.
CREATE TABLE saga_progress (
    id          INTEGER PRIMARY KEY,
    status      TEXT NOT NULL,
    version     INTEGER NOT NULL,
    state       BLOB NOT NULL,
    advanced_at INTEGER NOT NULL,
    ended_at    INTEGER
) STRICT;

CREATE INDEX saga_progress_open ON saga_progress (status) WHERE ended_at IS NULL;

-- What is to be done. A row without an owner is free. A received message is a row of kind `message`: saga and
-- definition are 0, key and step are empty, and the payload is the whole message.
CREATE TABLE saga_work (
    id             INTEGER PRIMARY KEY,
    saga           INTEGER NOT NULL,
    tenant         TEXT NOT NULL,
    key            TEXT NOT NULL,
    kind           TEXT NOT NULL,
    step           TEXT NOT NULL,
    definition     INTEGER NOT NULL,
    epoch          INTEGER NOT NULL,
    due_at         INTEGER NOT NULL,
    owner          INTEGER,
    leased_until   INTEGER,
    attempts       INTEGER NOT NULL,
    maybe          INTEGER NOT NULL,
    suspect        INTEGER NOT NULL,
    retrying_since INTEGER,
    error          TEXT,
    payload        BLOB,
    late           BLOB
) STRICT;

CREATE INDEX saga_work_free ON saga_work (definition, due_at) WHERE owner IS NULL;
CREATE INDEX saga_work_leased ON saga_work (owner, leased_until) WHERE owner IS NOT NULL;

-- What became of a step key.
CREATE TABLE saga_records (
    tenant      TEXT NOT NULL,
    key         TEXT NOT NULL,
    step        TEXT NOT NULL,
    saga        INTEGER NOT NULL,
    outcome     TEXT NOT NULL,
    position    INTEGER NOT NULL,
    attempts    INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    took_micros INTEGER NOT NULL,
    output      BLOB,
    error       BLOB,
    input       BLOB,
    PRIMARY KEY (tenant, key, step)
) STRICT, WITHOUT ROWID;

-- What else happened to a saga.
CREATE TABLE saga_history (
    id      INTEGER PRIMARY KEY,
    saga    INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    step    TEXT,
    kind    TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    detail  TEXT NOT NULL
) STRICT;

CREATE INDEX saga_history_saga ON saga_history (saga);

-- What leaves this service: inserted, and deleted once it was sent. The names are those of Debezium's event router.
CREATE TABLE saga_outbox (
    seq           INTEGER PRIMARY KEY,
    id            BLOB NOT NULL UNIQUE,
    lane          INTEGER NOT NULL,
    tenant        TEXT NOT NULL,
    aggregatetype TEXT NOT NULL,
    aggregateid   TEXT NOT NULL,
    type          TEXT NOT NULL,
    position      INTEGER NOT NULL,
    committed_at  INTEGER NOT NULL,
    payload       BLOB NOT NULL,
    kind          TEXT NOT NULL,
    headers       TEXT NOT NULL,
    -- Before that whoever wrote it sends it.
    due_at        INTEGER NOT NULL
) STRICT;

CREATE INDEX saga_outbox_lane ON saga_outbox (lane);

-- How many messages the application published under an ordering key.
CREATE TABLE saga_published (
    tenant        TEXT NOT NULL,
    aggregatetype TEXT NOT NULL,
    aggregateid   TEXT NOT NULL,
    position      INTEGER NOT NULL,
    PRIMARY KEY (tenant, aggregatetype, aggregateid)
) STRICT, WITHOUT ROWID;

-- Who sends which lane.
CREATE TABLE saga_lanes (
    lane         INTEGER PRIMARY KEY,
    epoch        INTEGER NOT NULL,
    owner        INTEGER,
    leased_until INTEGER
) STRICT;

-- Ordering keys whose next message could not be sent. One without a time waits for a person.
CREATE TABLE saga_parked (
    tenant        TEXT NOT NULL,
    aggregatetype TEXT NOT NULL,
    aggregateid   TEXT NOT NULL,
    message       BLOB NOT NULL UNIQUE,
    attempts      INTEGER NOT NULL,
    error         TEXT NOT NULL,
    since         INTEGER NOT NULL,
    retry_at      INTEGER,
    PRIMARY KEY (tenant, aggregatetype, aggregateid)
) STRICT, WITHOUT ROWID;

-- The ids of messages that arrived, for as long as duplicates may come.
CREATE TABLE saga_received (
    id          BLOB PRIMARY KEY,
    received_at INTEGER NOT NULL,
    work        INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX saga_received_at ON saga_received (received_at);

-- Messages that could not be handled, with what was decided about them.
CREATE TABLE saga_dead_letters (
    id          INTEGER PRIMARY KEY,
    fingerprint BLOB NOT NULL,
    tenant      TEXT NOT NULL,
    reason      TEXT NOT NULL,
    detail      TEXT NOT NULL,
    source      TEXT NOT NULL,
    headers     TEXT NOT NULL,
    payload     BLOB NOT NULL,
    message     BLOB,
    attempts    INTEGER NOT NULL,
    seen        INTEGER NOT NULL,
    buried_at   INTEGER NOT NULL,
    state       TEXT NOT NULL,
    decided_at  INTEGER,
    note        TEXT
) STRICT;

CREATE UNIQUE INDEX saga_dead_letters_open ON saga_dead_letters (fingerprint) WHERE state = 'open';

-- The ids above this one were never handed out.
CREATE TABLE saga_ids (
    handed_out INTEGER NOT NULL
) STRICT;

INSERT INTO saga_ids (handed_out) VALUES (0);
