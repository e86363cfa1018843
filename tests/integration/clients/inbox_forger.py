"""Tries, with the credentials of one service, to hear what goes to the inboxes of others. It prints a JSON list of pairs: what it
tried, and whether the broker let it.

    python3 inbox_forger.py amqp://llm:password@localhost:5672/ llm

The arguments are the broker and the service. The first attempt is what the service may do.
"""

import json
import sys
import uuid

import pika
import pika.exceptions

EXCHANGE = "amq.topic"
REFUSED = 403


def worked(broker, attempt):
    """Whether the broker let it. A refusal closes the channel, so each attempt has a connection of its own."""
    connection = pika.BlockingConnection(pika.URLParameters(broker))
    try:
        attempt(connection.channel())
        return True
    except pika.exceptions.ChannelClosedByBroker as closed:
        if closed.reply_code != REFUSED:
            raise
        return False
    finally:
        if connection.is_open:
            connection.close()


def bind(key):
    """Binds a queue of the service's own."""

    def attempt(channel):
        queue = f"amq_{uuid.uuid4().hex}"
        channel.queue_declare(queue, exclusive=True)
        channel.queue_bind(queue, EXCHANGE, key)

    return attempt


def main(broker, service):
    own = f"nt.inbox.{service}"
    tries = [(f"bind {own}.1", bind(f"{own}.1"))]
    keys = ["#", "*.inbox.#", "nt.#", "nt.inbox.*.*", "nt.inbox.gateway.#", "nt.inbox.gateway.1", f"{own}.#", f"{own}.*"]
    tries += [(f"bind {key}", bind(key)) for key in keys]
    # Through an exchange that the service makes itself, if it could.
    passing = "nt.request.text-completion:default:default"
    tries.append(("pass inboxes on", lambda channel: channel.exchange_bind(passing, EXCHANGE, "#")))
    tries.append(("delete the exchange", lambda channel: channel.exchange_delete(EXCHANGE)))
    tries.append(("declare the exchange", lambda channel: channel.exchange_declare(EXCHANGE, "topic", durable=True)))
    print(json.dumps([[what, worked(broker, attempt)] for what, attempt in tries]))


if __name__ == "__main__":
    main(*sys.argv[1:])
