-- As `grant_claims`, which processes of the version before still call; the claims may be of several tenants. One element of
-- `p_tenants` is the tenant of all of them.
CREATE FUNCTION {schema}.grant_claims_of_tenants(
    p_ids bigint[], p_epochs bigint[], p_sagas bigint[], p_tenants text[], p_keys text[], p_steps text[],
    p_statuses text[],
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
            SELECT c.place::integer FROM unnest(p_sagas, p_tenants, p_keys, p_steps, p_statuses) WITH ORDINALITY
                c (saga, tenant, key, step, status, place)
            WHERE c.place = ANY (v_held)
              AND EXISTS (SELECT 1 FROM {schema}.progress p WHERE p.id = c.saga AND p.status = c.status)
              -- Not a join: on a table that looks empty it would read all records of the tenant.
              AND NOT EXISTS (SELECT 1 FROM {schema}.records r
                  WHERE r.tenant = coalesce(c.tenant, p_tenants[1]) AND r.key = c.key AND r.step = c.step OFFSET 0));
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
