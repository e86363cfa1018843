"""A listener that takes longer than its sender waits for a first sign. It notes each message that it begins in the file BEGUN.

    BEGUN=FILE python3 slow.py amqp://guest:guest@localhost:5672/%2F default default

All but what it returns is that of `examples/shouter.py`.
"""

import os
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples"))

import shouter

# Long enough for two repeats of a message that nothing is heard of.
SECONDS = 4

shouts = shouter.returned


def returned(message):
    with open(os.environ["BEGUN"], "a") as begun:
        begun.write(message["payload"]["text"] + "\n")
    time.sleep(SECONDS)
    return shouts(message)


if __name__ == "__main__":
    shouter.NAME, shouter.returned = "slow", returned
    shouter.main(*sys.argv[1:])
