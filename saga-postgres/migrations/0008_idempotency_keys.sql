-- The requests that take effect once. A row without a response is leased by a call outside of a transaction, or was.
CREATE TABLE {schema}.idempotency_keys (
    tenant       text COLLATE "C" NOT NULL,
    principal    text COLLATE "C" NOT NULL,
    key          text COLLATE "C" NOT NULL,
    fingerprint  bytea NOT NULL,
    epoch        bigint NOT NULL,
    leased_until timestamptz,
    response     bytea,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (tenant, principal, key)
);

CREATE INDEX idempotency_keys_expiry ON {schema}.idempotency_keys (expires_at);

-- The advisory lock of a key. A principal and a key have no control characters. Two keys with one lock are in flight for
-- each other, and nothing worse.
CREATE FUNCTION {schema}.request_lock(p_tenant text, p_principal text, p_key text) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT hashtextextended('{schema}' || chr(31) || p_tenant || chr(31) || p_principal || chr(31) || p_key, 0)
$$;

-- Locks the key for this transaction, without waiting, and says whether its request may run. With a lease the key is
-- leased at once; otherwise the transaction cannot commit before `keep_response`. Without a key it only begins.
CREATE FUNCTION {schema}.admit_request(
    p_tenant text, p_principal text, p_key text, p_fingerprint bytea, p_ttl bigint, p_lease bigint,
    OUT verdict text, OUT new_epoch bigint, OUT kept bytea, OUT xact text
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    -- Above every epoch that the key ever had, also if it was deleted meanwhile.
    v_first bigint := (extract(epoch FROM v_now) * 1000000)::bigint;
BEGIN
    verdict := 'granted';
    IF p_key IS NOT NULL THEN
        IF NOT pg_try_advisory_xact_lock({schema}.request_lock(p_tenant, p_principal, p_key)) THEN
            verdict := 'in-flight';
            RETURN;
        END IF;
        -- A second statement: it sees what was committed until the key was locked.
        SELECT CASE
                WHEN k.expires_at <= v_now AND coalesce(k.leased_until <= v_now, true) THEN 'granted'
                WHEN k.fingerprint <> p_fingerprint THEN 'other'
                WHEN k.response IS NOT NULL THEN 'replay'
                WHEN k.leased_until > v_now THEN 'in-flight'
                ELSE 'granted'
            END, greatest(k.epoch + 1, v_first), k.response
        INTO verdict, new_epoch, kept
        FROM {schema}.idempotency_keys k
        WHERE k.tenant = p_tenant AND k.principal = p_principal AND k.key = p_key;
        IF NOT FOUND THEN
            verdict := 'granted';
            new_epoch := v_first;
        END IF;
    END IF;
    IF verdict <> 'replay' THEN
        kept := NULL;
    END IF;
    IF verdict = 'granted' AND p_lease IS NOT NULL THEN
        INSERT INTO {schema}.idempotency_keys AS k
            (tenant, principal, key, fingerprint, epoch, leased_until, response, expires_at)
        VALUES (p_tenant, p_principal, p_key, p_fingerprint, new_epoch, v_now + p_lease * interval '1 microsecond',
            NULL, v_now + p_ttl * interval '1 microsecond')
        ON CONFLICT (tenant, principal, key) DO UPDATE SET fingerprint = excluded.fingerprint, epoch = excluded.epoch,
            leased_until = excluded.leased_until, response = NULL, expires_at = excluded.expires_at;
    ELSIF verdict = 'granted' THEN
        INSERT INTO {schema}.guards AS g (backend, touched) VALUES (pg_backend_pid(), true)
            ON CONFLICT (backend) DO UPDATE SET touched = NOT g.touched;
        xact := pg_current_xact_id()::text;
    END IF;
END
$$;

-- The response that is kept under a key, and whether it is that of the same request.
CREATE FUNCTION {schema}.kept_response(
    p_tenant text, p_principal text, p_key text, p_fingerprint bytea, OUT is_same boolean, OUT kept bytea
) RETURNS SETOF record LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY SELECT k.fingerprint = p_fingerprint, k.response FROM {schema}.idempotency_keys k
        WHERE k.tenant = p_tenant AND k.principal = p_principal AND k.key = p_key AND k.response IS NOT NULL
          AND k.expires_at > clock_timestamp();
END
$$;

-- Keeps the response of a request, if there is a key, and lets the transaction commit. It fails if this is not the
-- transaction in which the request was admitted.
CREATE FUNCTION {schema}.keep_response(
    p_xact text, p_tenant text, p_principal text, p_key text, p_fingerprint bytea, p_epoch bigint, p_ttl bigint,
    p_response bytea
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF pg_current_xact_id_if_assigned()::text IS DISTINCT FROM p_xact THEN
        RAISE EXCEPTION 'the transaction of the request has ended' USING ERRCODE = 'SG002';
    END IF;
    PERFORM set_config('saga.recorded', p_xact, true);
    IF p_key IS NOT NULL THEN
        INSERT INTO {schema}.idempotency_keys AS k
            (tenant, principal, key, fingerprint, epoch, leased_until, response, expires_at)
        VALUES (p_tenant, p_principal, p_key, p_fingerprint, p_epoch, NULL, p_response,
            clock_timestamp() + p_ttl * interval '1 microsecond')
        ON CONFLICT (tenant, principal, key) DO UPDATE SET fingerprint = excluded.fingerprint, epoch = excluded.epoch,
            leased_until = NULL, response = excluded.response, expires_at = excluded.expires_at;
    END IF;
END
$$;

-- Ends the lease of a key under its epoch: with the response, or, without one, as if there had been no request. A
-- transaction that has the key is waited for.
CREATE FUNCTION {schema}.end_key_lease(p_tenant text, p_principal text, p_key text, p_epoch bigint, p_response bytea)
RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    PERFORM pg_advisory_xact_lock({schema}.request_lock(p_tenant, p_principal, p_key));
    IF p_response IS NULL THEN
        DELETE FROM {schema}.idempotency_keys k
        WHERE k.tenant = p_tenant AND k.principal = p_principal AND k.key = p_key AND k.epoch = p_epoch
          AND k.response IS NULL;
    ELSE
        UPDATE {schema}.idempotency_keys k SET leased_until = NULL, response = p_response
        WHERE k.tenant = p_tenant AND k.principal = p_principal AND k.key = p_key AND k.epoch = p_epoch
          AND k.response IS NULL;
    END IF;
    RETURN FOUND;
END
$$;
