"""A listener that is an agent: it passes a greeting on to whom the text names, and answers with what the system said of that.

    python3 forwarder.py amqp://guest:guest@localhost:5672/%2F default default

All but what it returns is that of `examples/shouter.py`.
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))

import shouter


def returned(message):
    """What is said to it goes to whom the text names; what the system says of that goes back."""
    payload = message["payload"]
    if message["from_id"] == "system":
        respond = {"type": "textinput", "payload": {"text": payload["message"]}}
        return {"respond": respond, "end_of_stream": True}
    forward = {"to": payload["text"], "type": "textinput", "payload": {"text": "hi"}}
    return {"forwards": [forward], "end_of_stream": True}


if __name__ == "__main__":
    shouter.NAME, shouter.returned = "forwarder", returned
    shouter.main(*sys.argv[1:])
