"""A client of the wire protocol, written from docs/wire.md alone. It needs pika.

It reads what to do from its arguments (URL, prefix, task) and prints one line of JSON for each thing that it received.
"""

import json
import sys
import time
import uuid

import pika

URL, PREFIX, TASK = sys.argv[1:4]
EVENTS, SERVICES, DEAD_LETTERS = PREFIX + "events", PREFIX + "services", PREFIX + "dead-letters"
TOPIC, QUEUE = "orders", PREFIX + "python"
SERVICE, SERVICE_QUEUE = "service:python", PREFIX + "service:python"
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LIMIT_SECONDS = 60


def connect():
    connection = pika.BlockingConnection(pika.URLParameters(URL))
    channel = connection.channel()
    channel.confirm_delivery()
    return connection, channel


def publish(channel, body, exchange=EVENTS, routing_key=TOPIC, **properties):
    channel.basic_publish(exchange, routing_key, body, pika.BasicProperties(**properties), mandatory=True)


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
    publish(channel, b"{}", **event(5, headers={"saga-key": None, "x-death": "forged"}))
    publish(channel, b"{}", **event(6, headers={"x-delivery-count": 999}))
    publish(channel, b"{}", **event(7, message_id="7"))
    publish(channel, b"{}", **event(8, type=None))
    connection.close()


def send_command():
    """Commands as the headers and as the properties say it, one of a kind that there is not, and an undo."""
    connection, channel = connect()

    def send_to_payments(number, body, kind, reply_to_header=None, **changes):
        headers = {"saga-kind": kind, "saga-cause": "order/17", "saga-step": "charge-card", "traceparent": TRACEPARENT}
        headers.update({"saga-reply-to": reply_to_header}, **changes.pop("headers", {}))
        properties = event(number, type="charge-card", headers=headers, **changes)
        publish(channel, body, SERVICES, "service:payments", **properties)

    send_to_payments(11, b'{"amount":1}', "command", "python")
    send_to_payments(12, b'{"amount":2}', "command", reply_to="python")
    send_to_payments(13, b'{"amount":3}', "order", "python")
    send_to_payments(14, b"{}", "undo", "python", headers={"saga-answer": "done"})
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
        "correlation_id": properties.correlation_id,
        "reply_to": properties.reply_to,
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


def bind(queue, exchange, exchange_type, routing_key):
    """A queue of this client's own, beside those of the transport."""
    connection, channel = connect()
    channel.exchange_declare(exchange, exchange_type, durable=True)
    channel.exchange_declare(DEAD_LETTERS, "direct", durable=True)
    # What comes back too often goes from the first to the second, and from there to the last.
    dead_letters, unread = queue + ".dead-letters", queue + ".dead-letters.unread"
    for name, is_last in [(queue, False), (dead_letters, False), (unread, True)]:
        arguments = {
            "x-queue-type": "quorum",
            "x-delivery-limit": 20,
            "x-dead-letter-exchange": DEAD_LETTERS,
            "x-dead-letter-routing-key": name,
            "x-dead-letter-strategy": "at-least-once",
            "x-overflow": "reject-publish",
        }
        arguments = {"x-queue-type": "quorum"} if is_last else arguments
        channel.queue_declare(name, durable=True, arguments=arguments)
    channel.queue_bind(dead_letters, DEAD_LETTERS, queue)
    channel.queue_bind(unread, DEAD_LETTERS, dead_letters)
    channel.queue_bind(queue, exchange, routing_key)
    connection.close()


TASKS = {
    "send": send,
    "send-unreadable": send_unreadable,
    "bind": lambda: bind(QUEUE, EVENTS, "topic", TOPIC),
    "bind-service": lambda: bind(SERVICE_QUEUE, SERVICES, "direct", SERVICE),
    "command": send_command,
    "receive-service": lambda: receive(SERVICE_QUEUE, int(sys.argv[4])),
    "receive": lambda: receive(QUEUE, int(sys.argv[4])),
    "unread": lambda: receive(PREFIX + sys.argv[4] + ".dead-letters.unread", int(sys.argv[5])),
    "dead-letters": lambda: receive(PREFIX + sys.argv[4] + ".dead-letters", int(sys.argv[5])),
}
TASKS[TASK]()
