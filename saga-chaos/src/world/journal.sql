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

-- The arguments: the step that inserts such a row, the status that its undo leaves, the one that the last step leaves.
CREATE FUNCTION chaos.note_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO chaos.journal (order_id, step, undo) VALUES (NEW.order_id, TG_ARGV[0], false);
    ELSIF NEW.status = TG_ARGV[1] THEN
        INSERT INTO chaos.journal (order_id, step, undo) VALUES (NEW.order_id, TG_ARGV[0], true);
    ELSIF NEW.status = TG_ARGV[2] THEN
        INSERT INTO chaos.journal (order_id, step, undo) VALUES (NEW.order_id, 'confirm-order', false);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER note AFTER INSERT OR UPDATE ON orders
    FOR EACH ROW EXECUTE FUNCTION chaos.note_step('place-order', 'cancelled', 'confirmed');
CREATE TRIGGER note AFTER INSERT OR UPDATE ON reservations
    FOR EACH ROW EXECUTE FUNCTION chaos.note_step('reserve-stock', 'released', 'sold');
