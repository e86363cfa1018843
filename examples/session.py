#!/usr/bin/env python3
"""A session with an agent: one turn that is waited for, one that is read as it comes, and what was said.

Usage: session.py URL [TOKEN]. Needs nothing but Python.
"""

import json
import sys
import urllib.request
import uuid

AGENT = "concise-de"
USER = "ann"

url = sys.argv[1].rstrip("/")
token = sys.argv[2] if len(sys.argv) > 2 else ""


def send(method, path, body=None):
    """Sends a request of the user. Whoever sends a message again under the same X-Request-Id gets the answer of the first time."""
    headers = {
        "Content-Type": "application/json",
        "SPASS-User-Id": USER,
        "X-Request-Id": str(uuid.uuid4()),
    }
    if token:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, headers, method=method)
    return urllib.request.urlopen(request, timeout=120)


def call(method, path, body=None):
    with send(method, path, body) as response:
        text = response.read()
    return json.loads(text) if text else None


def events(response):
    """The events of a stream: name and data."""
    name = ""
    for line in response:
        key, _, value = line.decode().rstrip("\n").partition(": ")
        if key == "event":
            name = value
        elif key == "data":
            yield name, json.loads(value)


sessions = f"/a1/agents/{AGENT}/sessions"
session = sessions + "/" + call("POST", sessions, {})["id"]

answer = call("POST", session + "/messages", {"message": "Was ist eine Laterne?"})
print(answer["content"])

with send("POST", session + "/messages/stream", {"message": "Und wozu braucht man sie?"}) as response:
    for name, data in events(response):
        if name == "token":
            print(data["delta"], end="", flush=True)
        elif name == "token-reset":
            # What came before a call of a tool was no answer.
            print()
        elif name == "error":
            sys.exit(f"the agent failed: {data}")
print()

said = call("GET", session + "/messages")["messages"]
print(len(said), "messages")
call("DELETE", session)
