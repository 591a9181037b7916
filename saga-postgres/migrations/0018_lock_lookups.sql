-- Locks with fewer look-ups.

-- Takes what is free. The entities are those of the first request, then those of the second, and so on: `p_places` has the
-- request of each entity, `p_tenants` its tenant, and `p_lasts` the last entity of each request. A request that is missing in the
-- answer was not taken. The saga of a request is null if this transaction starts it: then no request of it is stored.
CREATE OR REPLACE FUNCTION {schema}.take_locks(
    p_sagas bigint[], p_names text[], p_lasts int[], p_places int[], p_tenants text[], p_kinds text[], p_ids text[]
) RETURNS TABLE (place int, tokens bigint[], stored boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_refused int[] := '{}';
    v_asked int[] := '{}';
BEGIN
    -- Rows name the entities of a request that is stored, so these are not taken here.
    IF cardinality(array_remove(p_sagas, NULL)) > 0 THEN
        v_asked := ARRAY(
            SELECT r.place::int FROM unnest(p_sagas, p_names) WITH ORDINALITY AS r(saga, name, place)
            WHERE EXISTS (
                SELECT FROM {schema}.lock_requests q WHERE q.saga = r.saga AND q.name = r.name OFFSET 0));
    END IF;
    IF cardinality(v_asked) < cardinality(p_sagas) THEN
        -- Mostly no row names one of the entities. They are looked up once, when they are locked: a later statement sees what
        -- was committed until then.
        BEGIN
            v_refused := ARRAY(
                SELECT e.place FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
                WHERE e.place <> ALL (v_asked)
                  AND NOT pg_try_advisory_xact_lock({schema}.entity_lock(e.tenant, e.kind, e.id)));
            IF EXISTS (
                SELECT FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
                WHERE e.place <> ALL (v_asked) AND EXISTS (
                    SELECT FROM {schema}.locked_entities q
                    WHERE q.tenant = e.tenant AND q.kind = e.kind AND q.id = e.id OFFSET 0))
            THEN
                RAISE SQLSTATE 'SG001';
            END IF;
        EXCEPTION WHEN SQLSTATE 'SG001' THEN
            -- The entities are free again. One that a row names is left alone: the transaction that ends its lock may wait for
            -- it.
            v_refused := ARRAY(
                SELECT e.place FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
                WHERE e.place <> ALL (v_asked) AND CASE
                    WHEN EXISTS (
                        SELECT FROM {schema}.locked_entities q
                        WHERE q.tenant = e.tenant AND q.kind = e.kind AND q.id = e.id OFFSET 0) THEN true
                    ELSE NOT pg_try_advisory_xact_lock({schema}.entity_lock(e.tenant, e.kind, e.id)) END);
            v_refused := v_refused || ARRAY(
                SELECT e.place FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
                WHERE e.place <> ALL (v_asked) AND EXISTS (
                    SELECT FROM {schema}.locked_entities q
                    WHERE q.tenant = e.tenant AND q.kind = e.kind AND q.id = e.id OFFSET 0));
        END;
    END IF;
    RETURN QUERY
    SELECT r.place, array_fill(nextval('{schema}.lock_numbers'),
        ARRAY[p_lasts[r.place] - coalesce(p_lasts[r.place - 1], 0)]), false
    FROM generate_subscripts(p_sagas, 1) AS r(place)
    WHERE r.place <> ALL (v_refused) AND r.place <> ALL (v_asked);
    IF cardinality(v_asked) > 0 THEN
        RETURN QUERY
        SELECT r.place, ARRAY(
            SELECT e.token FROM {schema}.locked_entities e WHERE e.number = q.number ORDER BY e.kind, e.id), true
        FROM unnest(v_asked) AS r(place)
        JOIN {schema}.lock_requests q ON q.saga = p_sagas[r.place] AND q.name = p_names[r.place]
        WHERE q.state = 'granted'
          AND ARRAY(
            SELECT e.kind FROM {schema}.locked_entities e WHERE e.number = q.number ORDER BY e.kind, e.id)
            = p_kinds[coalesce(p_lasts[r.place - 1], 0) + 1 : p_lasts[r.place]]
          AND ARRAY(
            SELECT e.id FROM {schema}.locked_entities e WHERE e.number = q.number ORDER BY e.kind, e.id)
            = p_ids[coalesce(p_lasts[r.place - 1], 0) + 1 : p_lasts[r.place]];
    END IF;
END
$$;

-- The owners that a request waits for.
CREATE OR REPLACE FUNCTION {schema}.lock_blockers(p_number bigint) RETURNS SETOF text
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    SELECT DISTINCT o.owner
    FROM {schema}.locked_entities m
    CROSS JOIN LATERAL (
        (SELECT q.owner FROM {schema}.locked_entities q
         WHERE q.tenant = m.tenant AND q.kind = m.kind AND q.id = m.id AND q.owner <> m.owner AND q.token IS NOT NULL)
        UNION ALL
        (SELECT q.owner FROM {schema}.locked_entities q
         WHERE q.tenant = m.tenant AND q.kind = m.kind AND q.id = m.id AND q.owner <> m.owner AND q.number < m.number)
    ) o
    WHERE m.number = p_number AND m.token IS NULL AND NOT EXISTS (
        SELECT FROM {schema}.locked_entities h
        WHERE h.tenant = m.tenant AND h.kind = m.kind AND h.id = m.id AND h.owner = m.owner AND h.token IS NOT NULL
        OFFSET 0)
    ORDER BY 1;
END
$$;

-- Whether `lock_blockers` has an owner. The first one that is found answers, however many wait.
CREATE OR REPLACE FUNCTION {schema}.lock_is_blocked(p_number bigint) RETURNS boolean
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN EXISTS (
        SELECT FROM {schema}.locked_entities m
        WHERE m.number = p_number AND m.token IS NULL AND NOT EXISTS (
            SELECT FROM {schema}.locked_entities h
            WHERE h.tenant = m.tenant AND h.kind = m.kind AND h.id = m.id AND h.owner = m.owner
              AND h.token IS NOT NULL OFFSET 0)
          AND (EXISTS (
            SELECT FROM {schema}.locked_entities q
            WHERE q.tenant = m.tenant AND q.kind = m.kind AND q.id = m.id AND q.owner <> m.owner
              AND q.token IS NOT NULL OFFSET 0)
          OR EXISTS (
            SELECT FROM {schema}.locked_entities q
            WHERE q.tenant = m.tenant AND q.kind = m.kind AND q.id = m.id AND q.owner <> m.owner
              AND q.number < m.number OFFSET 0)));
END
$$;

-- Grants the requests on these entities that are not blocked any more, and makes their rows due. The owner of such a request
-- has the entity, or, if none has it, is the first in the queue.
CREATE OR REPLACE FUNCTION {schema}.hand_over(p_tenant text, p_kinds text[], p_ids text[], p_now timestamptz) RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_number bigint;
BEGIN
    LOOP
        SELECT w.number INTO v_number
        FROM unnest(p_kinds, p_ids) AS e(kind, id)
        CROSS JOIN LATERAL (
            SELECT coalesce(
                (SELECT q.owner FROM {schema}.locked_entities q
                 WHERE q.tenant = p_tenant AND q.kind = e.kind AND q.id = e.id AND q.token IS NOT NULL LIMIT 1),
                (SELECT q.owner FROM {schema}.locked_entities q
                 WHERE q.tenant = p_tenant AND q.kind = e.kind AND q.id = e.id ORDER BY q.number LIMIT 1)) AS owner
            OFFSET 0) f
        -- The texts beside the columns leave the index of the owner to the planner: the queue of the entity may be long.
        CROSS JOIN LATERAL (
            SELECT q.number FROM {schema}.locked_entities q
            WHERE q.tenant = p_tenant AND q.owner = f.owner AND q.kind || '' = e.kind AND q.id || '' = e.id
              AND q.token IS NULL OFFSET 0) w
        WHERE NOT {schema}.lock_is_blocked(w.number)
        ORDER BY w.number LIMIT 1;
        EXIT WHEN v_number IS NULL;
        PERFORM {schema}.grant_lock(v_number, p_now);
        UPDATE {schema}.work SET due_at = p_now
        WHERE id = (SELECT r.work FROM {schema}.lock_requests r WHERE r.number = v_number);
    END LOOP;
END
$$;

-- Asks for one lock, when its entities are locked for this transaction. The request has this number if it is new.
CREATE OR REPLACE FUNCTION {schema}.ask_for_lock(
    p_tenant text, p_owner text, p_saga bigint, p_key text, p_name text, p_kinds text[], p_ids text[],
    p_work bigint, p_epoch bigint, p_within bigint, p_number bigint,
    OUT answer text, OUT front text, OUT left_micros bigint, OUT tokens bigint[]
) LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    v_number bigint;
    v_until timestamptz;
BEGIN
    PERFORM FROM {schema}.work w WHERE w.id = p_work AND w.epoch = p_epoch FOR UPDATE;
    IF NOT FOUND THEN
        answer := 'gone';
        RETURN;
    END IF;
    SELECT r.number, r.state, r.waits_until INTO v_number, answer, v_until
    FROM {schema}.lock_requests r WHERE r.saga = p_saga AND r.name = p_name;
    IF v_number IS NULL THEN
        v_number := p_number;
        v_until := v_now + p_within * interval '1 microsecond';
        INSERT INTO {schema}.lock_requests
            (number, tenant, owner, saga, key, name, work, state, asked_at, waits_until)
        VALUES (v_number, p_tenant, p_owner, p_saga, p_key, p_name, p_work, 'waiting', v_now, v_until);
        INSERT INTO {schema}.locked_entities (tenant, kind, id, number, owner)
        SELECT p_tenant, e.kind, e.id, v_number, p_owner FROM unnest(p_kinds, p_ids) AS e(kind, id);
        IF {schema}.lock_is_blocked(v_number) THEN
            PERFORM {schema}.end_deadlocks(p_tenant, p_owner, v_now);
        ELSE
            PERFORM {schema}.grant_lock(v_number, v_now);
        END IF;
    ELSE
        UPDATE {schema}.lock_requests SET work = p_work WHERE number = v_number AND work <> p_work;
        IF answer = 'waiting' AND v_until <= v_now THEN
            UPDATE {schema}.lock_requests SET state = 'timed-out',
                other = coalesce((SELECT min(b) FROM {schema}.lock_blockers(v_number) AS b), p_owner)
            WHERE number = v_number;
            DELETE FROM {schema}.locked_entities WHERE number = v_number;
            PERFORM {schema}.hand_over(p_tenant, p_kinds, p_ids, v_now);
        END IF;
    END IF;
    SELECT r.state, r.other INTO answer, front FROM {schema}.lock_requests r WHERE r.number = v_number;
    IF answer = 'waiting' THEN
        left_micros := greatest((extract(epoch FROM v_until - v_now) * 1000000)::bigint, 0);
        UPDATE {schema}.work SET owner = NULL, leased_until = NULL, due_at = v_until WHERE id = p_work;
    ELSIF answer = 'granted' THEN
        SELECT array_agg(e.token ORDER BY e.kind, e.id) INTO tokens
        FROM {schema}.locked_entities e WHERE e.number = v_number;
    END IF;
END
$$;
