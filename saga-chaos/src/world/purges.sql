-- A journal that the database keeps of what the runtime purges, with what there was of it at that moment. Its rows are committed
-- with the purge, or not at all.
CREATE SCHEMA IF NOT EXISTS chaos;

CREATE TABLE chaos.purges (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at            timestamptz NOT NULL DEFAULT clock_timestamp(),
    saga          bigint NOT NULL,
    key           text NOT NULL,
    revision      bigint NOT NULL,
    status        text NOT NULL,
    was_tombstone boolean NOT NULL,
    is_deleted    boolean NOT NULL,
    is_due        boolean NOT NULL,
    is_archived   boolean NOT NULL,
    records       bigint NOT NULL,
    work          bigint NOT NULL,
    letters       bigint NOT NULL,
    messages      bigint NOT NULL
);

CREATE FUNCTION chaos.note_purge(p saga.progress, p_key text, p_is_deleted boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    -- What a message or a letter may name it by.
    v_names text[] := ARRAY[p_key, split_part(p_key, '>', 1)];
    v_is_archived boolean := false;
BEGIN
    IF to_regclass('saga.archived_sagas') IS NOT NULL THEN
        EXECUTE 'SELECT EXISTS (SELECT 1 FROM saga.archived_sagas WHERE id = $1 AND revision = $2 AND key = $3 AND status = $4)'
            INTO v_is_archived USING p.id, p.version, p_key, p.status;
    END IF;
    INSERT INTO chaos.purges (saga, key, revision, status, was_tombstone, is_deleted, is_due, is_archived, records, work,
        letters, messages)
    SELECT p.id, p_key, p.version, p.status, p.state = '', p_is_deleted,
        p.ended_at IS NOT NULL AND coalesce(p.expires_at <= clock_timestamp(), false), v_is_archived,
        (SELECT count(*) FROM saga.records r WHERE r.key = p_key),
        (SELECT count(*) FROM saga.work w WHERE w.saga = p.id),
        (SELECT count(*) FROM saga.dead_letters l WHERE l.state = 'open' AND saga.saga_key_of(l.headers) = ANY (v_names)),
        (SELECT count(*) FROM saga.outbox o WHERE substring(o.headers FROM '"saga-cause":"([^"]*)"') = ANY (v_names));
END
$$;

CREATE FUNCTION chaos.note_tombstone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The row of `progress` is changed after this one.
    PERFORM chaos.note_purge(p, OLD.key, false) FROM saga.progress p WHERE p.id = OLD.id;
    RETURN NEW;
END
$$;

CREATE FUNCTION chaos.note_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- The row of `sagas` is deleted after this one.
    PERFORM chaos.note_purge(OLD, s.key, true) FROM saga.sagas s WHERE s.id = OLD.id;
    RETURN OLD;
END
$$;

CREATE TRIGGER note_tombstone BEFORE UPDATE OF input ON saga.sagas
    FOR EACH ROW WHEN (OLD.input <> '' AND NEW.input = '') EXECUTE FUNCTION chaos.note_tombstone();
CREATE TRIGGER note_deleted BEFORE DELETE ON saga.progress
    FOR EACH ROW EXECUTE FUNCTION chaos.note_deleted();
