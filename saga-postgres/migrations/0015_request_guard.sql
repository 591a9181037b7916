-- Refuses a commit by the handler of a request. The transaction of a request has a holdable cursor over this function, which
-- the server reads when the transaction commits; the message that keeps the response closes the cursor first.
CREATE FUNCTION {schema}.refuse_request_commit() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the handler of a request must not end its transaction' USING ERRCODE = 'SG001';
END
$$;

-- Locks the key of a request for this transaction, without waiting, and says whether the request may run; if not, the
-- response that is kept. Without a key it may.
CREATE FUNCTION {schema}.lock_request(
    p_tenant text, p_principal text, p_key text, p_fingerprint bytea,
    OUT verdict text, OUT new_epoch bigint, OUT kept bytea
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    v_now timestamptz := clock_timestamp();
    -- Above every epoch that the key ever had, also if it was deleted meanwhile.
    v_first bigint := (extract(epoch FROM v_now) * 1000000)::bigint;
BEGIN
    IF current_setting('transaction_read_only')::boolean THEN
        RAISE EXCEPTION 'cannot keep a request in a read-only transaction' USING ERRCODE = '25006';
    END IF;
    verdict := 'granted';
    IF p_key IS NULL THEN
        RETURN;
    END IF;
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
    ELSIF verdict <> 'replay' THEN
        kept := NULL;
    END IF;
END
$$;
