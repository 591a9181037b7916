-- The definitions that sagas and work rows refer to: a small table, so that the large ones carry a number.
CREATE TABLE {schema}.definitions (
    id      integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name    text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    UNIQUE (name, version)
);

-- What a saga was started with. Written once, so that an advance never copies the input.
CREATE TABLE {schema}.sagas (
    id         bigint PRIMARY KEY,
    tenant     text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    definition integer NOT NULL,
    digest     bytea NOT NULL,
    input      bytea NOT NULL,
    input_hash bytea NOT NULL,
    started_at timestamptz NOT NULL,
    UNIQUE (tenant, key)
);

-- Where a saga stands: the row that every advance compares and sets. What the index holds changes only when a saga turns
-- round or ends, so that most advances stay within their page.
CREATE TABLE {schema}.progress (
    id          bigint PRIMARY KEY,
    status      text COLLATE "C" NOT NULL,
    version     bigint NOT NULL,
    state       bytea NOT NULL,
    advanced_at timestamptz NOT NULL,
    ended_at    timestamptz
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.02);

CREATE INDEX progress_open ON {schema}.progress (status, id) WHERE ended_at IS NULL;

-- What is to be done. A row without an owner is free. A received message is a row of kind `message`: saga and definition
-- are 0, key and step are empty, and the payload is the whole message.
CREATE TABLE {schema}.work (
    id             bigint PRIMARY KEY,
    saga           bigint NOT NULL,
    tenant         text COLLATE "C" NOT NULL,
    key            text COLLATE "C" NOT NULL,
    kind           text COLLATE "C" NOT NULL,
    step           text COLLATE "C" NOT NULL,
    definition     integer NOT NULL,
    epoch          bigint NOT NULL,
    due_at         timestamptz NOT NULL,
    owner          bigint,
    leased_until   timestamptz,
    attempts       bigint NOT NULL DEFAULT 0,
    maybe          boolean NOT NULL DEFAULT false,
    suspect        boolean NOT NULL DEFAULT false,
    retrying_since timestamptz,
    error          text,
    payload        bytea,
    late           bytea
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX work_free ON {schema}.work (definition, due_at, id) WHERE owner IS NULL;
CREATE INDEX work_leased ON {schema}.work (owner, leased_until) WHERE owner IS NOT NULL;

-- What became of a step key.
CREATE TABLE {schema}.records (
    tenant      text COLLATE "C" NOT NULL,
    key         text COLLATE "C" NOT NULL,
    step        text COLLATE "C" NOT NULL,
    saga        bigint NOT NULL,
    outcome     text COLLATE "C" NOT NULL,
    position    bigint NOT NULL,
    attempts    bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    took_micros bigint NOT NULL,
    output      bytea,
    error       bytea,
    input       bytea,
    PRIMARY KEY (tenant, key, step)
);

-- What else happened to a saga.
CREATE TABLE {schema}.history (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    saga    bigint NOT NULL,
    at      timestamptz NOT NULL,
    step    text COLLATE "C",
    kind    text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL,
    detail  text NOT NULL
);

CREATE INDEX history_saga ON {schema}.history (saga, id);

-- What leaves this service: inserted, and deleted once it was sent. The names are those of Debezium's event router.
CREATE TABLE {schema}.outbox (
    seq           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id            uuid NOT NULL UNIQUE,
    lane          smallint NOT NULL,
    tenant        text COLLATE "C" NOT NULL,
    aggregatetype text COLLATE "C" NOT NULL,
    aggregateid   text COLLATE "C" NOT NULL,
    type          text COLLATE "C" NOT NULL,
    position      bigint NOT NULL,
    committed_at  timestamptz NOT NULL,
    payload       bytea NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    headers       text NOT NULL,
    -- Before that whoever wrote it sends it; without one anybody may at once.
    due_at        timestamptz
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX outbox_lane ON {schema}.outbox (lane, seq);

-- How many messages the application published under an ordering key. The lock on a row makes their positions the order of
-- the commits.
CREATE TABLE {schema}.published (
    tenant        text COLLATE "C" NOT NULL,
    aggregatetype text COLLATE "C" NOT NULL,
    aggregateid   text COLLATE "C" NOT NULL,
    position      bigint NOT NULL,
    PRIMARY KEY (tenant, aggregatetype, aggregateid)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- Who sends which lane.
CREATE TABLE {schema}.lanes (
    lane         smallint PRIMARY KEY,
    epoch        bigint NOT NULL DEFAULT 0,
    owner        bigint,
    leased_until timestamptz
) WITH (fillfactor = 50);

INSERT INTO {schema}.lanes (lane) SELECT generate_series(0, 63);

-- Ordering keys whose next message could not be sent. One without a time waits for a person.
CREATE TABLE {schema}.parked (
    tenant        text COLLATE "C" NOT NULL,
    aggregatetype text COLLATE "C" NOT NULL,
    aggregateid   text COLLATE "C" NOT NULL,
    message       uuid NOT NULL UNIQUE,
    attempts      bigint NOT NULL,
    error         text NOT NULL,
    since         timestamptz NOT NULL,
    retry_at      timestamptz,
    PRIMARY KEY (tenant, aggregatetype, aggregateid)
);

-- The ids of messages that arrived, for as long as duplicates may come.
CREATE TABLE {schema}.received (
    id          uuid PRIMARY KEY,
    received_at timestamptz NOT NULL,
    work        bigint NOT NULL
);

CREATE INDEX received_at ON {schema}.received (received_at);

-- Messages that could not be handled, with what was decided about them.
CREATE TABLE {schema}.dead_letters (
    id          bigint PRIMARY KEY,
    fingerprint bytea NOT NULL,
    tenant      text COLLATE "C" NOT NULL,
    reason      text COLLATE "C" NOT NULL,
    detail      text NOT NULL,
    source      text NOT NULL,
    headers     text NOT NULL,
    payload     bytea NOT NULL,
    message     bytea,
    attempts    bigint NOT NULL,
    seen        bigint NOT NULL,
    buried_at   timestamptz NOT NULL,
    state       text COLLATE "C" NOT NULL,
    decided_at  timestamptz,
    note        text
);

CREATE UNIQUE INDEX dead_letters_open ON {schema}.dead_letters (fingerprint) WHERE state = 'open';
CREATE INDEX dead_letters_tenant ON {schema}.dead_letters (tenant, id);

-- The lives of processes that have not ended, as far as they said so.
CREATE TABLE {schema}.members (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    alive_until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Ids are handed out in blocks of as many as this counts at a time.
CREATE SEQUENCE {schema}.ids INCREMENT BY 1048576 START WITH 1;

-- A row for each backend that runs step transactions. Touching it makes the server ask, when the transaction commits,
-- whether what ran in it was recorded. It is written once a transaction, and nothing is lost with it.
CREATE UNLOGGED TABLE {schema}.guards (
    backend integer PRIMARY KEY,
    touched boolean NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 10000);
