"""A tool service of the release over RabbitMQ: its example of one, on its base class, both unmodified.

The base names its queues as Pulsar does, `non-persistent://tg/request/NAME`, which the released adapter of RabbitMQ does not take.
Here the adapter is told that `request:tg:NAME` is meant.
"""

from trustgraph.base.async_rabbitmq_backend import AsyncRabbitMQBackend
from trustgraph.tool_service.joke import run

PULSAR = "non-persistent://tg/"
released = AsyncRabbitMQBackend._parse_topic


def parse(self, topic):
    if topic.startswith(PULSAR):
        kind, name = topic.removeprefix(PULSAR).split("/", 1)
        topic = f"{kind}:tg:{name}"
    return released(self, topic)


AsyncRabbitMQBackend._parse_topic = parse
run()
