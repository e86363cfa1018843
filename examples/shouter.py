"""A listener in Python, over plain AMQP: it answers each text in capitals.

    python3 shouter.py amqp://guest:guest@localhost:5672/%2F default default

The arguments are the broker, the workspace and the flow. It needs pika, and nothing of ours.

A listener serves the queue of its name. What it gets is a JSON object: `thread_id`, `from_id`, `type`, `payload` and, for
an agent, `own_name` and `usage_instructions`. What it returns goes to the queue in the header `reply-to`, under the same
`id`: `respond` with a type and a payload, `forwards` with messages for others, or neither. docs/threads.md lists all
frames; this example answers at once, so it needs neither `alive` nor `cancel`.
"""

import json
import sys

import pika

NAME = "shouter"


def returned(message):
    """What follows from a message. A fault of ours is told to the caller, in words that say nothing of it."""
    text = message["payload"].get("text", "")
    respond = {"type": "textinput", "payload": {"text": text.upper()}}
    return {"respond": respond, "end_of_stream": True}


def main(broker, workspace, flow):
    channel = pika.BlockingConnection(pika.URLParameters(broker)).channel()
    exchange = f"nt.request.listener.{NAME}:{workspace}:{flow}"
    queue = f"{exchange}.{NAME}"
    channel.exchange_declare(exchange, "fanout")
    # RabbitMQ refuses queues that are neither durable nor exclusive since 4.3.
    channel.queue_declare(queue, durable=True, auto_delete=True, arguments={"x-expires": 10_000})
    channel.queue_bind(queue, exchange, queue)
    inbox = channel.queue_declare("", exclusive=True).method.queue

    def publish(headers, frame, body):
        about = {"id": headers["id"], "from": inbox, **frame}
        properties = pika.BasicProperties(content_type="application/json", headers=about)
        channel.basic_publish("", headers["reply-to"], json.dumps(body).encode(), properties)

    def on_message(channel, method, properties, body):
        headers = properties.headers or {}
        channel.basic_ack(method.delivery_tag)
        if headers.get("frame") != "ask" or "reply-to" not in headers:
            return
        # Asked again after a part of the answer came, of which another process has the rest: it is not begun anew.
        if int(headers.get("seq", 0)) > 0:
            error = {"type": "interrupted", "message": "the answer was interrupted; please ask again"}
            publish(headers, {"frame": "refuse"}, error)
            return
        try:
            answer = returned(json.loads(body))
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            answer = {"error": {"type": "internal", "message": "failed"}, "end_of_stream": True}
        # The only part, and so the last: number 0.
        publish(headers, {"frame": "last", "seq": "0"}, answer)

    channel.basic_consume(queue, on_message)
    print(f"{NAME} listens", flush=True)
    channel.start_consuming()


if __name__ == "__main__":
    main(*sys.argv[1:])
