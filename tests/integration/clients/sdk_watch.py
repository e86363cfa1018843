"""What the programs that use the whole official SDK share: which of its public methods were used, and what was wrong."""

import inspect
import json
import time

from trustgraph.api import api, async_bulk_client, async_flow, async_metrics, async_socket_client, bulk_client
from trustgraph.api import collection, config, explainability, flow, knowledge, library, metrics, socket_client

CLASSES = [
    api.Api,
    flow.Flow,
    flow.FlowInstance,
    library.Library,
    knowledge.Knowledge,
    collection.Collection,
    config.Config,
    metrics.Metrics,
    socket_client.SocketClient,
    socket_client.SocketFlowInstance,
    explainability.ExplainabilityClient,
    bulk_client.BulkClient,
    async_flow.AsyncFlow,
    async_flow.AsyncFlowInstance,
    async_socket_client.AsyncSocketClient,
    async_socket_client.AsyncSocketFlowInstance,
    async_bulk_client.AsyncBulkClient,
    async_metrics.AsyncMetrics,
]

# What was accepted is stored by then.
PATIENCE = 60

used = set()
wrong = []


def methods():
    for kind in CLASSES:
        for name, method in vars(kind).items():
            if not name.startswith("_") and inspect.isfunction(method):
                yield kind, name, method


def watch():
    """Notes the use of every public method; what it does stays as it is."""

    def noted(key, method):
        def call(*args, **named):
            used.add(key)
            return method(*args, **named)

        return call

    for kind, name, method in list(methods()):
        setattr(kind, name, noted(f"{kind.__name__}.{name}", method))


def check(name, holds, seen):
    if not holds:
        wrong.append(f"{name}: {seen!r}"[:600])


def same(name, seen, wanted):
    check(name, seen == wanted, seen)


def fails(name, text, ask):
    """What is refused, or a method that cannot work, fails with this."""
    try:
        seen = ask()
    except Exception as error:
        check(name, text in f"{type(error).__name__}: {error}", error)
    else:
        wrong.append(f"{name} did not fail: {seen!r}"[:600])


async def fails_too(name, text, ask):
    try:
        seen = await ask
    except Exception as error:
        check(name, text in f"{type(error).__name__}: {error}", error)
    else:
        wrong.append(f"{name} did not fail: {seen!r}"[:600])


def until(name, ask, holds):
    """Asks until it is so, or for long enough."""
    end = time.monotonic() + PATIENCE
    while True:
        seen = ask()
        if holds(seen) or time.monotonic() > end:
            check(name, holds(seen), seen)
            return seen
        time.sleep(0.05)


def told(excused):
    """Prints what was wrong, and which methods were neither used nor excused; an excuse that nobody needs is wrong too."""
    all_methods = {f"{kind.__name__}.{name}" for kind, name, _ in methods()}
    unused = sorted(all_methods - used - set(excused))
    needless = sorted(set(excused) & used | set(excused) - all_methods)
    print(json.dumps({"wrong": wrong, "unused": unused, "needless": needless, "used": len(used)}))
