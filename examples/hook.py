"""A hook of tools in Python, over plain AMQP: it forbids calls that reach for what they should not, mends arguments, and
blackens numbers of cards in what tools return.

    python3 hook.py amqp://guest:guest@localhost:5672/%2F default default

The arguments are the broker, the workspace and the flow, whose blueprint names the queue in the row of `agent-manager`:
`"tool-hook-request": "request:tg:tool-hook:{workspace}:{id}"`. It needs pika, and nothing of ours.

It is asked before each call of a tool and told what the tool returned: a JSON object with `when` (`before` or `after`),
`tool`, `kind`, `arguments` (a JSON object in text), `text`, `run`, `step`, `collection` and `user`. It answers with a
`decision`: `allow`, `replace` with other `arguments` or another `text`, or `deny` with a `reason` for the model. Whoever
fails, or answers too late, denies.
"""

import json
import re
import sys

import pika

NAME = "tool-hook"
FORBIDDEN = re.compile(r"/etc/|\bpasswords?\b", re.IGNORECASE)
CARD = re.compile(r"\b\d{4}([ -]?)\d{4}\1\d{4}\1(\d{4})\b")
MOST_ROWS = 100


def decided(asked):
    """What follows from a question."""
    if asked["when"] == "after":
        text = CARD.sub(r"**** **** **** \2", asked["text"])
        return {"decision": "allow"} if text == asked["text"] else {"decision": "replace", "text": text}
    if FORBIDDEN.search(asked["arguments"]):
        return {"decision": "deny", "reason": f"{asked['tool']} may not be asked for that"}
    arguments = json.loads(asked["arguments"] or "{}")
    limit = arguments.get("limit")
    if isinstance(limit, int) and limit > MOST_ROWS:
        return {"decision": "replace", "arguments": json.dumps({**arguments, "limit": MOST_ROWS})}
    return {"decision": "allow"}


def main(broker, workspace, flow):
    channel = pika.BlockingConnection(pika.URLParameters(broker)).channel()
    exchange = f"nt.request.{NAME}:{workspace}:{flow}"
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
        try:
            answer = decided(json.loads(body))
        except Exception as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            answer = {"decision": "deny", "reason": "the hook failed"}
        # The only part, and so the last: number 0. The same question is answered in the same words, so again is as good.
        publish(headers, {"frame": "last", "seq": "0"}, answer)

    channel.basic_consume(queue, on_message)
    print(f"{NAME} listens", flush=True)
    channel.start_consuming()


if __name__ == "__main__":
    main(*sys.argv[1:])
