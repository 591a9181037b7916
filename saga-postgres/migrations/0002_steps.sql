-- The statements of the hot path, as functions: each is one round trip, its parts see what was committed before they
-- began, and its plans use indexes however wrong the statistics are of tables that fill and empty all the time.

-- Refuses a commit of a step transaction that nobody recorded: a step sent COMMIT by itself.
CREATE FUNCTION {schema}.refuse_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('saga.recorded', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
        RAISE EXCEPTION 'a step must not end its transaction, nor set all constraints immediate without naming them'
            USING ERRCODE = 'SG001';
    END IF;
    RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER refuse_commit AFTER INSERT OR UPDATE ON {schema}.guards
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {schema}.refuse_commit();

-- Holds the rows of a batch of commands, sorted by id, and says which of them may run. Starts the sagas of those that have
-- no row yet, sorted by tenant and key, and says which of them are new; their progress is for `record_changes` to insert.
CREATE FUNCTION {schema}.grant_claims(
    p_ids bigint[], p_epochs bigint[], p_sagas bigint[], p_tenant text, p_keys text[], p_steps text[], p_statuses text[],
    t_id bigint[], t_tenant text[], t_key text[], t_definition integer[], t_digest bytea[], t_input bytea[],
    t_input_hash bytea[]
) RETURNS TABLE (xact text, granted integer[], started bigint[])
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
    SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_held integer[] := '{}';
    v_granted integer[] := '{}';
    v_started bigint[] := '{}';
BEGIN
    IF cardinality(p_ids) > 0 THEN
        v_held := ARRAY(
            SELECT c.place::integer FROM unnest(p_ids, p_epochs) WITH ORDINALITY c (id, epoch, place)
            CROSS JOIN LATERAL (
                SELECT 1 FROM {schema}.work w WHERE w.id = c.id AND w.epoch = c.epoch FOR UPDATE SKIP LOCKED) held);
        -- A second statement: it sees what was committed until the rows were held.
        v_granted := ARRAY(
            SELECT c.place::integer FROM unnest(p_sagas, p_keys, p_steps, p_statuses) WITH ORDINALITY
                c (saga, key, step, status, place)
            WHERE c.place = ANY (v_held)
              AND EXISTS (SELECT 1 FROM {schema}.progress p WHERE p.id = c.saga AND p.status = c.status)
              -- Not a join: on a table that looks empty it would read all records of the tenant.
              AND NOT EXISTS (SELECT 1 FROM {schema}.records r
                  WHERE r.tenant = p_tenant AND r.key = c.key AND r.step = c.step OFFSET 0));
    END IF;
    IF cardinality(t_id) > 0 THEN
        BEGIN
            -- Nearly always all of them are new, and an insert that expects no conflict costs half as much.
            INSERT INTO {schema}.sagas (id, tenant, key, definition, digest, input, input_hash, started_at)
            SELECT t.*, clock_timestamp()
            FROM unnest(t_id, t_tenant, t_key, t_definition, t_digest, t_input, t_input_hash) t;
            v_started := t_id;
        EXCEPTION WHEN unique_violation THEN
            WITH new AS (
                INSERT INTO {schema}.sagas AS i (id, tenant, key, definition, digest, input, input_hash, started_at)
                SELECT t.*, clock_timestamp()
                FROM unnest(t_id, t_tenant, t_key, t_definition, t_digest, t_input, t_input_hash) t
                ON CONFLICT (tenant, key) DO NOTHING RETURNING i.id)
            SELECT coalesce(array_agg(n.id), '{}') INTO v_started FROM new n;
        END;
    END IF;
    IF cardinality(v_granted) + cardinality(v_started) > 0 THEN
        INSERT INTO {schema}.guards AS g (backend, touched) VALUES (pg_backend_pid(), true)
            ON CONFLICT (backend) DO UPDATE SET touched = NOT g.touched;
    END IF;
    RETURN QUERY SELECT pg_current_xact_id()::text, v_granted, v_started;
END
$$;

-- Leases work that is due, free and of a known definition: the oldest due first. The last row tells when the next is due.
CREATE FUNCTION {schema}.claim_work(p_definitions integer[], p_owner bigint, p_ttl bigint, p_limit bigint)
RETURNS TABLE (
    id bigint, epoch bigint, kind text, saga bigint, step text, attempts bigint, maybe boolean, suspect boolean,
    retrying_micros bigint, payload bytea, late bytea, next_due_micros bigint)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
    SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_owners bigint[];
    v_cutoffs timestamptz[];
    v_taken bigint[] := '{}';
    v_found bigint[];
    v_recorded bigint;
    v_next timestamptz;
BEGIN
    -- Who holds a lease, and until when a lease of theirs counts as ended: of the dead each one.
    WITH RECURSIVE owners (owner) AS (
        (SELECT min(w.owner) FROM {schema}.work w WHERE w.owner IS NOT NULL)
        UNION ALL
        SELECT (SELECT min(w.owner) FROM {schema}.work w WHERE w.owner > o.owner)
        FROM owners o WHERE o.owner IS NOT NULL
    )
    SELECT array_agg(o.owner), array_agg(CASE WHEN EXISTS (
            SELECT 1 FROM {schema}.members m WHERE m.id = o.owner AND m.alive_until > v_now)
        THEN v_now ELSE 'infinity' END)
    INTO v_owners, v_cutoffs FROM owners o WHERE o.owner IS NOT NULL;

    LOOP
        v_found := ARRAY(
            SELECT c.id FROM (
                SELECT w.id, w.due_at FROM unnest(p_definitions) d (id) CROSS JOIN LATERAL (
                    SELECT w.id, w.due_at FROM {schema}.work w
                    WHERE w.owner IS NULL AND w.definition = d.id AND w.due_at <= v_now
                    ORDER BY w.due_at, w.id LIMIT p_limit - cardinality(v_taken) FOR UPDATE SKIP LOCKED) w
                UNION ALL
                SELECT w.id, w.due_at FROM unnest(v_owners, v_cutoffs) o (owner, cutoff) CROSS JOIN LATERAL (
                    SELECT w.id, w.due_at FROM {schema}.work w
                    WHERE w.owner = o.owner AND w.leased_until <= o.cutoff AND w.due_at <= v_now
                      AND w.definition = ANY (p_definitions) AND w.id <> ALL (v_taken)
                    ORDER BY w.due_at, w.id LIMIT p_limit - cardinality(v_taken) FOR UPDATE SKIP LOCKED) w
            ) c ORDER BY c.due_at, c.id LIMIT p_limit - cardinality(v_taken));
        DELETE FROM {schema}.work w WHERE w.id = ANY (v_found) AND EXISTS (
            SELECT 1 FROM {schema}.records r WHERE r.tenant = w.tenant AND r.key = w.key AND r.step = w.step OFFSET 0);
        GET DIAGNOSTICS v_recorded = ROW_COUNT;
        IF v_recorded > 0 THEN
            v_found := ARRAY(SELECT w.id FROM {schema}.work w WHERE w.id = ANY (v_found));
        END IF;
        -- Only a lease that nobody gave back is still written on a free row: its owner vanished.
        RETURN QUERY WITH taken AS (
            UPDATE {schema}.work w SET epoch = w.epoch + 1, suspect = w.suspect OR w.owner IS NOT NULL, owner = p_owner,
                leased_until = clock_timestamp() + p_ttl * interval '1 microsecond'
            WHERE w.id = ANY (v_found)
            RETURNING w.*)
        SELECT t.id, t.epoch, t.kind, t.saga, t.step, t.attempts, t.maybe, t.suspect,
            (extract(epoch FROM v_now - t.retrying_since) * 1000000)::bigint, t.payload, t.late, NULL::bigint
        FROM taken t ORDER BY t.due_at, t.id;
        v_taken := v_taken || v_found;
        EXIT WHEN v_recorded = 0 OR cardinality(v_taken) >= p_limit;
    END LOOP;

    -- What is due and was not taken is in somebody's transaction, unless there was no room for it: to look again at once
    -- would be to spin.
    SELECT min(c.due_at) INTO v_next FROM (
        SELECT w.due_at FROM unnest(p_definitions) d (id) CROSS JOIN LATERAL (
            SELECT w.due_at FROM {schema}.work w WHERE w.owner IS NULL AND w.definition = d.id
              AND (w.due_at > v_now OR cardinality(v_taken) >= p_limit)
            ORDER BY w.due_at LIMIT 1) w
        UNION ALL
        SELECT w.due_at FROM unnest(v_owners, v_cutoffs) o (owner, cutoff) CROSS JOIN LATERAL (
            SELECT w.due_at FROM {schema}.work w
            WHERE w.owner = o.owner AND w.leased_until <= o.cutoff AND w.definition = ANY (p_definitions)
              AND w.due_at > v_now
            ORDER BY w.due_at LIMIT 1) w
    ) c;
    RETURN QUERY SELECT NULL::bigint, NULL::bigint, NULL, NULL::bigint, NULL, NULL::bigint, NULL::boolean, NULL::boolean,
        NULL::bigint, NULL::bytea, NULL::bytea,
        CASE WHEN v_next IS NOT NULL THEN greatest((extract(epoch FROM v_next - v_now) * 1000000)::bigint, 0) END;
END
$$;

-- Starts sagas, sorted by tenant and key and each key once; answers the ids of those that are new.
CREATE FUNCTION {schema}.start_sagas(
    s_id bigint[], s_tenant text[], s_key text[], s_definition integer[], s_digest bytea[], s_input bytea[],
    s_input_hash bytea[], s_state bytea[], s_status text[], s_ends boolean[],
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
    INSERT INTO {schema}.progress (id, status, version, state, advanced_at, ended_at)
    SELECT s.id, s.status, 1, s.state, v_now, CASE WHEN s.ends THEN v_now END
    FROM unnest(s_id, s_state, s_status, s_ends) s (id, state, status, ends) WHERE s.id = ANY (v_new);
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

-- Keeps messages that arrived, sorted by id; answers the work rows of those whose ids are new.
CREATE FUNCTION {schema}.receive_messages(
    p_id uuid[], p_work bigint[], p_tenant text[], p_message bytea[], p_owner bigint[], p_ttl bigint[]
) RETURNS TABLE (received_at timestamptz, new bigint[])
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
    SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_new bigint[];
BEGIN
    WITH new AS (
        INSERT INTO {schema}.received AS i (id, received_at, work)
        SELECT m.id, v_now, m.work FROM unnest(p_id, p_work) m (id, work)
        ON CONFLICT (id) DO NOTHING RETURNING i.work)
    SELECT coalesce(array_agg(n.work), '{}') INTO v_new FROM new n;
    INSERT INTO {schema}.work
        (id, saga, tenant, key, kind, step, definition, epoch, due_at, payload, owner, leased_until)
    SELECT m.work, 0, m.tenant, '', 'message', '', 0, 1, v_now, m.message, m.owner,
        clock_timestamp() + m.ttl * interval '1 microsecond'
    FROM unnest(p_work, p_tenant, p_message, p_owner, p_ttl) m (work, tenant, message, owner, ttl)
    WHERE m.work = ANY (v_new);
    RETURN QUERY SELECT v_now, v_new;
END
$$;

-- Buries letters, sorted by fingerprint, but those of the changes to skip; answers of each one that it buried whether it
-- is new. One by one, so that the second of two with one fingerprint counts the first.
CREATE FUNCTION {schema}.bury_letters(
    p_skip integer[],
    l_change integer[], l_id bigint[], l_fingerprint bytea[], l_tenant text[], l_reason text[], l_detail text[],
    l_source text[], l_headers text[], l_payload bytea[], l_message bytea[], l_attempts bigint[]
) RETURNS boolean[]
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_is_new boolean;
    v_new boolean[] := '{}';
BEGIN
    FOR v_place IN 1 .. cardinality(l_change) LOOP
        CONTINUE WHEN l_change[v_place] = ANY (p_skip);
        INSERT INTO {schema}.dead_letters AS d (id, fingerprint, tenant, reason, detail, source, headers, payload, message,
            attempts, seen, buried_at, state)
        VALUES (l_id[v_place], l_fingerprint[v_place], l_tenant[v_place], l_reason[v_place], l_detail[v_place],
            l_source[v_place], l_headers[v_place], l_payload[v_place], l_message[v_place], l_attempts[v_place], 1,
            clock_timestamp(), 'open')
        ON CONFLICT (fingerprint) WHERE state = 'open' DO UPDATE SET seen = d.seen + 1
        RETURNING d.seen = 1 INTO v_is_new;
        v_new := v_new || v_is_new;
    END LOOP;
    RETURN v_new;
END
$$;

-- Writes a whole batch of changes, numbered from 0. With `p_xact`, the transaction that the claims were made in, it writes
-- all of them or none; without it each for itself. What was in the way comes back, and nothing of what it was in the way
-- of is written. Arrays are sorted by what they lock: `h` and `s` by id, `r` and `v` by tenant, key and step, `t` by
-- tenant and key, `l` by fingerprint. A row of `s` that is new is that of a saga which `grant_claims` started. A row of
-- `h` without an epoch is one that is withdrawn: held if it is still there. With `p_cdc` messages are for who reads the
-- log of the server, and stay in no table.
CREATE FUNCTION {schema}.record_changes(
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
        INSERT INTO {schema}.progress (id, status, version, state, advanced_at, ended_at)
        SELECT t.id, t.status, 1, t.state, v_now, CASE WHEN t.ends THEN v_now END
        FROM unnest(t_id, t_state, t_status, t_ends) t (id, state, status, ends) WHERE t.id = ANY (v_started);
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
            status = s.status, ended_at = CASE WHEN s.ends THEN coalesce(p.ended_at, v_now) END
        FROM unnest(s_change, s_id, s_expected, s_new, s_status, s_ends, s_state)
            s (change, id, expected, new, status, ends, state)
        WHERE p.id = s.id AND NOT s.new AND s.change <> ALL (v_bad);
    END IF;
    IF true = ANY (s_new) THEN
        INSERT INTO {schema}.progress (id, status, version, state, advanced_at, ended_at)
        SELECT s.id, s.status, s.expected + 1, s.state, v_now, CASE WHEN s.ends THEN v_now END
        FROM unnest(s_change, s_id, s_expected, s_new, s_status, s_ends, s_state)
            s (change, id, expected, new, status, ends, state)
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
