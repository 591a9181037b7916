-- The book of the services outside. No table but `answers` knows that a key should be used once: were the
-- keys not honoured, the charges would show it.

-- What was written survives a killed process; only a power cut may cost the last entries.
PRAGMA synchronous = NORMAL;

CREATE TABLE IF NOT EXISTS calls (
    service TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    calls   INTEGER NOT NULL,
    PRIMARY KEY (service, key)
) STRICT;

CREATE TABLE IF NOT EXISTS answers (
    service TEXT    NOT NULL,
    key     TEXT    NOT NULL,
    request TEXT    NOT NULL,
    status  INTEGER NOT NULL,
    body    TEXT    NOT NULL,
    replays INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (service, key)
) STRICT;

CREATE TABLE IF NOT EXISTS charges (
    id           INTEGER PRIMARY KEY,
    key          TEXT    NOT NULL,
    order_id     TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS charges_key ON charges (key);

CREATE TABLE IF NOT EXISTS refunds (
    id           INTEGER PRIMARY KEY,
    charge_key   TEXT    NOT NULL,
    order_id     TEXT    NOT NULL,
    amount_cents INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS refunds_charge_key ON refunds (charge_key);

CREATE TABLE IF NOT EXISTS shipments (
    id          INTEGER PRIMARY KEY,
    key         TEXT    NOT NULL,
    order_id    TEXT    NOT NULL,
    price_cents INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS shipments_key ON shipments (key);

CREATE TABLE IF NOT EXISTS cancellations (
    id           INTEGER PRIMARY KEY,
    shipment_key TEXT    NOT NULL,
    order_id     TEXT    NOT NULL,
    shipments    INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS cancellations_shipment_key ON cancellations (shipment_key);

-- What became of each call, where that is asked for.
CREATE TABLE IF NOT EXISTS journal (
    id        INTEGER PRIMARY KEY,
    at_micros INTEGER NOT NULL,
    path      TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    nth       INTEGER NOT NULL,
    event     TEXT    NOT NULL,
    number    INTEGER
) STRICT;
