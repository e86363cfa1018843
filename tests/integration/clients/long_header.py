"""Publishes a message whose one header is long to a queue: URL BYTES QUEUE"""

import sys

import pika

url, size, queue = sys.argv[1:]
connection = pika.BlockingConnection(pika.URLParameters(url))
channel = connection.channel()
channel.confirm_delivery()
properties = pika.BasicProperties(headers={"x": "x" * int(size)}, delivery_mode=2)
channel.basic_publish("", queue, b"long", properties, mandatory=True)
connection.close()
