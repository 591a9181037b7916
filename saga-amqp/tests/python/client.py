"""A client of the wire protocol, written from docs/wire.md alone. It needs pika.

It reads what to do from its arguments (URL, prefix, task) and prints one line of JSON for each thing that it received.
"""

import json
import sys
import time
import uuid

import pika

URL, PREFIX, TASK = sys.argv[1:4]
EVENTS, DEAD_LETTERS = PREFIX + "events", PREFIX + "dead-letters"
TOPIC, QUEUE = "orders", PREFIX + "python"
LIMIT_SECONDS = 60


def connect():
    connection = pika.BlockingConnection(pika.URLParameters(URL))
    channel = connection.channel()
    channel.confirm_delivery()
    return connection, channel


def publish(channel, body, routing_key=TOPIC, **properties):
    channel.basic_publish(EVENTS, routing_key, body, pika.BasicProperties(**properties), mandatory=True)


def event(number, **changes):
    """The properties of an event as docs/wire.md asks for them."""
    headers = {"saga-key": "k-%d" % number, "saga-committed-at": 1735689600000000 + number}
    headers.update(changes.pop("headers", {}))
    properties = {
        "message_id": str(uuid.UUID(int=number)),
        "type": "OrderPlaced",
        "content_type": "application/json",
        "delivery_mode": 2,
        "headers": {name: value for name, value in headers.items() if value is not None},
    }
    properties.update(changes)
    return properties


def send():
    """Good events, a duplicate, garbage, and forged headers."""
    connection, channel = connect()
    publish(channel, b'{"number":1}', **event(1))
    publish(channel, b'{"number":1}', **event(1))
    seconds = event(2, headers={"saga-committed-at": None, "saga-tenant": "acme"}, timestamp=1735689600)
    publish(channel, b'{"number":2}', **seconds)
    publish(channel, b"\x00garbage")
    publish(channel, b"{}", **event(3, headers={"saga-key": 17}))
    publish(channel, b"{}", **event(4, headers={"saga-tenant": {"a": ["table"]}}))
    publish(channel, b"{}", **event(5, headers={"saga-key": None, "x-death": "forged", "saga-dead-reason": "forged"}))
    publish(channel, b"{}", **event(6, headers={"x-delivery-count": 999, "saga-dead-queue": "other"}))
    publish(channel, b"{}", **event(7, message_id="7"))
    publish(channel, b"{}", **event(8, type=None))
    connection.close()


def send_unreadable():
    """A message id that is no UTF-8, among good events."""
    connection, channel = connect()
    publish(channel, b'{"number":1}', **event(1))
    publish(channel, b"unreadable", **event(2, message_id=b"\xff\xfe"))
    for number in range(3, 6):
        publish(channel, b"{}", **event(number))
    connection.close()


def show(method, properties, body):
    shown = {
        "exchange": method.exchange,
        "routing_key": method.routing_key,
        "message_id": repr(properties.message_id),
        "type": properties.type,
        "content_type": properties.content_type,
        "delivery_mode": properties.delivery_mode,
        "timestamp": properties.timestamp,
        "headers": properties.headers,
        "body": body.decode("latin-1"),
    }
    print(json.dumps(shown, default=repr, sort_keys=True), flush=True)


def receive(queue, count):
    """Takes this many messages from a queue."""
    connection, channel = connect()
    deadline = time.monotonic() + LIMIT_SECONDS
    while count:
        method, properties, body = channel.basic_get(queue)
        if method is None:
            if time.monotonic() > deadline:
                sys.exit("%d messages did not come to %s" % (count, queue))
            time.sleep(0.02)
            continue
        show(method, properties, body)
        channel.basic_ack(method.delivery_tag)
        count -= 1
    connection.close()


def bind():
    """A queue of this client's own, beside those of the transport."""
    connection, channel = connect()
    arguments = {
        "x-queue-type": "quorum",
        "x-delivery-limit": 20,
        "x-dead-letter-exchange": DEAD_LETTERS,
        "x-dead-letter-routing-key": QUEUE,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    channel.exchange_declare(EVENTS, "topic", durable=True)
    channel.exchange_declare(DEAD_LETTERS, "direct", durable=True)
    channel.queue_declare(QUEUE + ".dead-letters", durable=True, arguments={"x-queue-type": "quorum"})
    channel.queue_bind(QUEUE + ".dead-letters", DEAD_LETTERS, QUEUE)
    channel.queue_declare(QUEUE, durable=True, arguments=arguments)
    channel.queue_bind(QUEUE, EVENTS, TOPIC)
    connection.close()


TASKS = {
    "send": send,
    "send-unreadable": send_unreadable,
    "bind": bind,
    "receive": lambda: receive(QUEUE, int(sys.argv[4])),
    "dead-letters": lambda: receive(PREFIX + sys.argv[4] + ".dead-letters", int(sys.argv[5])),
}
TASKS[TASK]()
