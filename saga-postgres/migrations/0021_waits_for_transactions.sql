-- Locks that a transaction waits for as long as for rows.

-- Takes the locks that no stored request keeps from it. The entities are those of the first request, then those of the second, and so
-- on: `p_places` has the request of each entity, `p_tenants` its tenant, and `p_lasts` the last entity of each request. A request that
-- is missing in the answer was not taken. The saga of a request is null if this transaction starts it: then no request of it is
-- stored. An entity that another transaction has is waited for, `p_wait` milliseconds for all together; `waited` says for which requests.
CREATE OR REPLACE FUNCTION {schema}.acquire_locks(
    p_sagas bigint[], p_names text[], p_lasts int[], p_places int[], p_tenants text[], p_kinds text[], p_ids text[], p_wait int
) RETURNS TABLE (place int, tokens bigint[], stored boolean, waited boolean)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_refused int[] := '{}';
    v_asked int[] := '{}';
    v_waited int[] := '{}';
    v_begins_again boolean := false;
    v_lock bigint;
    v_token bigint;
    v_timeout text := current_setting('lock_timeout');
    v_began timestamptz := clock_timestamp();
BEGIN
    -- Rows name the entities of a request that is stored, so these are not taken here.
    IF cardinality(array_remove(p_sagas, NULL)) > 0 THEN
        v_asked := ARRAY(
            SELECT r.place::int FROM unnest(p_sagas, p_names) WITH ORDINALITY AS r(saga, name, place)
            WHERE EXISTS (
                SELECT FROM {schema}.lock_requests q WHERE q.saga = r.saga AND q.name = r.name OFFSET 0));
    END IF;
    IF cardinality(v_asked) < cardinality(p_sagas) THEN
        -- Mostly no row names one of the entities, and no other transaction has one. They are looked up once, when they are locked: a
        -- later statement sees what was committed until then. An error of the block lets go of the entities.
        LOOP
            BEGIN
                IF cardinality(v_waited) = 0 THEN
                    v_refused := ARRAY(
                        SELECT e.place FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
                        WHERE e.place <> ALL (v_asked)
                          AND NOT pg_try_advisory_xact_lock({schema}.entity_lock(e.tenant, e.kind, e.id)));
                ELSE
                    -- Each such transaction takes its entities in one order, so that none waits for the other.
                    FOR v_lock IN
                        SELECT DISTINCT {schema}.entity_lock(e.tenant, e.kind, e.id) AS lock
                        FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
                        WHERE e.place <> ALL (v_asked) ORDER BY lock
                    LOOP
                        PERFORM set_config('lock_timeout', ceil(greatest(
                            1, p_wait - 1000 * extract(epoch FROM clock_timestamp() - v_began)))::text, true);
                        PERFORM pg_advisory_xact_lock(v_lock);
                    END LOOP;
                    PERFORM set_config('lock_timeout', v_timeout, true);
                    v_refused := '{}';
                END IF;
                IF EXISTS (
                    SELECT FROM unnest(p_places, p_tenants, p_kinds, p_ids) AS e(place, tenant, kind, id)
                    WHERE e.place <> ALL (v_asked) AND EXISTS (
                        SELECT FROM {schema}.locked_entities q
                        WHERE q.tenant = e.tenant AND q.kind = e.kind AND q.id = e.id OFFSET 0))
                THEN
                    RAISE SQLSTATE 'SG001';
                END IF;
                IF cardinality(v_refused) > 0 THEN
                    RAISE SQLSTATE 'SG002';
                END IF;
                EXIT;
            EXCEPTION
                WHEN SQLSTATE 'SG001' OR lock_not_available THEN
                    v_begins_again := true;
                    EXIT;
                WHEN SQLSTATE 'SG002' THEN
                    v_waited := v_refused;
            END;
        END LOOP;
        IF v_begins_again THEN
            -- One that a row names is left alone: the transaction that ends its lock may wait for it. One that another transaction has
            -- for long is not waited for again.
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
        END IF;
    END IF;
    -- One token for all, which is drawn when the entities are locked: it is higher than each that was granted before.
    v_token := nextval('{schema}.lock_numbers');
    RETURN QUERY
    SELECT r.place, array_fill(v_token, ARRAY[p_lasts[r.place] - coalesce(p_lasts[r.place - 1], 0)]), false,
        r.place = ANY (v_waited)
    FROM generate_subscripts(p_sagas, 1) AS r(place)
    WHERE r.place <> ALL (v_refused) AND r.place <> ALL (v_asked);
    IF cardinality(v_asked) > 0 THEN
        RETURN QUERY
        SELECT r.place, ARRAY(
            SELECT e.token FROM {schema}.locked_entities e WHERE e.number = q.number ORDER BY e.kind, e.id), true, false
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
