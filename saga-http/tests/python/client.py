"""Sends requests with keys by httpx, and checks what is answered: client.py URL."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx

url = sys.argv[1]
client = httpx.Client(base_url=url, headers={"X-User": "ada"}, timeout=60)


def pay(key, order, **more):
    headers = {"Content-Type": "application/json", **more.pop("headers", {})}
    if key is not None:
        headers["Idempotency-Key"] = key
    return client.post("/payments", content=json.dumps(order), headers=headers, **more)


def check(condition, *what):
    if not condition:
        sys.exit(f"failed: {what}")


first = pay('"8e03978e-40d5-43dd-bc93-6894a57f9324"', {"name": "rent"})
check(first.status_code == 200 and first.text == "1 of rent", first, first.text)
check("idempotent-replayed" not in first.headers and "set-cookie" in first.headers, first.headers)
again = pay('"8e03978e-40d5-43dd-bc93-6894a57f9324"', {"name": "rent"})
check(again.content == first.content and again.headers["idempotent-replayed"] == "true", again, again.headers)
check("set-cookie" not in again.headers, again.headers)

other = pay('"8e03978e-40d5-43dd-bc93-6894a57f9324"', {"name": "food"})
check(other.status_code == 422 and other.headers["content-type"] == "application/problem+json", other)
check(other.json()["title"] == "Unprocessable Entity" and other.json()["status"] == 422, other.text)
missing = pay(None, {"name": "food"})
check(missing.status_code == 400 and missing.json()["status"] == 400, missing, missing.text)
# The server answers before it has read the body, and closes the connection: no other request may be on it.
with httpx.Client(base_url=url, headers={"X-User": "ada"}, timeout=60) as alone:
    long = alone.post("/payments", content=b"x" * (1 << 21), headers={"Idempotency-Key": "long"})
check(long.status_code == 413, long)

# Equal requests at once, over many connections.
with ThreadPoolExecutor(32) as pool:
    at_once = list(pool.map(lambda _: pay("at-once", {"name": "at-once"}), range(200)))
check({answer.status_code for answer in at_once} <= {200, 409}, at_once)
check({answer.text for answer in at_once if answer.status_code == 200} == {"1 of at-once"}, at_once)

# A body of unknown length.
streamed = client.post(
    "/payments",
    content=(part for part in [b'{"name":', b' "streamed"}']),
    headers={"Idempotency-Key": "streamed", "Content-Type": "application/json"},
)
check(streamed.status_code == 200 and streamed.text == "1 of streamed", streamed, streamed.text)

# A client that gives up does not take the request back: the retry gets its response.
try:
    pay("in-a-hurry", {"name": "in-a-hurry"}, timeout=1e-4)
except httpx.TimeoutException:
    pass
late = pay("in-a-hurry", {"name": "in-a-hurry"}, headers={"Prefer": "wait=30"})
check(late.status_code == 200 and late.text == "1 of in-a-hurry", late, late.text)

accepted = pay("saga", {"name": "Ada", "saga": "A-1001"})
check(accepted.status_code == 202 and accepted.headers["location"] == "/sagas/A-1001", accepted, accepted.headers)
outcome = pay("saga", {"name": "Ada", "saga": "A-1001"}, headers={"Prefer": "wait=30"})
check(outcome.status_code == 200 and outcome.json()["status"] == "completed", outcome, outcome.text)
