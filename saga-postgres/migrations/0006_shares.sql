-- Free rows by step, for claims of some steps only. The name of a step ends in front of the number of an item and in front
-- of what says that it is undone; that of a deadline is empty.
CREATE INDEX work_steps ON {schema}.work
    (definition, kind, split_part(split_part(step, ':', 1), '#', 1), due_at, id) WHERE owner IS NULL;

-- As `claim_waiting_work`, with the work of the given shares only, and of each at most `s_limit` rows. A share without
-- steps is all the work of its definition; `e_share` says whose steps `e_kind` and `e_step` are.
CREATE FUNCTION {schema}.claim_shares(
    s_definition integer[], s_limit bigint[], s_whole boolean[], e_share integer[], e_kind text[], e_step text[],
    p_owner bigint, p_ttl bigint, p_limit bigint, p_takes_over boolean)
RETURNS TABLE (
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
    v_room bigint[] := s_limit;
    v_left bigint := p_limit;
    v_found bigint[];
    v_shares integer[];
    v_recorded bigint[];
    v_more boolean;
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
        -- One more than there is room for tells whether more wait.
        WITH free AS MATERIALIZED (
            SELECT s.share, w.id, w.due_at
            FROM unnest(s_definition, v_room, s_whole) WITH ORDINALITY s (definition, room, whole, share)
            CROSS JOIN LATERAL (
                SELECT w.id, w.due_at FROM {schema}.work w
                WHERE s.whole AND w.owner IS NULL AND w.definition = s.definition AND w.due_at <= v_now
                ORDER BY w.due_at, w.id LIMIT least(s.room, v_left + 1) FOR UPDATE SKIP LOCKED) w
            UNION ALL
            SELECT e.share, w.id, w.due_at FROM unnest(e_share, e_kind, e_step) e (share, kind, step)
            CROSS JOIN LATERAL (
                SELECT w.id, w.due_at FROM {schema}.work w
                WHERE w.owner IS NULL AND w.definition = s_definition[e.share] AND w.kind = e.kind
                  AND split_part(split_part(w.step, ':', 1), '#', 1) = e.step AND w.due_at <= v_now
                ORDER BY w.due_at, w.id LIMIT least(v_room[e.share], v_left + 1) FOR UPDATE SKIP LOCKED) w
            UNION ALL
            SELECT s.share, w.id, w.due_at
            FROM unnest(s_definition, v_room, s_whole) WITH ORDINALITY s (definition, room, whole, share)
            CROSS JOIN unnest(v_owners, v_cutoffs) o (owner, cutoff)
            CROSS JOIN LATERAL (
                SELECT w.id, w.due_at FROM {schema}.work w
                WHERE w.owner = o.owner AND w.leased_until <= o.cutoff AND w.due_at <= v_now
                  AND w.definition = s.definition
                  AND (s.whole OR EXISTS (SELECT 1 FROM unnest(e_share, e_kind, e_step) e (share, kind, step)
                      WHERE e.share = s.share AND e.kind = w.kind
                        AND e.step = split_part(split_part(w.step, ':', 1), '#', 1)))
                ORDER BY w.due_at, w.id LIMIT least(s.room, v_left + 1) FOR UPDATE SKIP LOCKED) w
        ), with_room AS (
            SELECT f.*, row_number() OVER (ORDER BY f.due_at, f.id) AS place FROM (
                SELECT f.*, row_number() OVER (PARTITION BY f.share ORDER BY f.due_at, f.id) AS of_share FROM free f) f
            WHERE f.of_share <= v_room[f.share]
        )
        SELECT coalesce(array_agg(r.id ORDER BY r.place) FILTER (WHERE r.place <= v_left), '{}'),
            coalesce(array_agg(r.share ORDER BY r.place) FILTER (WHERE r.place <= v_left), '{}'),
            coalesce(bool_or(r.place > v_left), false)
        INTO v_found, v_shares, v_more FROM with_room r;
        WITH gone AS (
            DELETE FROM {schema}.work w WHERE w.id = ANY (v_found) AND EXISTS (
                SELECT 1 FROM {schema}.records r
                WHERE r.tenant = w.tenant AND r.key = w.key AND r.step = w.step OFFSET 0)
            RETURNING w.id)
        SELECT coalesce(array_agg(g.id), '{}') INTO v_recorded FROM gone g;
        -- Only a lease that nobody gave back is still written on a free row: its owner vanished.
        RETURN QUERY WITH taken AS (
            UPDATE {schema}.work w SET epoch = w.epoch + 1, suspect = w.suspect OR w.owner IS NOT NULL, owner = p_owner,
                waiting = CASE WHEN w.waiting = w.epoch OR (w.owner IS NULL AND NOT w.suspect) THEN w.epoch + 1 END,
                leased_until = clock_timestamp() + p_ttl * interval '1 microsecond'
            WHERE w.id = ANY (v_found) AND w.id <> ALL (v_recorded)
            RETURNING w.*)
        SELECT t.id, t.epoch, t.kind, t.saga, t.step, t.attempts, t.maybe, t.suspect,
            (extract(epoch FROM v_now - t.retrying_since) * 1000000)::bigint, t.payload, t.late, NULL::bigint,
            t.report, t.reported_at, t.progress, t.waiting IS NULL
        FROM taken t ORDER BY t.due_at, t.id;
        SELECT array_agg(r.room - coalesce(n.taken, 0) ORDER BY r.share)
        INTO v_room FROM unnest(v_room) WITH ORDINALITY r (room, share) LEFT JOIN (
            SELECT f.share, count(*) AS taken FROM unnest(v_found, v_shares) f (id, share)
            WHERE f.id <> ALL (v_recorded) GROUP BY f.share) n ON n.share = r.share;
        v_left := v_left - cardinality(v_found) + cardinality(v_recorded);
        EXIT WHEN cardinality(v_recorded) = 0 OR v_left <= 0;
    END LOOP;

    -- What is due and found no room in its share is looked for when there is some: to look again at once would be to spin.
    SELECT min(c.due_at) INTO v_next FROM (
        SELECT v_now AS due_at WHERE v_more AND v_left <= 0
        UNION ALL
        SELECT w.due_at FROM unnest(s_definition, s_whole) s (definition, whole) CROSS JOIN LATERAL (
            SELECT w.due_at FROM {schema}.work w
            WHERE s.whole AND w.owner IS NULL AND w.definition = s.definition AND w.due_at > v_now
            ORDER BY w.due_at LIMIT 1) w
        UNION ALL
        SELECT w.due_at FROM unnest(e_share, e_kind, e_step) e (share, kind, step) CROSS JOIN LATERAL (
            SELECT w.due_at FROM {schema}.work w
            WHERE w.owner IS NULL AND w.definition = s_definition[e.share] AND w.kind = e.kind
              AND split_part(split_part(w.step, ':', 1), '#', 1) = e.step AND w.due_at > v_now
            ORDER BY w.due_at LIMIT 1) w
        UNION ALL
        SELECT w.due_at FROM unnest(v_owners, v_cutoffs) o (owner, cutoff) CROSS JOIN LATERAL (
            SELECT w.due_at FROM {schema}.work w
            WHERE w.owner = o.owner AND w.leased_until <= o.cutoff AND w.definition = ANY (s_definition)
              AND w.due_at > v_now
            ORDER BY w.due_at LIMIT 1) w
    ) c;
    RETURN QUERY SELECT NULL::bigint, NULL::bigint, NULL, NULL::bigint, NULL, NULL::bigint, NULL::boolean, NULL::boolean,
        NULL::bigint, NULL::bytea, NULL::bytea,
        CASE WHEN v_next IS NOT NULL THEN greatest((extract(epoch FROM v_next - v_now) * 1000000)::bigint, 0) END,
        NULL::bigint, NULL::timestamptz, NULL::bytea, NULL::boolean;
END
$$;
