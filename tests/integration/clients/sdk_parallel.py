"""Sends requests side by side on one socket of the official SDK, unmodified, and prints what became of each kind.

Arguments: URL of the gateway, workspace, how many requests.
"""

import asyncio
import collections
import json
import sys

from trustgraph.api.async_socket_client import AsyncSocketClient

# For one request; longer than all of them need together.
PATIENCE = 80


async def completion(flow, nonce):
    return (await flow.text_completion("Be brief.", f"Say {nonce}")).text


async def agent(flow, nonce):
    return json.dumps(await flow.agent(f"What is it? {nonce}"))


async def embeddings(flow, nonce):
    vectors = (await flow.embeddings([nonce])).get("vectors", [])
    return nonce if len(vectors) == 1 and vectors[0] else "no vector"


async def triples(flow, nonce):
    found = await flow.triples_query(p="urn:p", limit=10)
    return nonce if isinstance(found.get("response"), list) else json.dumps(found)


KINDS = [completion, agent, embeddings, triples]


async def main(url, workspace, count):
    seen = collections.Counter()
    wrong = []
    async with AsyncSocketClient(url, PATIENCE, None, workspace) as client:
        flow = client.flow("default")

        async def one(number):
            kind = KINDS[number % len(KINDS)]
            nonce = f"nonce-sdk-{number}-x"
            try:
                text = await asyncio.wait_for(kind(flow, nonce), PATIENCE)
            except Exception as error:
                wrong.append(f"{kind.__name__} {number}: {type(error).__name__} {error}")
                return
            if nonce in text:
                seen[kind.__name__] += 1
            else:
                wrong.append(f"{kind.__name__} {number}: {text}")

        await asyncio.gather(*(one(number) for number in range(count)))
    print(json.dumps({"answered": seen, "wrong": wrong}))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
