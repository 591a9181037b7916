"""Moto's SQS and SNS, with what they lack of the services that they stand for. The arguments are moto_server's."""

import sys
import threading
import time

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


def one_at_a_time(name):
    original = getattr(sqs.SQSBackend, name)

    def call(*arguments, **named):
        with changed:
            try:
                return original(*arguments, **named)
            finally:
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

look = sqs.SQSBackend.receive_message


def receive_message(self, queue_name, count, wait_seconds, *others):
    """Moto remembers, while it waits, which groups were blocked when it began. So each look is a new one."""
    end = time.monotonic() + wait_seconds
    with changed:
        while True:
            messages = look(self, queue_name, count, 0, *others)
            left = end - time.monotonic()
            if messages or left <= 0:
                return messages
            # What is withheld for a time comes back without a change.
            changed.wait(min(left, 0.1))


sqs.SQSBackend.receive_message = receive_message

if __name__ == "__main__":
    main()
