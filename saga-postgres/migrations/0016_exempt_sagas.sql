-- As `record_dated_changes` was, but for the date of a saga that had ended without one.
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
            -- A saga that had ended and has no date is exempt, and stays so when a late success is recorded.
            expires_at = CASE WHEN p.ended_at IS NULL OR p.expires_at IS NOT NULL
                THEN v_now + s.expire * interval '1 microsecond' END,
            delete_at = CASE WHEN p.ended_at IS NULL OR p.expires_at IS NOT NULL
                THEN v_now + s.delete * interval '1 microsecond' END,
            hosts = CASE WHEN p.ended_at IS NULL OR p.expires_at IS NOT NULL THEN s.hosts END
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
