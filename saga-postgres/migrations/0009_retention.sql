-- When the time of an ended saga is over, and when it is deleted if it becomes a tombstone before that. The services that
-- did steps of it, with commas between them. A large table is not rewritten for a column that may be NULL. Each statement
-- may be run again: the indexes are built after this is committed, and a process that ends before that leaves no note.
ALTER TABLE {schema}.progress ADD COLUMN IF NOT EXISTS expires_at timestamptz,
    ADD COLUMN IF NOT EXISTS delete_at timestamptz, ADD COLUMN IF NOT EXISTS hosts text COLLATE "C";

-- When a message was last published under the ordering key, to within an hour. Of older ones it is not known.
ALTER TABLE {schema}.published ADD COLUMN IF NOT EXISTS published_at timestamptz DEFAULT now();

-- Rows are deleted in large numbers, and space that is not freed soon is not used again.
ALTER TABLE {schema}.records SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1);
ALTER TABLE {schema}.sagas SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_vacuum_cost_delay = 1);

-- The member that does the maintenance.
CREATE TABLE IF NOT EXISTS {schema}.maintenance (
    name         text COLLATE "C" PRIMARY KEY,
    epoch        bigint NOT NULL,
    owner        bigint,
    leased_until timestamptz
) WITH (fillfactor = 50);

INSERT INTO {schema}.maintenance (name, epoch) VALUES ('purge', 0) ON CONFLICT DO NOTHING;

-- The key of the saga that caused a dead letter, as its headers have it: a JSON array of pairs. A key has no character
-- that JSON writes in another way, except for quotes and backslashes.
CREATE OR REPLACE FUNCTION {schema}.saga_key_of(p_headers text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT regexp_replace(substring(p_headers FROM '\["saga-cause","((?:[^"\\]|\\.)*)"'), '\\(.)', '\1', 'g')
$$;

-- As `start_sagas`, which processes of the version before still call, with the time for which a saga is kept.
CREATE OR REPLACE FUNCTION {schema}.start_dated_sagas(
    s_id bigint[], s_tenant text[], s_key text[], s_definition integer[], s_digest bytea[], s_input bytea[],
    s_input_hash bytea[], s_state bytea[], s_status text[], s_ends boolean[], s_expire bigint[], s_delete bigint[],
    s_hosts text[],
    c_id bigint[], c_saga bigint[], c_tenant text[], c_key text[], c_kind text[], c_step text[], c_definition integer[],
    c_payload bytea[], c_due bigint[], c_owner bigint[], c_ttl bigint[]
) RETURNS bigint[]
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
    SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_new bigint[];
BEGIN
    WITH new AS (
        INSERT INTO {schema}.sagas AS i (id, tenant, key, definition, digest, input, input_hash, started_at)
        SELECT s.*, v_now FROM unnest(s_id, s_tenant, s_key, s_definition, s_digest, s_input, s_input_hash) s
        ON CONFLICT (tenant, key) DO NOTHING RETURNING i.id)
    SELECT coalesce(array_agg(n.id), '{}') INTO v_new FROM new n;
    INSERT INTO {schema}.progress
        (id, status, version, state, advanced_at, ended_at, expires_at, delete_at, hosts)
    SELECT s.id, s.status, 1, s.state, v_now, CASE WHEN s.ends THEN v_now END,
        v_now + s.expire * interval '1 microsecond', v_now + s.delete * interval '1 microsecond', s.hosts
    FROM unnest(s_id, s_state, s_status, s_ends, s_expire, s_delete, s_hosts)
        s (id, state, status, ends, expire, delete, hosts) WHERE s.id = ANY (v_new);
    INSERT INTO {schema}.work
        (id, saga, tenant, key, kind, step, definition, epoch, due_at, payload, owner, leased_until)
    SELECT c.id, c.saga, c.tenant, c.key, c.kind, c.step, c.definition, 1,
        clock_timestamp() + c.due * interval '1 microsecond', c.payload, c.owner,
        clock_timestamp() + c.ttl * interval '1 microsecond'
    FROM unnest(c_id, c_saga, c_tenant, c_key, c_kind, c_step, c_definition, c_payload, c_due, c_owner, c_ttl)
        c (id, saga, tenant, key, kind, step, definition, payload, due, owner, ttl)
    WHERE c.saga = ANY (v_new);
    RETURN v_new;
END
$$;

-- As `record_changes` was, with the time for which sagas are kept that end: in microseconds until `expires_at` and until
-- `delete_at`. A saga without such a time has no date any more, whatever it had.
CREATE OR REPLACE FUNCTION {schema}.record_dated_changes(
    p_xact text, p_cdc boolean,
    h_change integer[], h_id bigint[], h_epoch bigint[], h_not_late boolean[],
    f_change integer[], f_id bigint[],
    p_change integer[], p_id bigint[], p_due bigint[], p_attempts bigint[], p_maybe boolean[], p_error text[],
    r_change integer[], r_tenant text[], r_key text[], r_step text[], r_saga bigint[], r_outcome text[],
    r_position bigint[], r_attempts bigint[], r_took bigint[], r_output bytea[], r_error bytea[], r_input bytea[],
    v_change integer[], v_tenant text[], v_key text[], v_step text[], v_expected text[], v_outcome text[],
    v_output bytea[],
    s_change integer[], s_id bigint[], s_expected bigint[], s_new boolean[], s_status text[], s_ends boolean[],
    s_state bytea[], s_expire bigint[], s_delete bigint[], s_hosts text[],
    t_change integer[], t_id bigint[], t_tenant text[], t_key text[], t_definition integer[], t_digest bytea[],
    t_input bytea[], t_input_hash bytea[], t_state bytea[], t_status text[], t_ends boolean[],
    t_expire bigint[], t_delete bigint[], t_hosts text[],
    c_change integer[], c_id bigint[], c_saga bigint[], c_tenant text[], c_key text[], c_kind text[], c_step text[],
    c_definition integer[], c_payload bytea[], c_due bigint[], c_owner bigint[], c_ttl bigint[],
    m_change integer[], m_id uuid[], m_lane smallint[], m_tenant text[], m_type text[], m_aggregate text[],
    m_event text[], m_position bigint[], m_payload bytea[], m_kind text[], m_headers text[],
    m_due bigint[],
    l_change integer[], l_id bigint[], l_fingerprint bytea[], l_tenant text[], l_reason text[], l_detail text[],
    l_source text[], l_headers text[], l_payload bytea[], l_message bytea[], l_attempts bigint[],
    e_change integer[], e_saga bigint[], e_step text[], e_kind text[], e_attempt bigint[], e_detail text[]
) RETURNS TABLE (miss text, change integer, number bigint, step text, output bytea)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
    SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_bad integer[] := '{}';
    v_looks boolean := p_xact IS NULL;
    v_tries integer := 0;
    v_unwritten integer[];
    v_started bigint[] := '{}';
    v_messages uuid[];
    v_met record;
BEGIN
    IF p_xact IS NOT NULL THEN
        IF p_xact <> pg_current_xact_id()::text THEN
            RETURN QUERY SELECT 'ended', NULL::integer, NULL::bigint, NULL, NULL::bytea;
            RETURN;
        END IF;
        PERFORM set_config('saga.recorded', p_xact, true);
        IF current_setting('saga.guarded', true) = 'on' THEN
            PERFORM set_config('default_transaction_read_only', 'off', false);
        END IF;
    END IF;

    IF cardinality(h_change) > 0 THEN
        FOR v_met IN
            SELECT h.change, h.id, w.id IS NULL AND h.epoch IS NOT NULL AS is_lost, w.late FROM
                unnest(h_change, h_id, h_epoch, h_not_late) h (change, id, epoch, not_late)
            LEFT JOIN LATERAL (
                SELECT w.id, CASE WHEN h.not_late THEN w.late END AS late FROM {schema}.work w
                WHERE w.id = h.id AND (w.epoch = h.epoch OR h.epoch IS NULL) FOR UPDATE) w ON true
        LOOP
            IF v_met.is_lost THEN
                v_bad := v_bad || v_met.change;
                RETURN QUERY SELECT 'work', v_met.change, v_met.id, NULL, NULL::bytea;
            ELSIF v_met.late IS NOT NULL THEN
                v_bad := v_bad || v_met.change;
                RETURN QUERY SELECT 'late', v_met.change, v_met.id, NULL, v_met.late;
            END IF;
        END LOOP;
    END IF;

    -- Whoever holds the claims expects no records; others look first. Either may find that somebody was quicker.
    WHILE cardinality(r_change) > 0 LOOP
        IF v_looks THEN
            FOR v_met IN
                SELECT r.change, r.step FROM (
                    SELECT r.*, row_number() OVER (PARTITION BY r.tenant, r.key, r.step) AS nth
                    FROM unnest(r_change, r_tenant, r_key, r_step) r (change, tenant, key, step)) r
                WHERE r.change <> ALL (v_bad) AND (r.nth > 1 OR EXISTS (
                    SELECT 1 FROM {schema}.records o
                    WHERE o.tenant = r.tenant AND o.key = r.key AND o.step = r.step OFFSET 0))
            LOOP
                v_bad := v_bad || v_met.change;
                RETURN QUERY SELECT 'record', v_met.change, NULL::bigint, v_met.step, NULL::bytea;
            END LOOP;
        END IF;
        v_unwritten := v_bad;
        BEGIN
            INSERT INTO {schema}.records (tenant, key, step, saga, outcome, position, attempts, recorded_at,
                took_micros, output, error, input)
            SELECT r.tenant, r.key, r.step, r.saga, r.outcome, r.position, r.attempts, v_now, r.took, r.output, r.error,
                r.input
            FROM unnest(r_change, r_tenant, r_key, r_step, r_saga, r_outcome, r_position, r_attempts, r_took, r_output,
                r_error, r_input)
                r (change, tenant, key, step, saga, outcome, position, attempts, took, output, error, input)
            WHERE r.change <> ALL (v_bad);
            EXIT;
        EXCEPTION WHEN unique_violation THEN
            v_looks := true;
            v_tries := v_tries + 1;
            IF v_tries > 8 THEN
                RAISE EXCEPTION 'others record the same steps all the time' USING ERRCODE = 'serialization_failure';
            END IF;
        END;
    END LOOP;
    IF cardinality(v_change) > 0 THEN
        FOR v_met IN
            SELECT v.change, v.step FROM
                unnest(v_change, v_tenant, v_key, v_step, v_expected) v (change, tenant, key, step, expected)
            LEFT JOIN LATERAL (
                SELECT 1 AS there FROM {schema}.records r WHERE r.tenant = v.tenant AND r.key = v.key
                  AND r.step = v.step AND r.outcome = v.expected FOR UPDATE) r ON true
            WHERE r.there IS NULL AND v.change <> ALL (v_bad)
        LOOP
            v_bad := v_bad || v_met.change;
            RETURN QUERY SELECT 'record', v_met.change, NULL::bigint, v_met.step, NULL::bytea;
        END LOOP;
    END IF;

    IF false = ANY (s_new) THEN
        FOR v_met IN
            SELECT s.change, s.id, p.version FROM unnest(s_change, s_id, s_expected, s_new) s (change, id, expected, new)
            LEFT JOIN LATERAL (SELECT p.version FROM {schema}.progress p WHERE p.id = s.id FOR UPDATE) p ON true
            WHERE s.change <> ALL (v_bad) AND NOT s.new AND p.version IS DISTINCT FROM s.expected
        LOOP
            v_bad := v_bad || v_met.change;
            RETURN QUERY SELECT CASE WHEN v_met.version IS NULL THEN 'absent' ELSE 'saga' END, v_met.change, v_met.id, NULL,
                NULL::bytea;
        END LOOP;
    END IF;

    -- Last, so that what is started here is never in the way of anything.
    IF cardinality(t_change) > 0 AND (p_xact IS NULL OR cardinality(v_bad) = 0) THEN
        WITH new AS (
            INSERT INTO {schema}.sagas AS i (id, tenant, key, definition, digest, input, input_hash, started_at)
            SELECT t.id, t.tenant, t.key, t.definition, t.digest, t.input, t.input_hash, v_now
            FROM unnest(t_change, t_id, t_tenant, t_key, t_definition, t_digest, t_input, t_input_hash)
                t (change, id, tenant, key, definition, digest, input, input_hash)
            WHERE t.change <> ALL (v_bad)
            ON CONFLICT (tenant, key) DO NOTHING RETURNING i.id)
        SELECT coalesce(array_agg(n.id), '{}') INTO v_started FROM new n;
        FOR v_met IN
            SELECT t.change, t.id FROM unnest(t_change, t_id) t (change, id)
            WHERE t.change <> ALL (v_bad) AND t.id <> ALL (v_started)
        LOOP
            v_bad := v_bad || v_met.change;
            RETURN QUERY SELECT 'taken', v_met.change, v_met.id, NULL, NULL::bytea;
        END LOOP;
        INSERT INTO {schema}.progress
            (id, status, version, state, advanced_at, ended_at, expires_at, delete_at, hosts)
        SELECT t.id, t.status, 1, t.state, v_now, CASE WHEN t.ends THEN v_now END,
            v_now + t.expire * interval '1 microsecond', v_now + t.delete * interval '1 microsecond', t.hosts
        FROM unnest(t_id, t_state, t_status, t_ends, t_expire, t_delete, t_hosts)
            t (id, state, status, ends, expire, delete, hosts) WHERE t.id = ANY (v_started);
    END IF;

    IF cardinality(v_bad) > 0 THEN
        -- What was inserted for the changes that missed is taken back.
        DELETE FROM {schema}.records d USING unnest(r_change, r_tenant, r_key, r_step) r (change, tenant, key, step)
        WHERE d.tenant = r.tenant AND d.key = r.key AND d.step = r.step
          AND r.change <> ALL (v_unwritten) AND (p_xact IS NOT NULL OR r.change = ANY (v_bad));
        IF p_xact IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;

    v_now := clock_timestamp();
    IF cardinality(f_change) > 0 THEN
        DELETE FROM {schema}.work w WHERE w.id = ANY (ARRAY(
            SELECT f.id FROM unnest(f_change, f_id) f (change, id) WHERE f.change <> ALL (v_bad)));
    END IF;
    IF cardinality(v_change) > 0 THEN
        UPDATE {schema}.records r SET outcome = v.outcome, output = v.output
        FROM unnest(v_change, v_tenant, v_key, v_step, v_outcome, v_output)
            v (change, tenant, key, step, outcome, output)
        WHERE r.tenant = v.tenant AND r.key = v.key AND r.step = v.step AND v.change <> ALL (v_bad);
    END IF;
    IF false = ANY (s_new) THEN
        UPDATE {schema}.progress p SET version = s.expected + 1, state = s.state, advanced_at = v_now,
            status = s.status, ended_at = CASE WHEN s.ends THEN coalesce(p.ended_at, v_now) END,
            expires_at = v_now + s.expire * interval '1 microsecond',
            delete_at = v_now + s.delete * interval '1 microsecond', hosts = s.hosts
        FROM unnest(s_change, s_id, s_expected, s_new, s_status, s_ends, s_state, s_expire, s_delete, s_hosts)
            s (change, id, expected, new, status, ends, state, expire, delete, hosts)
        WHERE p.id = s.id AND NOT s.new AND s.change <> ALL (v_bad);
    END IF;
    IF true = ANY (s_new) THEN
        INSERT INTO {schema}.progress
            (id, status, version, state, advanced_at, ended_at, expires_at, delete_at, hosts)
        SELECT s.id, s.status, s.expected + 1, s.state, v_now, CASE WHEN s.ends THEN v_now END,
            v_now + s.expire * interval '1 microsecond', v_now + s.delete * interval '1 microsecond', s.hosts
        FROM unnest(s_change, s_id, s_expected, s_new, s_status, s_ends, s_state, s_expire, s_delete, s_hosts)
            s (change, id, expected, new, status, ends, state, expire, delete, hosts)
        WHERE s.new AND s.change <> ALL (v_bad);
    END IF;
    IF cardinality(c_change) > 0 THEN
        INSERT INTO {schema}.work
            (id, saga, tenant, key, kind, step, definition, epoch, due_at, payload, owner, leased_until)
        SELECT c.id, c.saga, c.tenant, c.key, c.kind, c.step, c.definition, 1, v_now + c.due * interval '1 microsecond',
            c.payload, c.owner, v_now + c.ttl * interval '1 microsecond'
        FROM unnest(c_change, c_id, c_saga, c_tenant, c_key, c_kind, c_step, c_definition, c_payload, c_due, c_owner,
            c_ttl) c (change, id, saga, tenant, key, kind, step, definition, payload, due, owner, ttl)
        WHERE c.change <> ALL (v_bad);
    END IF;
    -- Behind the commands: one of them may have been tried before it was written.
    IF cardinality(p_change) > 0 THEN
        UPDATE {schema}.work w SET owner = NULL, leased_until = NULL, due_at = v_now + p.due * interval '1 microsecond',
            attempts = p.attempts, maybe = p.maybe, error = coalesce(p.error, w.error),
            retrying_since = CASE WHEN p.error IS NULL THEN w.retrying_since ELSE coalesce(w.retrying_since, v_now) END
        FROM unnest(p_change, p_id, p_due, p_attempts, p_maybe, p_error) p (change, id, due, attempts, maybe, error)
        WHERE w.id = p.id AND p.change <> ALL (v_bad);
    END IF;
    IF cardinality(m_change) > 0 THEN
        WITH new AS (
            INSERT INTO {schema}.outbox AS o
                (id, lane, tenant, aggregatetype, aggregateid, type, position, committed_at, payload, kind, headers,
                due_at)
            SELECT m.id, m.lane, m.tenant, m.type, m.aggregate, m.event, m.position, v_now, m.payload, m.kind, m.headers,
                v_now + m.due * interval '1 microsecond'
            FROM unnest(m_change, m_id, m_lane, m_tenant, m_type, m_aggregate, m_event, m_position, m_payload, m_kind,
                m_headers, m_due)
                m (change, id, lane, tenant, type, aggregate, event, position, payload, kind, headers, due)
            WHERE m.change <> ALL (v_bad)
            ON CONFLICT (id) DO NOTHING RETURNING o.id)
        SELECT array_agg(n.id) INTO v_messages FROM new n;
        IF p_cdc THEN
            DELETE FROM {schema}.outbox o WHERE o.id = ANY (v_messages);
        END IF;
    END IF;
    IF cardinality(l_change) > 0 THEN
        PERFORM {schema}.bury_letters(v_bad, l_change, l_id, l_fingerprint, l_tenant, l_reason, l_detail, l_source,
            l_headers, l_payload, l_message, l_attempts);
    END IF;
    IF cardinality(e_change) > 0 THEN
        INSERT INTO {schema}.history (saga, at, step, kind, attempt, detail)
        SELECT e.saga, v_now, e.step, e.kind, e.attempt, e.detail
        FROM unnest(e_change, e_saga, e_step, e_kind, e_attempt, e_detail)
            e (change, saga, step, kind, attempt, detail)
        WHERE e.change <> ALL (v_bad);
    END IF;
END
$$;

-- What processes of the version before call. A saga that one of them reopens loses its date.
CREATE OR REPLACE FUNCTION {schema}.record_changes(
    p_xact text, p_cdc boolean,
    h_change integer[], h_id bigint[], h_epoch bigint[], h_not_late boolean[],
    f_change integer[], f_id bigint[],
    p_change integer[], p_id bigint[], p_due bigint[], p_attempts bigint[], p_maybe boolean[], p_error text[],
    r_change integer[], r_tenant text[], r_key text[], r_step text[], r_saga bigint[], r_outcome text[],
    r_position bigint[], r_attempts bigint[], r_took bigint[], r_output bytea[], r_error bytea[], r_input bytea[],
    v_change integer[], v_tenant text[], v_key text[], v_step text[], v_expected text[], v_outcome text[],
    v_output bytea[],
    s_change integer[], s_id bigint[], s_expected bigint[], s_new boolean[], s_status text[], s_ends boolean[],
    s_state bytea[],
    t_change integer[], t_id bigint[], t_tenant text[], t_key text[], t_definition integer[], t_digest bytea[],
    t_input bytea[], t_input_hash bytea[], t_state bytea[], t_status text[], t_ends boolean[],
    c_change integer[], c_id bigint[], c_saga bigint[], c_tenant text[], c_key text[], c_kind text[], c_step text[],
    c_definition integer[], c_payload bytea[], c_due bigint[], c_owner bigint[], c_ttl bigint[],
    m_change integer[], m_id uuid[], m_lane smallint[], m_tenant text[], m_type text[], m_aggregate text[],
    m_event text[], m_position bigint[], m_payload bytea[], m_kind text[], m_headers text[],
    m_due bigint[],
    l_change integer[], l_id bigint[], l_fingerprint bytea[], l_tenant text[], l_reason text[], l_detail text[],
    l_source text[], l_headers text[], l_payload bytea[], l_message bytea[], l_attempts bigint[],
    e_change integer[], e_saga bigint[], e_step text[], e_kind text[], e_attempt bigint[], e_detail text[]
) RETURNS TABLE (miss text, change integer, number bigint, step text, output bytea)
LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY SELECT * FROM {schema}.record_dated_changes(
        p_xact, p_cdc, h_change, h_id, h_epoch, h_not_late, f_change, f_id, p_change, p_id, p_due, p_attempts,
        p_maybe, p_error, r_change, r_tenant, r_key, r_step, r_saga, r_outcome, r_position, r_attempts, r_took,
        r_output, r_error, r_input, v_change, v_tenant, v_key, v_step, v_expected, v_outcome, v_output, s_change,
        s_id, s_expected, s_new, s_status, s_ends, s_state, NULL, NULL, NULL, t_change, t_id, t_tenant, t_key,
        t_definition, t_digest, t_input, t_input_hash, t_state, t_status, t_ends, NULL, NULL, NULL, c_change, c_id,
        c_saga, c_tenant, c_key, c_kind, c_step, c_definition, c_payload, c_due, c_owner, c_ttl, m_change, m_id,
        m_lane, m_tenant, m_type, m_aggregate, m_event, m_position, m_payload, m_kind, m_headers, m_due, l_change,
        l_id, l_fingerprint, l_tenant, l_reason, l_detail, l_source, l_headers, l_payload, l_message, l_attempts,
        e_change, e_saga, e_step, e_kind, e_attempt, e_detail);
END
$$;

-- The keys by which a saga may be named: its own, those of its sub-sagas, and those of the sagas that it is a step of.
CREATE OR REPLACE FUNCTION {schema}.names_of(p_ids bigint[], p_subs bigint[], p_sub_of bigint[], p_sub_keys text[])
RETURNS TABLE (saga bigint, tenant text, key text)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
    SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY SELECT o.id, o.tenant, o.key FROM {schema}.sagas o WHERE o.id = ANY (p_ids);
    RETURN QUERY SELECT o.id, o.tenant, array_to_string((string_to_array(o.key, '>'))[1:i.parts], '>')
        FROM {schema}.sagas o
        CROSS JOIN LATERAL generate_series(1, cardinality(string_to_array(o.key, '>')) - 1) i (parts)
        WHERE o.id = ANY (p_ids) AND position('>' IN o.key) > 0;
    IF cardinality(p_subs) > 0 THEN
        RETURN QUERY SELECT s.outermost, o.tenant, s.key FROM unnest(p_sub_of, p_sub_keys) s (outermost, key)
            CROSS JOIN LATERAL (SELECT o.tenant FROM {schema}.sagas o WHERE o.id = s.outermost OFFSET 0) o;
    END IF;
END
$$;

-- Those of the sagas that have a work row. The work rows have no index by saga, so one pass finds all of them.
CREATE OR REPLACE FUNCTION {schema}.sagas_with_work(p_sagas bigint[]) RETURNS bigint[]
LANGUAGE sql SET enable_indexscan = off SET enable_indexonlyscan = off SET enable_bitmapscan = off SET jit = off AS $$
    SELECT coalesce(array_agg(DISTINCT w.saga), '{}') FROM {schema}.work w
    WHERE w.saga IN (SELECT s.id FROM unnest(p_sagas) s (id));
$$;

-- Those of the sagas that have one of these names.
CREATE OR REPLACE FUNCTION {schema}.sagas_named(
    p_ids bigint[], p_subs bigint[], p_sub_of bigint[], p_sub_keys text[], p_tenants text[], p_keys text[]
) RETURNS bigint[] LANGUAGE sql SET enable_hashjoin = on SET enable_nestloop = off SET jit = off AS $$
    SELECT coalesce(array_agg(DISTINCT n.saga), '{}')
    FROM {schema}.names_of(p_ids, p_subs, p_sub_of, p_sub_keys) n
    JOIN unnest(p_tenants, p_keys) u (tenant, key) ON u.tenant = n.tenant AND u.key = n.key;
$$;

-- Makes tombstones of sagas, sorted by id, or deletes them; answers what became of each one that it held. It waits for
-- nothing long: others may hold records and wait for a saga that it holds.
CREATE OR REPLACE FUNCTION {schema}.purge_sagas(
    p_epoch bigint, p_ids bigint[], p_versions bigint[], p_tombstones boolean[], p_kept_for bigint, p_messages bigint
) RETURNS TABLE (saga bigint, became text)
LANGUAGE plpgsql SET lock_timeout = '100ms' SET enable_seqscan = off SET enable_hashjoin = off
    SET enable_mergejoin = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_epoch bigint;
    v_ids bigint[];
    v_subs bigint[];
    v_sub_of bigint[];
    v_sub_keys text[];
    v_held bigint[];
    v_ended bigint[];
    v_working bigint[];
    v_left bigint[];
    v_unfinished bigint[];
    v_lettered bigint[] := '{}';
    v_waiting bigint[] := '{}';
    v_kept bigint[];
    v_tombstones bigint[];
    v_deleted bigint[];
    v_gone bigint[];
    v_until timestamptz;
    v_older bigint;
    v_tenants text[];
    v_causes text[];
    v_names record;
BEGIN
    -- Another process takes the lease before or after this transaction.
    SELECT m.epoch INTO v_epoch FROM {schema}.maintenance m WHERE m.name = 'purge' FOR SHARE;
    IF v_epoch IS DISTINCT FROM p_epoch THEN
        RETURN QUERY SELECT NULL::bigint, 'lease lost';
        RETURN;
    END IF;

    v_ids := ARRAY(
        SELECT c.id FROM unnest(p_ids, p_versions, p_tombstones) c (id, version, tombstone) CROSS JOIN LATERAL (
            SELECT 1 FROM {schema}.progress p
            WHERE p.id = c.id AND p.version = c.version AND p.ended_at IS NOT NULL AND p.expires_at <= v_now
              AND (p.delete_at IS NOT NULL) = c.tombstone
            FOR UPDATE SKIP LOCKED) held);

    -- The sub-sagas: `?` is the character behind `>`.
    SELECT coalesce(array_agg(f.id ORDER BY f.id), '{}'), coalesce(array_agg(f.outermost ORDER BY f.id), '{}'),
        coalesce(array_agg(f.key ORDER BY f.id), '{}')
    INTO v_subs, v_sub_of, v_sub_keys FROM (
        SELECT i.id AS outermost, s.id, s.key FROM unnest(v_ids) i (id) CROSS JOIN LATERAL (
            SELECT o.tenant, o.key FROM {schema}.sagas o WHERE o.id = i.id OFFSET 0) o
        CROSS JOIN LATERAL (
            SELECT s.id, s.key FROM {schema}.sagas s
            WHERE s.tenant = o.tenant AND s.key > o.key || '>' AND s.key < o.key || '?' OFFSET 0) s) f;
    v_left := '{}';
    v_unfinished := '{}';
    IF cardinality(v_subs) > 0 THEN
        SELECT coalesce(array_agg(h.id), '{}'), coalesce(array_agg(h.id) FILTER (WHERE h.ended), '{}')
        INTO v_held, v_ended FROM unnest(v_subs) i (id) CROSS JOIN LATERAL (
            SELECT p.id, p.ended_at IS NOT NULL AS ended FROM {schema}.progress p WHERE p.id = i.id
            FOR UPDATE SKIP LOCKED) h;
        SELECT coalesce(array_agg(DISTINCT s.outermost) FILTER (WHERE s.id <> ALL (v_held)), '{}'),
            coalesce(array_agg(DISTINCT s.outermost) FILTER (WHERE s.id = ANY (v_held) AND s.id <> ALL (v_ended)), '{}')
        INTO v_left, v_unfinished FROM unnest(v_subs, v_sub_of) s (id, outermost);
    END IF;
    IF cardinality(v_left) > 0 THEN
        v_ids := ARRAY(SELECT i.id FROM unnest(v_ids) i (id) WHERE i.id <> ALL (v_left));
    END IF;
    IF cardinality(v_ids) = 0 THEN
        RETURN;
    END IF;
    v_working := {schema}.sagas_with_work(v_ids || v_subs);
    IF cardinality(v_working) > 0 THEN
        v_unfinished := v_unfinished || ARRAY(SELECT i.id FROM unnest(v_ids) i (id) WHERE i.id = ANY (v_working))
            || ARRAY(SELECT s.outermost FROM unnest(v_subs, v_sub_of) s (id, outermost) WHERE s.id = ANY (v_working));
    END IF;

    -- Letters and messages name a saga by its key, by that of a sub-saga, or by that of a saga that it is a step of.
    IF EXISTS (SELECT 1 FROM {schema}.dead_letters l WHERE l.state = 'open') THEN
        v_lettered := ARRAY(
            SELECT DISTINCT n.saga FROM {schema}.names_of(v_ids, v_subs, v_sub_of, v_sub_keys) n
            WHERE EXISTS (SELECT 1 FROM {schema}.dead_letters l
                WHERE l.tenant = n.tenant AND {schema}.saga_key_of(l.headers) = n.key AND l.state = 'open' OFFSET 0));
    END IF;
    -- Only the oldest messages are looked at. What a saga caused was committed before its last advance, or within an hour
    -- after it; so if as many are older than that, one of them may be of any of the sagas.
    IF EXISTS (SELECT 1 FROM {schema}.outbox) THEN
        SELECT max(p.advanced_at) + interval '1 hour' INTO v_until FROM {schema}.progress p WHERE p.id = ANY (v_ids);
        SELECT count(*) FILTER (WHERE o.committed_at <= v_until), array_agg(o.tenant),
            array_agg(regexp_replace(substring(o.headers FROM '"saga-cause":"((?:[^"\\]|\\.)*)"'), '\\(.)', '\1', 'g'))
        INTO v_older, v_tenants, v_causes FROM (
            SELECT o.tenant, o.headers, o.committed_at FROM {schema}.outbox o ORDER BY o.seq LIMIT p_messages) o;
        IF v_older >= p_messages THEN
            v_waiting := v_ids;
        ELSE
            v_waiting := {schema}.sagas_named(v_ids, v_subs, v_sub_of, v_sub_keys, v_tenants, v_causes);
        END IF;
    END IF;

    v_kept := ARRAY(SELECT k.id FROM unnest(v_unfinished || v_lettered || v_waiting) k (id)
        INTERSECT SELECT i.id FROM unnest(v_ids) i (id));
    v_tombstones := ARRAY(
        SELECT c.id FROM unnest(p_ids, p_tombstones) c (id, tombstone) WHERE c.tombstone
        INTERSECT SELECT i.id FROM unnest(v_ids) i (id) EXCEPT SELECT k.id FROM unnest(v_kept) k (id));
    v_deleted := ARRAY(
        SELECT i.id FROM unnest(v_ids) i (id)
        EXCEPT SELECT t.id FROM unnest(v_tombstones || v_kept) t (id));
    v_gone := v_deleted;
    IF cardinality(v_subs) > 0 THEN
        v_gone := v_gone || ARRAY(SELECT s.id FROM unnest(v_subs, v_sub_of) s (id, outermost)
            WHERE s.outermost = ANY (v_tombstones) OR s.outermost = ANY (v_deleted));
    END IF;
    IF cardinality(v_kept) > 0 THEN
        UPDATE {schema}.progress p SET expires_at = v_now + p_kept_for * interval '1 microsecond',
            delete_at = v_now + p_kept_for * interval '1 microsecond' + (p.delete_at - p.expires_at)
        WHERE p.id = ANY (v_kept);
    END IF;

    -- One range of the index for each key. The keys of one tenant are one statement, whose plan has only one table.
    FOR v_names IN
        SELECT s.tenant, array_agg(s.key ORDER BY s.key) AS keys FROM {schema}.sagas s
        WHERE s.id = ANY (v_tombstones || v_gone) GROUP BY s.tenant ORDER BY s.tenant
    LOOP
        DELETE FROM {schema}.records r WHERE r.tenant = v_names.tenant AND r.key = ANY (v_names.keys);
    END LOOP;
    IF cardinality(v_tombstones) > 0 THEN
        -- What operators did with a sub-saga becomes part of the saga's history.
        IF cardinality(v_subs) > 0 THEN
            UPDATE {schema}.history h SET saga = s.outermost FROM unnest(v_subs, v_sub_of) s (id, outermost)
            WHERE h.saga = s.id AND h.kind = 'operator' AND s.outermost = ANY (v_tombstones);
        END IF;
        DELETE FROM {schema}.history h WHERE h.saga = ANY (v_tombstones) AND h.kind <> 'operator';
        UPDATE {schema}.sagas s SET input = '' WHERE s.id = ANY (v_tombstones);
        -- However late it is made, a tombstone is kept for as long as another one: its hosts are told only now.
        UPDATE {schema}.progress p SET state = '', expires_at = v_now + (p.delete_at - p.expires_at), delete_at = NULL,
            hosts = NULL
        WHERE p.id = ANY (v_tombstones);
    END IF;
    DELETE FROM {schema}.history h WHERE h.saga = ANY (v_gone);
    DELETE FROM {schema}.progress p WHERE p.id = ANY (v_gone);
    DELETE FROM {schema}.sagas s WHERE s.id = ANY (v_gone);

    RETURN QUERY SELECT t.id, 'tombstone' FROM unnest(v_tombstones) t (id)
        UNION ALL SELECT d.id, 'deleted' FROM unnest(v_deleted) d (id)
        UNION ALL SELECT k.id, CASE WHEN k.id = ANY (v_unfinished) THEN 'unfinished'
            WHEN k.id = ANY (v_lettered) THEN 'dead_letter' ELSE 'outbox' END FROM unnest(v_kept) k (id);
END
$$;
