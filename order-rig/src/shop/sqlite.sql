CREATE TABLE products (
    sku               TEXT    PRIMARY KEY,
    name              TEXT    NOT NULL,
    unit_price_cents  INTEGER NOT NULL,
    in_stock          INTEGER NOT NULL CHECK (in_stock >= 0),
    in_stock_at_first INTEGER NOT NULL
) STRICT;

CREATE TABLE orders (
    order_id      TEXT    PRIMARY KEY,
    customer      TEXT    NOT NULL,
    total_cents   INTEGER NOT NULL,
    freight_cents INTEGER NOT NULL,
    status        TEXT    NOT NULL CHECK (status IN ('placed', 'confirmed', 'cancelled')),
    reason        TEXT
) STRICT;

CREATE TABLE reservations (
    order_id TEXT    NOT NULL REFERENCES orders (order_id),
    item     INTEGER NOT NULL,
    sku      TEXT    NOT NULL REFERENCES products (sku),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    status   TEXT    NOT NULL CHECK (status IN ('open', 'sold', 'released')),
    PRIMARY KEY (order_id, item)
) STRICT;
CREATE INDEX reservations_sku ON reservations (sku);
