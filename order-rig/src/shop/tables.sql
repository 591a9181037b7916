CREATE TABLE products (
    sku               text   PRIMARY KEY,
    name              text   NOT NULL,
    unit_price_cents  bigint NOT NULL,
    in_stock          bigint NOT NULL CHECK (in_stock >= 0),
    in_stock_at_first bigint NOT NULL
);

CREATE TABLE orders (
    order_id      text   PRIMARY KEY,
    customer      text   NOT NULL,
    total_cents   bigint NOT NULL,
    freight_cents bigint NOT NULL,
    status        text   NOT NULL CHECK (status IN ('placed', 'confirmed', 'cancelled')),
    reason        text
);

CREATE TABLE reservations (
    order_id text   NOT NULL REFERENCES orders (order_id),
    item     bigint NOT NULL,
    sku      text   NOT NULL REFERENCES products (sku),
    quantity bigint NOT NULL CHECK (quantity > 0),
    status   text   NOT NULL CHECK (status IN ('open', 'sold', 'released')),
    PRIMARY KEY (order_id, item)
);
CREATE INDEX reservations_sku ON reservations (sku);
