"""Moto's SQS and SNS, with what they lack of the services that they stand for. The arguments are moto_server's."""

import collections
import sys
import threading
import time
import weakref

from moto.server import main
from moto.sns import models as sns
from moto.sns.responses import SNSResponse
from moto.sqs import models as sqs
from moto.sqs.responses import SQSResponse

# A topic whose MaximumMessageSize says so takes a mebibyte. Moto does not know the attribute.
sns.MAXIMUM_MESSAGE_LENGTH = 1 << 20


def counted(service, name):
    """Writes a line of the log for each request, which its owner counts."""
    answer = getattr(service, name)

    def call(self):
        # In one piece, since requests come on threads of their own.
        sys.stdout.write(f"request: {name}\n")
        return answer(self)

    setattr(service, name, call)


for name in ["send_message_batch", "receive_message", "delete_message_batch", "change_message_visibility_batch"]:
    counted(SQSResponse, name)
counted(SNSResponse, "publish_batch")

# Moto's queues are not made for several threads.
changed = threading.Condition(threading.RLock())
# How often each queue has changed. A look at a queue costs time for each message in it, so nobody looks again for the changes of others.
changes = collections.Counter()
# What is withheld for a time comes back without a change.
LOOK_EVERY_SECONDS = 0.3
# SQS itself says that its counts are approximate.
COUNT_EVERY_SECONDS = 0.2


def one_at_a_time(name):
    original = getattr(sqs.SQSBackend, name)

    def call(self, *arguments, **named):
        queue = named.get("queue_name") or named.get("name") or (arguments[0] if arguments else None)
        with changed:
            try:
                return original(self, *arguments, **named)
            finally:
                changes[queue] += 1
                changed.notify_all()

    setattr(sqs.SQSBackend, name, call)


for name in [
    "send_message",
    "send_message_batch",
    "delete_message",
    "delete_message_batch",
    "change_message_visibility",
    "change_message_visibility_batch",
    "delete_queue",
    "create_queue",
    "set_queue_attributes",
]:
    one_at_a_time(name)



def seldom(name):
    """Moto counts the messages of a queue whenever it looks at an attribute, and it looks at all of them for each message that is sent."""
    count = getattr(sqs.Queue, name).fget
    kept = weakref.WeakKeyDictionary()

    def counted(queue):
        at, number = kept.get(queue, (0, 0))
        if time.monotonic() >= at + COUNT_EVERY_SECONDS:
            number = count(queue)
            kept[queue] = (time.monotonic(), number)
        return number

    setattr(sqs.Queue, name, property(counted))


for name in [
    "approximate_number_of_messages",
    "approximate_number_of_messages_delayed",
    "approximate_number_of_messages_not_visible",
]:
    seldom(name)

look = sqs.SQSBackend.receive_message


def receive_message(self, queue_name, count, wait_seconds, *others):
    """Moto remembers, while it waits, which groups were blocked when it began. So each look is a new one."""
    end = time.monotonic() + wait_seconds
    seen, look_at = None, 0
    with changed:
        while True:
            now = time.monotonic()
            if changes[queue_name] != seen or now >= min(look_at, end):
                seen, look_at = changes[queue_name], now + LOOK_EVERY_SECONDS
                messages = look(self, queue_name, count, 0, *others)
                if messages or now >= end:
                    return messages
            changed.wait(max(0.001, min(look_at, end) - time.monotonic()))


sqs.SQSBackend.receive_message = receive_message

if __name__ == "__main__":
    main()
