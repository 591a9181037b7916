-- The locks of steps in the transactions of the steps.
--
-- A step transaction has an entity by the advisory lock of the entity, and writes no row: the lock ends with the transaction,
-- whatever becomes of it. A call that asks for the entity waits for that advisory lock before it looks at the tables, so it
-- cannot be granted what an open transaction has. The transaction itself never waits: it takes the advisory lock only if
-- nobody has it or waits for it, and uses it only if no row names the entity. A request that waits has a row, so nobody
-- overtakes one.

-- Takes what is free. The entities are those of the first request, then those of the second, and so on: `p_places` has the
-- request of each entity, `p_tenants` its tenant, and `p_lasts` the last entity of each request. A request that is missing in the answer was not taken.
CREATE FUNCTION {schema}.take_locks(
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
        WHERE NOT pg_try_advisory_xact_lock({schema}.entity_lock(e.tenant, e.kind, e.id)));
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
        WHERE q.state = 'granted' AND r.place <> ALL (v_refused)
          AND ARRAY(
            SELECT e.kind FROM {schema}.locked_entities e WHERE e.number = q.number ORDER BY e.kind, e.id)
            = p_kinds[coalesce(p_lasts[r.place - 1], 0) + 1 : p_lasts[r.place]]
          AND ARRAY(
            SELECT e.id FROM {schema}.locked_entities e WHERE e.number = q.number ORDER BY e.kind, e.id)
            = p_ids[coalesce(p_lasts[r.place - 1], 0) + 1 : p_lasts[r.place]];
    END IF;
END
$$;
