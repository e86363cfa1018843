"""A listener in Python, over plain AMQP: it answers each text in capitals.

    python3 shouter.py amqp://guest:guest@localhost:5672/%2F default default

The arguments are the broker, the workspace and the flow. It needs pika, and nothing of ours.

A listener serves the queue of its name. What it gets is a JSON object: `thread_id`, `from_id`, `type`, `payload` and, for
an agent, `own_name` and `usage_instructions`. What it returns goes to the queue in the header `reply-to`, under the same
`id`: `respond` with a type and a payload, `forwards` with messages for others, or neither.

The sender repeats a message that it hears nothing of, and the repeat may reach another process that serves the same queue.
So the work is done in threads of its own, and the main thread sends `alive` meanwhile. The answer is one part, and nothing
stops the work, so this needs neither `credit`, `resend` nor `cancel`. docs/threads.md lists all frames.
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor

import pika

NAME = "shouter"
# Messages that are worked on at once. Others wait in this process, and count as at work.
AT_ONCE = 8
# Seconds until the first `alive`, and the longest pause between two: each pause is twice the one before.
FIRST_PAUSE, LONGEST_PAUSE = 0.3, 5


def returned(message):
    """What follows from a message. If it raises, the caller gets an error that does not say why. It may take long."""
    text = message["payload"].get("text", "")
    respond = {"type": "textinput", "payload": {"text": text.upper()}}
    return {"respond": respond, "end_of_stream": True}


def main(broker, workspace, flow):
    connection = pika.BlockingConnection(pika.URLParameters(broker))
    channel = connection.channel()
    exchange = f"nt.request.listener.{NAME}:{workspace}:{flow}"
    queue = f"{exchange}.{NAME}"
    channel.exchange_declare(exchange, "fanout")
    # RabbitMQ refuses queues that are neither durable nor exclusive since 4.3.
    channel.queue_declare(queue, durable=True, auto_delete=True, arguments={"x-expires": 10_000})
    channel.queue_bind(queue, exchange, queue)
    # Senders see by it that this process lives. Nobody reads what comes there, so no more than one message waits.
    inbox = channel.queue_declare("", exclusive=True, arguments={"x-max-length": 1}).method.queue
    workers = ThreadPoolExecutor(AT_ONCE)
    # The headers of each message that has no answer yet, by its id. Only the main thread uses this, and the channel.
    at_work = {}

    def publish(headers, frame, body=""):
        about = {"id": headers["id"], "from": inbox, **frame}
        properties = pika.BasicProperties(content_type="application/json", headers=about)
        channel.basic_publish("", headers["reply-to"], body.encode(), properties)

    def alive(id):
        # The next part is number 0: none was sent yet.
        publish(at_work[id], {"frame": "alive", "seq": "0"})

    def keep_alive(id, pause=FIRST_PAUSE):
        def again():
            if id in at_work:
                alive(id)
                keep_alive(id, min(2 * pause, LONGEST_PAUSE))

        connection.call_later(pause, again)

    def work(id, body):
        try:
            answer = json.dumps(returned(json.loads(body)))
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            answer = json.dumps({"error": {"type": "internal", "message": "failed"}, "end_of_stream": True})
        # pika takes nothing else from another thread.
        connection.add_callback_threadsafe(lambda: finish(id, answer))

    def finish(id, answer):
        # The only part, and so the last: number 0.
        publish(at_work.pop(id), {"frame": "last", "seq": "0"}, answer)

    def on_message(channel, method, properties, body):
        headers = properties.headers or {}
        channel.basic_ack(method.delivery_tag)
        if headers.get("frame") != "ask" or "id" not in headers or "reply-to" not in headers:
            return
        # The sender has the beginning of an answer, which another process sent: only that one knows how it goes on.
        if int(headers.get("seq", 0)) > 0:
            error = {"type": "interrupted", "message": "the answer was interrupted; please ask again"}
            publish(headers, {"frame": "refuse"}, json.dumps(error))
            return
        id, is_repeat = headers["id"], headers["id"] in at_work
        at_work[id] = headers
        if is_repeat:
            alive(id)
            return
        workers.submit(work, id, body)
        keep_alive(id)

    channel.basic_consume(queue, on_message)
    print(f"{NAME} listens", flush=True)
    channel.start_consuming()


if __name__ == "__main__":
    main(*sys.argv[1:])
