"""A service in another language, written from saga-amqp/docs/wire.md alone. It needs pika.

Its arguments are the URL of a virtual host and the name of the service. Each line of its standard input is a JSON list: the
name of a task and its arguments. It answers each with a line of JSON.
"""

import json
import sys
import time
import uuid

import pika

URL, SERVICE = sys.argv[1:3]
EVENTS, SERVICES, DEAD_LETTERS = "saga.events", "saga.services", "saga.dead-letters"
QUEUE = "saga.service:" + SERVICE
LIMIT_SECONDS = 60

PARAMETERS = pika.URLParameters(URL)
# Between two tasks nobody answers heartbeats.
PARAMETERS.heartbeat = 0
CONNECTION = pika.BlockingConnection(PARAMETERS)
CHANNEL = CONNECTION.channel()
CHANNEL.confirm_delivery()

# What became of each step key: what it took, what was answered, and the messages that asked for it.
RECORDS = {}


def declare(topics):
    """The queue of this service, with the arguments that the runtime would give it."""
    CHANNEL.exchange_declare(EVENTS, "topic", durable=True)
    CHANNEL.exchange_declare(SERVICES, "direct", durable=True)
    CHANNEL.exchange_declare(DEAD_LETTERS, "direct", durable=True)
    dead_letters, unread = QUEUE + ".dead-letters", QUEUE + ".dead-letters.unread"
    for name in [QUEUE, dead_letters]:
        arguments = {
            "x-queue-type": "quorum",
            "x-delivery-limit": 20,
            "x-dead-letter-exchange": DEAD_LETTERS,
            "x-dead-letter-routing-key": name,
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
        }
        CHANNEL.queue_declare(name, durable=True, arguments=arguments)
    CHANNEL.queue_declare(unread, durable=True, arguments={"x-queue-type": "quorum"})
    CHANNEL.queue_bind(dead_letters, DEAD_LETTERS, QUEUE)
    CHANNEL.queue_bind(unread, DEAD_LETTERS, dead_letters)
    CHANNEL.queue_bind(QUEUE, SERVICES, "service:" + SERVICE)
    for topic in topics:
        CHANNEL.queue_bind(QUEUE, EVENTS, topic)


def publish(exchange, routing_key, event_type, body, message_id=None, **headers):
    """Sends a message; answers its id."""
    message_id = message_id or str(uuid.uuid4())
    given = {"saga-key": message_id, "saga-committed-at": time.time_ns() // 1000}
    given.update({"saga-" + name.replace("_", "-"): value for name, value in headers.items()})
    if "traceparent" in headers:
        given["traceparent"] = given.pop("saga-traceparent")
    properties = pika.BasicProperties(
        message_id=message_id,
        type=event_type,
        content_type="application/json",
        delivery_mode=2,
        headers={name: value for name, value in given.items() if value is not None},
    )
    content = b"" if body is None else json.dumps(body).encode()
    CHANNEL.basic_publish(exchange, routing_key, content, properties, mandatory=True)
    return message_id


def take():
    """The next message of this service, which counts as handled."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        method, properties, body = CHANNEL.basic_get(QUEUE)
        if method is None:
            time.sleep(0.005)
            continue
        CHANNEL.basic_ack(method.delivery_tag)
        return {
            "exchange": method.exchange,
            "routing_key": method.routing_key,
            "id": properties.message_id,
            "type": properties.type,
            "headers": properties.headers,
            "body": json.loads(body) if body else None,
        }
    raise SystemExit("nothing came to " + QUEUE)


def step_key(message):
    headers = message["headers"]
    return (headers.get("saga-tenant"), headers["saga-cause"], headers["saga-step"])


def answer(asked, kind, body, **more):
    """Sends a reply, or a report, about a command or an undo."""
    headers = asked["headers"]
    return publish(
        SERVICES,
        "service:" + headers["saga-reply-to"],
        headers["saga-step"] + (":undo" if headers["saga-kind"] == "undo" else ""),
        body,
        kind=kind,
        cause=headers["saga-cause"],
        step=headers["saga-step"],
        tenant=headers.get("saga-tenant"),
        traceparent=headers.get("traceparent"),
        correlation=asked["id"],
        reply_to=SERVICE,
        **more
    )


def reply(asked, became):
    """The reply of that name, with the body that belongs to it. Of `nothing` there is none yet."""
    if became == "nothing":
        return became
    if became == "done":
        body = {"payment": RECORDS[step_key(asked)]["input"]["amount"] * 10}
    elif became == "undone":
        body = None
    else:
        body = {"message": "the till says " + became}
        if became == "rejected":
            body["details"] = json.dumps({"code": 51})
    answer(asked, "reply", body, answer=became)
    return became


def do(message):
    """Does a step once. Its input says what is to become of it here."""
    record = RECORDS.get(step_key(message))
    if record is None:
        record = {"input": message["body"], "became": message["body"]["answer"], "is_barred": False}
        RECORDS[step_key(message)] = record
    elif record["is_barred"]:
        return reply(message, "cancelled")
    elif record["input"] != message["body"]:
        return reply(message, "refused")
    record["command"] = message
    return reply(message, record["became"])


def undo(message):
    """Undoes a step, from its record or from what the message brings, or bars it."""
    is_done = message["headers"]["saga-answer"] == "done"
    record = RECORDS.get(step_key(message))
    if record is None:
        record = {"input": message["body"]["input"], "became": "done" if is_done else "cancelled"}
        RECORDS[step_key(message)] = record
    record["is_barred"] = True
    record["undo"] = message
    return reply(message, record["input"]["answer_undo"])


def serve():
    """Handles the next command or undo; answers what it was and what was replied."""
    message = take()
    became = do(message) if message["headers"]["saga-kind"] == "command" else undo(message)
    return {"received": message, "replied": became}


def settle(cause, step, which, became):
    """Another reply to a command or an undo, which a person has decided about meanwhile."""
    record = RECORDS[(None, cause, step)]
    return reply(record[which], became)


def report(cause, step, number, content):
    """Says how far a command is."""
    record = RECORDS[(None, cause, step)]
    return answer(record["command"], "report", {"number": number, "report": content})


def ask(service, kind, cause, step, body, more):
    """Sends a command or an undo."""
    event_type = step + (":undo" if kind == "undo" else "")
    routing_key = "service:" + service
    return publish(SERVICES, routing_key, event_type, body, kind=kind, cause=cause, step=step, reply_to=SERVICE, **more)


def happened(name, cause, body):
    """Publishes an event of a saga that is wired by events."""
    return publish(EVENTS, name, name, body, key=cause, cause=cause)


def fact(follower, cause, step, body):
    """Says what became of a step that an event asked for."""
    return publish(SERVICES, "service:" + follower, step, body, kind="fact", cause=cause, step=step, reply_to=SERVICE)


TASKS = [declare, take, serve, settle, report, ask, happened, fact]
NAMED = {task.__name__: task for task in TASKS}
for line in sys.stdin:
    name, *arguments = json.loads(line)
    print(json.dumps(NAMED[name](*arguments)), flush=True)
