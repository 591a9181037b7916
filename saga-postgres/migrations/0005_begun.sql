-- The epoch under which nobody has begun the row yet, nor any owner that vanished before. Under another epoch it says
-- nothing: so a process of the version before, which does not know it, makes no row look as if nobody had begun it.
ALTER TABLE {schema}.work ADD COLUMN waiting bigint;

-- As `claim_reported_work`, which processes of the version before still call; it says whether an owner that vanished may
-- have begun a row, and takes nothing over where it is not to.
CREATE FUNCTION {schema}.claim_waiting_work(
    p_definitions integer[], p_owner bigint, p_ttl bigint, p_limit bigint, p_takes_over boolean
) RETURNS TABLE (
    id bigint, epoch bigint, kind text, saga bigint, step text, attempts bigint, maybe boolean, suspect boolean,
    retrying_micros bigint, payload bytea, late bytea, next_due_micros bigint,
    report bigint, reported_at timestamptz, progress bytea, began boolean)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
    SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := clock_timestamp();
    v_owners bigint[];
    v_cutoffs timestamptz[];
    v_taken bigint[] := '{}';
    v_found bigint[];
    v_recorded bigint;
    v_next timestamptz;
BEGIN
    -- Who holds a lease, and until when a lease of theirs counts as ended: of the dead each one. A dead member takes
    -- nothing over.
    WITH RECURSIVE owners (owner) AS (
        (SELECT min(w.owner) FROM {schema}.work w WHERE w.owner IS NOT NULL)
        UNION ALL
        SELECT (SELECT min(w.owner) FROM {schema}.work w WHERE w.owner > o.owner)
        FROM owners o WHERE o.owner IS NOT NULL
    )
    SELECT array_agg(o.owner), array_agg(CASE WHEN EXISTS (
            SELECT 1 FROM {schema}.members m WHERE m.id = o.owner AND m.alive_until > v_now)
        THEN v_now ELSE 'infinity' END)
    INTO v_owners, v_cutoffs FROM owners o WHERE o.owner IS NOT NULL AND p_takes_over
        AND EXISTS (SELECT 1 FROM {schema}.members m WHERE m.id = p_owner AND m.alive_until > v_now);

    LOOP
        v_found := ARRAY(
            SELECT c.id FROM (
                SELECT w.id, w.due_at FROM unnest(p_definitions) d (id) CROSS JOIN LATERAL (
                    SELECT w.id, w.due_at FROM {schema}.work w
                    WHERE w.owner IS NULL AND w.definition = d.id AND w.due_at <= v_now
                    ORDER BY w.due_at, w.id LIMIT p_limit - cardinality(v_taken) FOR UPDATE SKIP LOCKED) w
                UNION ALL
                SELECT w.id, w.due_at FROM unnest(v_owners, v_cutoffs) o (owner, cutoff) CROSS JOIN LATERAL (
                    SELECT w.id, w.due_at FROM {schema}.work w
                    WHERE w.owner = o.owner AND w.leased_until <= o.cutoff AND w.due_at <= v_now
                      AND w.definition = ANY (p_definitions) AND w.id <> ALL (v_taken)
                    ORDER BY w.due_at, w.id LIMIT p_limit - cardinality(v_taken) FOR UPDATE SKIP LOCKED) w
            ) c ORDER BY c.due_at, c.id LIMIT p_limit - cardinality(v_taken));
        DELETE FROM {schema}.work w WHERE w.id = ANY (v_found) AND EXISTS (
            SELECT 1 FROM {schema}.records r WHERE r.tenant = w.tenant AND r.key = w.key AND r.step = w.step OFFSET 0);
        GET DIAGNOSTICS v_recorded = ROW_COUNT;
        IF v_recorded > 0 THEN
            v_found := ARRAY(SELECT w.id FROM {schema}.work w WHERE w.id = ANY (v_found));
        END IF;
        -- Only a lease that nobody gave back is still written on a free row: its owner vanished.
        RETURN QUERY WITH taken AS (
            UPDATE {schema}.work w SET epoch = w.epoch + 1, suspect = w.suspect OR w.owner IS NOT NULL, owner = p_owner,
                waiting = CASE WHEN w.waiting = w.epoch OR (w.owner IS NULL AND NOT w.suspect) THEN w.epoch + 1 END,
                leased_until = clock_timestamp() + p_ttl * interval '1 microsecond'
            WHERE w.id = ANY (v_found)
            RETURNING w.*)
        SELECT t.id, t.epoch, t.kind, t.saga, t.step, t.attempts, t.maybe, t.suspect,
            (extract(epoch FROM v_now - t.retrying_since) * 1000000)::bigint, t.payload, t.late, NULL::bigint,
            t.report, t.reported_at, t.progress, t.waiting IS NULL
        FROM taken t ORDER BY t.due_at, t.id;
        v_taken := v_taken || v_found;
        EXIT WHEN v_recorded = 0 OR cardinality(v_taken) >= p_limit;
    END LOOP;

    -- What is due and was not taken is in somebody's transaction, unless there was no room for it: to look again at once
    -- would be to spin.
    SELECT min(c.due_at) INTO v_next FROM (
        SELECT w.due_at FROM unnest(p_definitions) d (id) CROSS JOIN LATERAL (
            SELECT w.due_at FROM {schema}.work w WHERE w.owner IS NULL AND w.definition = d.id
              AND (w.due_at > v_now OR cardinality(v_taken) >= p_limit)
            ORDER BY w.due_at LIMIT 1) w
        UNION ALL
        SELECT w.due_at FROM unnest(v_owners, v_cutoffs) o (owner, cutoff) CROSS JOIN LATERAL (
            SELECT w.due_at FROM {schema}.work w
            WHERE w.owner = o.owner AND w.leased_until <= o.cutoff AND w.definition = ANY (p_definitions)
              AND w.due_at > v_now
            ORDER BY w.due_at LIMIT 1) w
    ) c;
    RETURN QUERY SELECT NULL::bigint, NULL::bigint, NULL, NULL::bigint, NULL, NULL::bigint, NULL::boolean, NULL::boolean,
        NULL::bigint, NULL::bytea, NULL::bytea,
        CASE WHEN v_next IS NOT NULL THEN greatest((extract(epoch FROM v_next - v_now) * 1000000)::bigint, 0) END,
        NULL::bigint, NULL::timestamptz, NULL::bytea, NULL::boolean;
END
$$;
