-- A journal that the database keeps of the shop's tables. Its rows are committed with what they tell, or not at all, and
-- it knows nothing of the runtime.
CREATE SCHEMA chaos;

CREATE TABLE chaos.journal (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    xact     text NOT NULL DEFAULT pg_current_xact_id()::text,
    process  text NOT NULL DEFAULT current_setting('application_name'),
    order_id text NOT NULL,
    step     text NOT NULL,
    undo     boolean NOT NULL
);

CREATE FUNCTION chaos.note_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO chaos.journal (order_id, step, undo) VALUES (NEW.order_id, 'place-order', false);
    ELSIF NEW.status = 'cancelled' THEN
        INSERT INTO chaos.journal (order_id, step, undo) VALUES (NEW.order_id, 'place-order', true);
    ELSIF NEW.status = 'confirmed' THEN
        INSERT INTO chaos.journal (order_id, step, undo) VALUES (NEW.order_id, 'confirm-order', false);
    END IF;
    RETURN NULL;
END
$$;

CREATE FUNCTION chaos.note_reservation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO chaos.journal (order_id, step, undo) VALUES (NEW.order_id, 'reserve-stock', false);
    ELSIF NEW.status = 'released' THEN
        INSERT INTO chaos.journal (order_id, step, undo) VALUES (NEW.order_id, 'reserve-stock', true);
    ELSIF NEW.status = 'sold' THEN
        INSERT INTO chaos.journal (order_id, step, undo) VALUES (NEW.order_id, 'confirm-order', false);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER note AFTER INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION chaos.note_order();
CREATE TRIGGER note AFTER INSERT OR UPDATE ON reservations FOR EACH ROW EXECUTE FUNCTION chaos.note_reservation();
