"""Publishes a message whose headers nest deeply to each of some queues: URL DEPTH QUEUE..."""

import sys
import threading

import pika
import pika.exceptions

sys.setrecursionlimit(100_000)
threading.stack_size(512 << 20)


def publish():
    url, depth, *queues = sys.argv[1:]
    value = []
    for _ in range(int(depth)):
        value = [value]
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.confirm_delivery()
    properties = pika.BasicProperties(headers={"x": value})
    for queue in queues:
        try:
            channel.basic_publish("", queue, b"{}", properties, mandatory=True)
        except pika.exceptions.UnroutableError as error:
            raise LookupError(f"{queue} is gone") from error
    connection.close()
    print(len(queues))


worker = threading.Thread(target=publish)
worker.start()
worker.join()
