-- The semantic locks that sagas have, and the requests for some. The number is the place in the queue of each entity. A
-- request that gave up names the owner that was in front of it.
CREATE TABLE {schema}.lock_requests (
    number      bigint PRIMARY KEY,
    tenant      text COLLATE "C" NOT NULL,
    owner       text COLLATE "C" NOT NULL,
    saga        bigint NOT NULL,
    key         text COLLATE "C" NOT NULL,
    name        text COLLATE "C" NOT NULL,
    work        bigint NOT NULL,
    state       text COLLATE "C" NOT NULL,
    other       text COLLATE "C",
    asked_at    timestamptz NOT NULL,
    waits_until timestamptz NOT NULL,
    granted_at  timestamptz
);

CREATE UNIQUE INDEX lock_requests_name ON {schema}.lock_requests (saga, name);
CREATE INDEX lock_requests_owner ON {schema}.lock_requests (tenant, owner);

-- The entities of each lock and of each request that waits. A granted one has a token.
CREATE TABLE {schema}.locked_entities (
    tenant text COLLATE "C" NOT NULL,
    kind   text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    owner  text COLLATE "C" NOT NULL,
    token  bigint,
    PRIMARY KEY (tenant, kind, id, number)
);

CREATE INDEX locked_entities_number ON {schema}.locked_entities (number);
CREATE INDEX locked_entities_owner ON {schema}.locked_entities (tenant, owner);

-- Gives numbers and tokens. Both are taken under the lock of the entity, so they grow for each entity.
CREATE SEQUENCE {schema}.lock_numbers;

-- For ordinary reads: which entity is locked by which saga, and which sagas wait for it.
CREATE VIEW {schema}.semantic_locks AS
    SELECT e.tenant, e.kind, e.id, r.key AS saga_key, r.name AS lock, e.token IS NOT NULL AS granted, e.token,
        e.number, coalesce(r.granted_at, r.asked_at) AS since
    FROM {schema}.locked_entities e JOIN {schema}.lock_requests r ON r.number = e.number;

-- The advisory lock of an entity, or, without one, of all waits of a tenant. Two entities with one lock wait for each
-- other's commits, and nothing worse.
CREATE FUNCTION {schema}.entity_lock(p_tenant text, p_kind text, p_id text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT hashtextextended(concat_ws(chr(31), '{schema}', 'entity', p_tenant, p_kind, p_id), 0)
$$;

-- Locks entities for this transaction, in one order. Where others have one of them or wait for it, the transaction is also
-- alone among those that let sagas wait, so that no two of them close a ring at once.
CREATE FUNCTION {schema}.lock_entities(p_tenants text[], p_kinds text[], p_ids text[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(l.key) FROM (
        SELECT DISTINCT {schema}.entity_lock(e.tenant, e.kind, e.id) AS key
        FROM unnest(p_tenants, p_kinds, p_ids) AS e(tenant, kind, id) ORDER BY 1 OFFSET 0) l;
    -- A second statement: it sees what was committed until the entities were locked.
    PERFORM pg_advisory_xact_lock({schema}.entity_lock(l.tenant, NULL, NULL)) FROM (
        SELECT e.tenant FROM unnest(p_tenants, p_kinds, p_ids) AS e(tenant, kind, id)
        GROUP BY e.tenant
        HAVING count(*) > count(DISTINCT (e.kind, e.id)) OR bool_or(EXISTS (
            SELECT FROM {schema}.locked_entities q
            WHERE q.tenant = e.tenant AND q.kind = e.kind AND q.id = e.id))
        ORDER BY 1 OFFSET 0) l;
END
$$;

-- The owners that a request waits for.
CREATE FUNCTION {schema}.lock_blockers(p_number bigint) RETURNS SETOF text
LANGUAGE sql SET enable_seqscan = off AS $$
    SELECT DISTINCT o.owner
    FROM {schema}.locked_entities m
    JOIN {schema}.locked_entities o ON o.tenant = m.tenant AND o.kind = m.kind AND o.id = m.id AND o.owner <> m.owner
    WHERE m.number = p_number AND m.token IS NULL AND (o.token IS NOT NULL OR o.number < m.number)
      AND NOT EXISTS (
        SELECT FROM {schema}.locked_entities h
        WHERE h.tenant = m.tenant AND h.kind = m.kind AND h.id = m.id AND h.owner = m.owner AND h.token IS NOT NULL)
    ORDER BY 1
$$;

-- The owners that an owner waits for: those that have an entity, and, if they count, the last one in front of it in each
-- queue. Those before are reached over that one.
CREATE FUNCTION {schema}.lock_waits(p_tenant text, p_owner text, p_queued boolean) RETURNS SETOF text
LANGUAGE sql SET enable_seqscan = off AS $$
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
               AND h.token IS NOT NULL)
         ORDER BY q.number DESC LIMIT 1)
    ) x
    WHERE m.tenant = p_tenant AND m.owner = p_owner AND m.token IS NULL AND NOT EXISTS (
        SELECT FROM {schema}.locked_entities h
        WHERE h.tenant = m.tenant AND h.kind = m.kind AND h.id = m.id AND h.owner = m.owner AND h.token IS NOT NULL)
$$;

-- Grants a request. An owner that has an entity already keeps its token.
CREATE FUNCTION {schema}.grant_lock(p_number bigint, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    UPDATE {schema}.locked_entities m SET token = coalesce(
        (SELECT max(h.token) FROM {schema}.locked_entities h
         WHERE h.tenant = m.tenant AND h.kind = m.kind AND h.id = m.id AND h.owner = m.owner),
        nextval('{schema}.lock_numbers'))
    WHERE m.number = p_number;
    UPDATE {schema}.lock_requests SET state = 'granted', granted_at = p_now WHERE number = p_number;
END
$$;

-- Grants the requests on these entities that are not blocked any more, and makes their rows due.
CREATE FUNCTION {schema}.hand_over(p_tenant text, p_kinds text[], p_ids text[], p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_number bigint;
BEGIN
    LOOP
        SELECT w.number INTO v_number
        FROM unnest(p_kinds, p_ids) AS e(kind, id)
        JOIN {schema}.locked_entities w
          ON w.tenant = p_tenant AND w.kind = e.kind AND w.id = e.id AND w.token IS NULL
        WHERE (NOT EXISTS (
                SELECT FROM {schema}.locked_entities q
                WHERE q.tenant = w.tenant AND q.kind = w.kind AND q.id = w.id AND q.owner <> w.owner
                  AND (q.token IS NOT NULL OR q.number < w.number))
            OR EXISTS (
                SELECT FROM {schema}.locked_entities h
                WHERE h.tenant = w.tenant AND h.kind = w.kind AND h.id = w.id AND h.owner = w.owner
                  AND h.token IS NOT NULL))
          AND NOT EXISTS (SELECT FROM {schema}.lock_blockers(w.number))
        ORDER BY w.number LIMIT 1;
        EXIT WHEN v_number IS NULL;
        PERFORM {schema}.grant_lock(v_number, p_now);
        UPDATE {schema}.work w SET due_at = p_now
        FROM {schema}.lock_requests r WHERE r.number = v_number AND w.id = r.work;
    END LOOP;
END
$$;

-- Ends each ring of owners that wait for each other and that this owner is part of: the youngest stops waiting.
CREATE FUNCTION {schema}.end_deadlocks(p_tenant text, p_owner text, p_now timestamptz) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_queued boolean;
    v_youngest text;
    v_other text;
    v_numbers bigint[];
    v_kinds text[];
    v_ids text[];
BEGIN
    LOOP
        -- No other owner waits for one that has nothing else and is the last everywhere.
        IF (SELECT count(*) FROM {schema}.lock_requests r
            WHERE r.tenant = p_tenant AND r.owner = p_owner AND r.state IN ('waiting', 'granted')) < 2
        THEN
            RETURN;
        END IF;
        -- A ring of owners that have what the others wait for is ended first: nothing else ends it. A ring that only the
        -- order of a queue closes may have ended with that.
        FOREACH v_queued IN ARRAY ARRAY[false, true] LOOP
            v_youngest := NULL;
            WITH RECURSIVE ahead(waits, holder) AS (
                SELECT p_owner, h.owner FROM {schema}.lock_waits(p_tenant, p_owner, v_queued) AS h(owner)
                UNION
                SELECT a.holder, h.owner FROM ahead a
                CROSS JOIN LATERAL {schema}.lock_waits(p_tenant, a.holder, v_queued) AS h(owner)
            ), ring(owner) AS (
                SELECT p_owner WHERE EXISTS (SELECT FROM ahead a WHERE a.holder = p_owner)
                UNION
                SELECT a.waits FROM ring r JOIN ahead a ON a.holder = r.owner
            )
            SELECT a.waits, min(a.holder) INTO v_youngest, v_other
            FROM ahead a JOIN ring w ON w.owner = a.waits JOIN ring h ON h.owner = a.holder
            GROUP BY a.waits
            ORDER BY (SELECT min(r.number) FROM {schema}.lock_requests r
                WHERE r.tenant = p_tenant AND r.owner = a.waits) DESC
            LIMIT 1;
            EXIT WHEN v_youngest IS NOT NULL;
        END LOOP;
        IF v_youngest IS NULL THEN
            RETURN;
        END IF;
        WITH given_up AS (
            UPDATE {schema}.lock_requests r SET state = 'deadlock', other = v_other
            WHERE r.tenant = p_tenant AND r.owner = v_youngest AND r.state = 'waiting'
            RETURNING r.number, r.work
        ), due AS (
            UPDATE {schema}.work w SET due_at = p_now FROM given_up g WHERE w.id = g.work
        )
        SELECT array_agg(g.number) INTO v_numbers FROM given_up g;
        WITH gone AS (
            DELETE FROM {schema}.locked_entities e WHERE e.number = ANY (v_numbers) RETURNING e.kind, e.id
        )
        SELECT array_agg(g.kind), array_agg(g.id) INTO v_kinds, v_ids FROM (SELECT DISTINCT kind, id FROM gone) g;
        PERFORM {schema}.hand_over(p_tenant, v_kinds, v_ids, p_now);
    END LOOP;
END
$$;

-- Asks for one lock, when its entities are locked for this transaction.
CREATE FUNCTION {schema}.ask_for_lock(
    p_tenant text, p_owner text, p_saga bigint, p_key text, p_name text, p_kinds text[], p_ids text[],
    p_work bigint, p_epoch bigint, p_within bigint,
    OUT answer text, OUT front text, OUT left_micros bigint, OUT tokens bigint[]
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
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
        v_number := nextval('{schema}.lock_numbers');
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

-- Ends locks and requests, those of an owner or one of a saga, and grants what is not blocked any more.
CREATE FUNCTION {schema}.unlock(p_tenants text[], p_owners text[], p_sagas bigint[], p_names text[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_numbers bigint[];
    v_tenants text[];
    v_kinds text[];
    v_ids text[];
    v_tenant text;
BEGIN
    FOR attempt IN 1..2 LOOP
        SELECT array_agg(r.number) INTO v_numbers
        FROM unnest(p_tenants, p_owners, p_sagas, p_names) AS u(tenant, owner, saga, name)
        JOIN {schema}.lock_requests r
          ON (u.owner IS NOT NULL AND r.tenant = u.tenant AND r.owner = u.owner)
          OR (u.saga IS NOT NULL AND r.saga = u.saga AND r.name = u.name);
        IF v_numbers IS NULL THEN
            RETURN;
        END IF;
        SELECT array_agg(e.tenant), array_agg(e.kind), array_agg(e.id) INTO v_tenants, v_kinds, v_ids
        FROM (SELECT DISTINCT q.tenant, q.kind, q.id FROM {schema}.locked_entities q
              WHERE q.number = ANY (v_numbers)) e;
        EXIT WHEN attempt = 2;
        -- Another transaction may have granted one of them meanwhile, so they are read again under the locks.
        PERFORM {schema}.lock_entities(v_tenants, v_kinds, v_ids);
    END LOOP;
    DELETE FROM {schema}.locked_entities WHERE number = ANY (v_numbers);
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
