-- Ends locks of steps whose commands are gone: a version of the program without the lock recorded the result. They are looked for
-- again when their entities are locked, since a compensation may have asked for the same lock meanwhile.
CREATE FUNCTION {schema}.end_abandoned_locks(p_limit bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_numbers bigint[];
    v_tenants text[];
    v_sagas bigint[];
    v_names text[];
BEGIN
    v_numbers := ARRAY(
        SELECT r.number FROM {schema}.lock_requests r
        WHERE NOT EXISTS (SELECT FROM {schema}.work w WHERE w.id = r.work)
          AND EXISTS (SELECT FROM {schema}.locked_entities e WHERE e.number = r.number AND e.kind LIKE 'step:%')
        ORDER BY r.number LIMIT p_limit);
    IF cardinality(v_numbers) = 0 THEN
        RETURN 0;
    END IF;
    PERFORM pg_advisory_xact_lock(l.key) FROM (
        SELECT DISTINCT {schema}.entity_lock(e.tenant, e.kind, e.id) AS key
        FROM {schema}.locked_entities e WHERE e.number = ANY (v_numbers) ORDER BY 1 OFFSET 0) l;
    SELECT array_agg(r.tenant), array_agg(r.saga), array_agg(r.name) INTO v_tenants, v_sagas, v_names
    FROM {schema}.lock_requests r
    WHERE r.number = ANY (v_numbers) AND NOT EXISTS (SELECT FROM {schema}.work w WHERE w.id = r.work);
    IF v_sagas IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM {schema}.unlock(v_tenants, NULL::text[], v_sagas, v_names);
    RETURN cardinality(v_sagas);
END
$$;
