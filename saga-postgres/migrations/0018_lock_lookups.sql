-- Locks that a transaction takes, with fewer look-ups.

-- Takes what is free. The entities are those of the first request, then those of the second, and so on: `p_places` has the
-- request of each entity, `p_tenants` its tenant, and `p_lasts` the last entity of each request. A request that is missing in the
-- answer was not taken. The saga of a request is null if this transaction starts it: then no request of it is stored.
CREATE OR REPLACE FUNCTION {schema}.take_locks(
    p_sagas bigint[], p_names text[], p_lasts int[], p_places int[], p_tenants text[], p_kinds text[], p_ids text[]
) RETURNS TABLE (place int, tokens bigint[], stored boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_refused int[];
    v_asked int[] := '{}';
BEGIN
    -- Mostly no row names one of the entities. They are looked up once, when they are locked: a later statement sees what was
    -- committed until then.
    BEGIN
        v_refused := ARRAY(
            SELECT e.place FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
            WHERE NOT pg_try_advisory_xact_lock({schema}.entity_lock(e.tenant, e.kind, e.id)));
        IF EXISTS (
            SELECT FROM unnest(p_tenants, p_kinds, p_ids) AS e(tenant, kind, id)
            WHERE EXISTS (
                SELECT FROM {schema}.locked_entities q
                WHERE q.tenant = e.tenant AND q.kind = e.kind AND q.id = e.id OFFSET 0))
        THEN
            RAISE SQLSTATE 'SG001';
        END IF;
    EXCEPTION WHEN SQLSTATE 'SG001' THEN
        -- The entities are free again. One that a row names is left alone: the transaction that ends its lock may wait for it.
        v_refused := ARRAY(
            SELECT e.place FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
            WHERE CASE
                WHEN EXISTS (
                    SELECT FROM {schema}.locked_entities q
                    WHERE q.tenant = e.tenant AND q.kind = e.kind AND q.id = e.id OFFSET 0) THEN true
                ELSE NOT pg_try_advisory_xact_lock({schema}.entity_lock(e.tenant, e.kind, e.id)) END);
        v_refused := v_refused || ARRAY(
            SELECT e.place FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
            WHERE EXISTS (
                SELECT FROM {schema}.locked_entities q
                WHERE q.tenant = e.tenant AND q.kind = e.kind AND q.id = e.id OFFSET 0));
    END;
    IF cardinality(array_remove(p_sagas, NULL)) > 0 THEN
        v_asked := ARRAY(
            SELECT r.place::int FROM unnest(p_sagas, p_names) WITH ORDINALITY AS r(saga, name, place)
            WHERE EXISTS (
                SELECT FROM {schema}.lock_requests q WHERE q.saga = r.saga AND q.name = r.name OFFSET 0));
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
