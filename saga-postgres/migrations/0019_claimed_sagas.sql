-- The sagas of work rows, read by plans that are kept: a claim plans nothing, and uses the indexes of tables that were empty.

CREATE FUNCTION {schema}.sagas_by_id(p_ids bigint[]) RETURNS TABLE (
    id bigint, tenant text, key text, name text, definition_version bigint, digest bytea, status text, version bigint,
    state bytea, input bytea, input_hash bytea, started_at timestamptz, advanced_at timestamptz, ended_at timestamptz)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
    SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT s.id, s.tenant, s.key, d.name, d.version, s.digest, p.status, p.version, p.state, s.input, s.input_hash,
        s.started_at, p.advanced_at, p.ended_at
    FROM unnest(p_ids) AS i(id)
    JOIN {schema}.sagas s ON s.id = i.id
    JOIN {schema}.progress p ON p.id = s.id
    JOIN {schema}.definitions d ON d.id = s.definition;
END
$$;

-- The records of sagas but for those of items and of repeated undos.
CREATE FUNCTION {schema}.records_of_sagas(p_ids bigint[]) RETURNS TABLE (
    step text, outcome text, output bytea, error bytea, input bytea, record_position bigint, attempts bigint,
    recorded_at timestamptz, took_micros bigint, saga bigint)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
    SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT r.step, r.outcome, r.output, r.error, r.input, r.position, r.attempts, r.recorded_at, r.took_micros, s.id
    FROM unnest(p_ids) AS i(id)
    JOIN {schema}.sagas s ON s.id = i.id
    JOIN {schema}.records r ON r.tenant = s.tenant AND r.key = s.key
    WHERE r.step NOT LIKE '%#%' OR r.step LIKE '%#0'
    ORDER BY r.position, r.step;
END
$$;
