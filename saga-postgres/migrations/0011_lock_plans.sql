-- Semantic locks without planning at each call, and without a wait for other sagas where nobody waits for the lock.
--
-- All of these functions keep their plans: a session plans a statement once, for any values. Most locks meet no other saga.
-- They are granted and ended by a few statements for all requests of a call, and without the lock of the tenant's waits.
--
-- Why a lock may end without that lock, if no other request names its entities: a request for an entity is inserted under
-- the advisory lock of the entity, and the commit that ends the lock holds that one. So a saga that asks for the entity at
-- the same moment is either committed before, and then `unlock` sees its row and hands over; or it waits for this commit,
-- and then finds the entity free. It never waits for a lock that is gone. The lock of the tenant's waits orders commits
-- that change one wait or one ring: two that end the two locks that one request waits for, or two requests that close a
-- ring together. A lock that nobody waits for is no part of either: no arrow of the graph of waits leads to its owner
-- because of it, and none begins at it. A request that waits has another row on one of its entities at least, so its end
-- takes the lock of the tenant's waits, as before.

-- Rows come and go, so both tables are vacuumed as `work` is.
ALTER TABLE {schema}.lock_requests SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {schema}.locked_entities SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 2000, autovacuum_vacuum_cost_delay = 0);

-- The same values as before. `concat_ws` is only stable, so the server can put no immutable function with it in the place of
-- its call, and called this one for each entity.
CREATE OR REPLACE FUNCTION {schema}.entity_lock(p_tenant text, p_kind text, p_id text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(concat_ws(chr(31), '{schema}', 'entity', p_tenant, p_kind, p_id), 0)
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
        SELECT q.owner FROM {schema}.locked_entities q
        WHERE q.tenant = m.tenant AND q.kind = m.kind AND q.id = m.id AND q.owner <> m.owner
          AND (q.token IS NOT NULL OR q.number < m.number) OFFSET 0) o
    WHERE m.number = p_number AND m.token IS NULL AND NOT EXISTS (
        SELECT FROM {schema}.locked_entities h
        WHERE h.tenant = m.tenant AND h.kind = m.kind AND h.id = m.id AND h.owner = m.owner AND h.token IS NOT NULL
        OFFSET 0)
    ORDER BY 1;
END
$$;

-- The owners that an owner waits for: those that have an entity, and, if they count, the last one in front of it in each
-- queue. Those before are reached over that one.
CREATE OR REPLACE FUNCTION {schema}.lock_waits(p_tenant text, p_owner text, p_queued boolean) RETURNS SETOF text
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY
    SELECT x.owner
    FROM {schema}.locked_entities m
    CROSS JOIN LATERAL (
        (SELECT h.owner FROM {schema}.locked_entities h
         WHERE h.tenant = m.tenant AND h.kind = m.kind AND h.id = m.id AND h.owner <> m.owner AND h.token IS NOT NULL)
        UNION
        (SELECT q.owner FROM {schema}.locked_entities q
         WHERE p_queued AND q.tenant = m.tenant AND q.kind = m.kind AND q.id = m.id AND q.owner <> m.owner
           AND q.token IS NULL AND q.number < m.number AND NOT EXISTS (
             SELECT FROM {schema}.locked_entities h
             WHERE h.tenant = q.tenant AND h.kind = q.kind AND h.id = q.id AND h.owner = q.owner
               AND h.token IS NOT NULL OFFSET 0)
         ORDER BY q.number DESC LIMIT 1)
    ) x
    WHERE m.tenant = p_tenant AND m.owner = p_owner AND m.token IS NULL AND NOT EXISTS (
        SELECT FROM {schema}.locked_entities h
        WHERE h.tenant = m.tenant AND h.kind = m.kind AND h.id = m.id AND h.owner = m.owner AND h.token IS NOT NULL
        OFFSET 0);
END
$$;

-- Grants the requests on these entities that are not blocked any more, and makes their rows due.
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
            SELECT * FROM {schema}.locked_entities q
            WHERE q.tenant = p_tenant AND q.kind = e.kind AND q.id = e.id AND q.token IS NULL OFFSET 0) w
        WHERE (NOT EXISTS (
                SELECT FROM {schema}.locked_entities q
                WHERE q.tenant = w.tenant AND q.kind = w.kind AND q.id = w.id AND q.owner <> w.owner
                  AND (q.token IS NOT NULL OR q.number < w.number) OFFSET 0)
            OR EXISTS (
                SELECT FROM {schema}.locked_entities h
                WHERE h.tenant = w.tenant AND h.kind = w.kind AND h.id = w.id AND h.owner = w.owner
                  AND h.token IS NOT NULL OFFSET 0))
          AND NOT EXISTS (SELECT FROM {schema}.lock_blockers(w.number))
        ORDER BY w.number LIMIT 1;
        EXIT WHEN v_number IS NULL;
        PERFORM {schema}.grant_lock(v_number, p_now);
        UPDATE {schema}.work SET due_at = p_now
        WHERE id = (SELECT r.work FROM {schema}.lock_requests r WHERE r.number = v_number);
    END LOOP;
END
$$;

ALTER FUNCTION {schema}.lock_entities(text[], text[], text[]) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION {schema}.grant_lock(bigint, timestamptz) SET plan_cache_mode = force_generic_plan;
ALTER FUNCTION {schema}.end_deadlocks(text, text, timestamptz) SET plan_cache_mode = force_generic_plan;

-- Asks for one lock, when its entities are locked for this transaction. The request has this number if it is new.
CREATE FUNCTION {schema}.ask_for_lock(
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
        IF EXISTS (SELECT FROM {schema}.lock_blockers(v_number)) THEN
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

-- Processes of the version before ask for each lock by this call.
CREATE OR REPLACE FUNCTION {schema}.ask_for_lock(
    p_tenant text, p_owner text, p_saga bigint, p_key text, p_name text, p_kinds text[], p_ids text[],
    p_work bigint, p_epoch bigint, p_within bigint,
    OUT answer text, OUT front text, OUT left_micros bigint, OUT tokens bigint[]
) LANGUAGE sql AS $$
    SELECT * FROM {schema}.ask_for_lock(p_tenant, p_owner, p_saga, p_key, p_name, p_kinds, p_ids, p_work, p_epoch,
        p_within, nextval('{schema}.lock_numbers'))
$$;

-- Asks for locks. The entities are those of the first request, then those of the second, and so on: `p_places` has the
-- request of each entity, and `p_lasts` the last entity of each request. The rows have the places of their requests.
CREATE FUNCTION {schema}.ask_for_locks(
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
    PERFORM pg_advisory_xact_lock(l.key) FROM (
        SELECT DISTINCT {schema}.entity_lock(p_tenants[e.place], e.kind, e.id) AS key
        FROM unnest(p_places, p_kinds, p_ids) AS e(place, kind, id) ORDER BY 1 OFFSET 0) l;
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

-- Ends locks and requests, those of an owner or one of a saga, and grants what is not blocked any more.
CREATE OR REPLACE FUNCTION {schema}.unlock(p_tenants text[], p_owners text[], p_sagas bigint[], p_names text[])
RETURNS void
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_numbers bigint[];
    v_met bigint[];
    v_tenants text[];
    v_kinds text[];
    v_ids text[];
    v_tenant text;
BEGIN
    v_numbers := ARRAY(
        SELECT r.number FROM unnest(p_tenants, p_owners) AS u(tenant, owner)
        CROSS JOIN LATERAL (
            SELECT q.number FROM {schema}.lock_requests q
            WHERE q.tenant = u.tenant AND q.owner = u.owner OFFSET 0) r
        UNION
        SELECT r.number FROM unnest(p_sagas, p_names) AS u(saga, name)
        CROSS JOIN LATERAL (
            SELECT q.number FROM {schema}.lock_requests q WHERE q.saga = u.saga AND q.name = u.name OFFSET 0) r);
    IF cardinality(v_numbers) = 0 THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(l.key) FROM (
        SELECT DISTINCT {schema}.entity_lock(e.tenant, e.kind, e.id) AS key
        FROM {schema}.locked_entities e WHERE e.number = ANY (v_numbers) ORDER BY 1 OFFSET 0) l;
    -- Later statements see what was committed until the entities were locked.
    v_met := ARRAY(
        SELECT DISTINCT e.number FROM {schema}.locked_entities e
        WHERE e.number = ANY (v_numbers) AND EXISTS (
            SELECT FROM {schema}.locked_entities q
            WHERE q.tenant = e.tenant AND q.kind = e.kind AND q.id = e.id AND q.number <> e.number
            OFFSET 0));
    IF cardinality(v_met) > 0 THEN
        PERFORM pg_advisory_xact_lock(l.key) FROM (
            SELECT DISTINCT {schema}.entity_lock(r.tenant, NULL, NULL) AS key
            FROM {schema}.lock_requests r WHERE r.number = ANY (v_met) ORDER BY 1 OFFSET 0) l;
        -- Another transaction may have ended one of these waits meanwhile, so they are read again.
        SELECT array_agg(e.tenant), array_agg(e.kind), array_agg(e.id) INTO v_tenants, v_kinds, v_ids
        FROM (SELECT DISTINCT q.tenant, q.kind, q.id FROM {schema}.locked_entities q
              WHERE q.number = ANY (v_met) ORDER BY q.tenant, q.kind, q.id) e;
    END IF;
    WITH freed AS (DELETE FROM {schema}.locked_entities WHERE number = ANY (v_numbers))
    DELETE FROM {schema}.lock_requests WHERE number = ANY (v_numbers);
    FOR v_tenant IN SELECT DISTINCT t FROM unnest(v_tenants) AS t LOOP
        PERFORM {schema}.hand_over(v_tenant,
            (SELECT array_agg(e.kind ORDER BY e.kind, e.id)
             FROM unnest(v_tenants, v_kinds, v_ids) AS e(tenant, kind, id) WHERE e.tenant = v_tenant),
            (SELECT array_agg(e.id ORDER BY e.kind, e.id)
             FROM unnest(v_tenants, v_kinds, v_ids) AS e(tenant, kind, id) WHERE e.tenant = v_tenant),
            clock_timestamp());
    END LOOP;
END
$$;
