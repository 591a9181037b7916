-- Semantic locks in the transactions that start sagas.
--
-- A step transaction that ends locks of some sagas may have taken the entities of others before, and so it waits for the advisory
-- lock of an entity while it has others. Nobody may wait for one of its entities and have one that it waits for. So a call that
-- asks for locks has no entity while it waits for another one; and a transaction does not lock an entity that a row names, since
-- it cannot take that. The ends of locks wait for each other in one order.

-- Locks these keys for this transaction: all at once, or none while it waits for one. The keys are sorted.
CREATE FUNCTION {schema}.lock_together(p_keys bigint[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_refused bigint;
BEGIN
    FOR v_turn IN 1 .. 64 LOOP
        BEGIN
            SELECT k.key INTO v_refused FROM unnest(p_keys) AS k(key)
            WHERE NOT pg_try_advisory_xact_lock(k.key) LIMIT 1;
            IF v_refused IS NULL THEN
                RETURN;
            END IF;
            -- The end of the block releases the keys that it locked.
            RAISE SQLSTATE 'SG001';
        EXCEPTION WHEN SQLSTATE 'SG001' THEN NULL;
        END;
        BEGIN
            PERFORM pg_advisory_xact_lock(v_refused);
            RAISE SQLSTATE 'SG001';
        EXCEPTION WHEN SQLSTATE 'SG001' THEN NULL;
        END;
    END LOOP;
    RAISE lock_not_available USING MESSAGE = 'other transactions took the entities of a lock one after the other';
END
$$;

-- Asks for locks. The entities are those of the first request, then those of the second, and so on: `p_places` has the
-- request of each entity, and `p_lasts` the last entity of each request. The rows have the places of their requests.
CREATE OR REPLACE FUNCTION {schema}.ask_for_locks(
    p_tenants text[], p_owners text[], p_sagas bigint[], p_keys text[], p_names text[], p_works bigint[],
    p_epochs bigint[], p_withins bigint[], p_lasts int[], p_places int[], p_kinds text[], p_ids text[]
) RETURNS TABLE (place int, answer text, front text, left_micros bigint, tokens bigint[])
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_now timestamptz;
    v_met int[];
    v_held bigint[];
    v_plain int[];
    v_numbers bigint[];
    v_first int;
BEGIN
    PERFORM {schema}.lock_together(ARRAY(
        SELECT DISTINCT {schema}.entity_lock(p_tenants[e.place], e.kind, e.id)
        FROM unnest(p_places, p_kinds, p_ids) AS e(place, kind, id) ORDER BY 1));
    -- Later statements see what was committed until the entities were locked. First the requests that meet another one,
    -- in the tables or in this call.
    v_met := ARRAY(
        SELECT e.place FROM unnest(p_places, p_kinds, p_ids) AS e(place, kind, id)
        WHERE EXISTS (
            SELECT FROM {schema}.locked_entities q
            WHERE q.tenant = p_tenants[e.place] AND q.kind = e.kind AND q.id = e.id OFFSET 0)
        UNION ALL
        SELECT unnest(d.places) FROM (
            SELECT array_agg(e.place) AS places FROM unnest(p_places, p_kinds, p_ids) AS e(place, kind, id)
            GROUP BY p_tenants[e.place], e.kind, e.id HAVING count(*) > 1) d);
    IF cardinality(v_met) > 0 THEN
        PERFORM pg_advisory_xact_lock(l.key) FROM (
            SELECT DISTINCT {schema}.entity_lock(p_tenants[m.place], NULL, NULL) AS key
            FROM unnest(v_met) AS m(place) ORDER BY 1 OFFSET 0) l;
    END IF;
    v_held := ARRAY(
        SELECT h.id
        FROM (SELECT * FROM unnest(p_works, p_epochs) AS r(work, epoch) ORDER BY r.work OFFSET 0) r
        CROSS JOIN LATERAL (
            SELECT w.id FROM {schema}.work w WHERE w.id = r.work AND w.epoch = r.epoch FOR UPDATE) h);
    v_plain := ARRAY(
        SELECT r.place::int FROM unnest(p_sagas, p_names, p_works) WITH ORDINALITY AS r(saga, name, work, place)
        WHERE r.work = ANY (v_held) AND r.place <> ALL (v_met)
          AND NOT EXISTS (SELECT FROM {schema}.lock_requests q WHERE q.saga = r.saga AND q.name = r.name OFFSET 0));
    v_numbers := ARRAY(SELECT nextval('{schema}.lock_numbers') FROM unnest(p_sagas));
    IF cardinality(v_plain) > 0 THEN
        v_now := clock_timestamp();
        WITH asked AS (
            INSERT INTO {schema}.lock_requests
                (number, tenant, owner, saga, key, name, work, state, asked_at, waits_until, granted_at)
            SELECT r.number, r.tenant, r.owner, r.saga, r.key, r.name, r.work, 'granted', v_now,
                v_now + r.span * interval '1 microsecond', v_now
            FROM unnest(v_numbers, p_tenants, p_owners, p_sagas, p_keys, p_names, p_works, p_withins) WITH ORDINALITY
                AS r(number, tenant, owner, saga, key, name, work, span, place)
            WHERE r.place = ANY (v_plain)
        )
        -- The number of a request that is granted at once is its token as well.
        INSERT INTO {schema}.locked_entities (tenant, kind, id, number, owner, token)
        SELECT p_tenants[e.place], e.kind, e.id, v_numbers[e.place], p_owners[e.place], v_numbers[e.place]
        FROM unnest(p_places, p_kinds, p_ids) AS e(place, kind, id) WHERE e.place = ANY (v_plain);
        RETURN QUERY SELECT p.place, 'granted', NULL::text, NULL::bigint,
            array_fill(v_numbers[p.place], ARRAY[p_lasts[p.place] - coalesce(p_lasts[p.place - 1], 0)])
        FROM unnest(v_plain) AS p(place);
    END IF;
    FOR v_place IN 1 .. cardinality(p_sagas) LOOP
        CONTINUE WHEN v_place = ANY (v_plain);
        v_first := coalesce(p_lasts[v_place - 1], 0) + 1;
        RETURN QUERY SELECT v_place, a.answer, a.front, a.left_micros, a.tokens FROM {schema}.ask_for_lock(
            p_tenants[v_place], p_owners[v_place], p_sagas[v_place], p_keys[v_place], p_names[v_place],
            p_kinds[v_first:p_lasts[v_place]], p_ids[v_first:p_lasts[v_place]],
            p_works[v_place], p_epochs[v_place], p_withins[v_place], v_numbers[v_place]) a;
    END LOOP;
END
$$;

-- Takes what is free. The entities are those of the first request, then those of the second, and so on: `p_places` has the
-- request of each entity, `p_tenants` its tenant, and `p_lasts` the last entity of each request. A request that is missing in the answer was not taken.
CREATE OR REPLACE FUNCTION {schema}.take_locks(
    p_sagas bigint[], p_names text[], p_lasts int[], p_places int[], p_tenants text[], p_kinds text[], p_ids text[]
) RETURNS TABLE (place int, tokens bigint[], stored boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_refused int[];
    v_met int[];
    v_asked int[];
BEGIN
    v_refused := ARRAY(
        SELECT e.place FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
        WHERE CASE
            WHEN EXISTS (
                SELECT FROM {schema}.locked_entities q
                WHERE q.tenant = e.tenant AND q.kind = e.kind AND q.id = e.id OFFSET 0) THEN true
            ELSE NOT pg_try_advisory_xact_lock({schema}.entity_lock(e.tenant, e.kind, e.id)) END);
    -- Later statements see what was committed until the entities were locked.
    v_met := ARRAY(
        SELECT e.place FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
        WHERE EXISTS (
            SELECT FROM {schema}.locked_entities q
            WHERE q.tenant = e.tenant AND q.kind = e.kind AND q.id = e.id OFFSET 0));
    v_asked := ARRAY(
        SELECT r.place::int FROM unnest(p_sagas, p_names) WITH ORDINALITY AS r(saga, name, place)
        WHERE EXISTS (
            SELECT FROM {schema}.lock_requests q WHERE q.saga = r.saga AND q.name = r.name OFFSET 0));
    RETURN QUERY
    SELECT r.place, array_fill(nextval('{schema}.lock_numbers'),
        ARRAY[p_lasts[r.place] - coalesce(p_lasts[r.place - 1], 0)]), false
    FROM generate_subscripts(p_sagas, 1) AS r(place)
    WHERE r.place <> ALL (v_refused) AND r.place <> ALL (v_met) AND r.place <> ALL (v_asked);
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
