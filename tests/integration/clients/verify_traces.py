"""Verifies traces by docs/traces.md alone: N-Quads, a head file and a public key; nothing of the product is used.

    verify_traces.py COLLECTION QUADS... -- HEAD KEY

Prints JSON: {"runs": {IRI: null or what is wrong}, "head": null or what is wrong}. Ed25519 is that of RFC 8032.
"""

import base64
import hashlib
import json
import re
import sys

NS = "https://trustgraph.ai/ns/"
GRAPH = "<urn:graph:retrieval>"
PARTS = [f"<{NS}{name}>" for name in ("selectedEdge", "selectedChunk", "citation")]


# --- N-Quads, read and written in the canonical form ---------------------------------------------

ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\", "'": "'"}
SHOWN = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
STRING = "http://www.w3.org/2001/XMLSchema#string"


def unescaped(text):
    def one(match):
        if match[1]:
            return chr(int(match[1], 16))
        if match[2]:
            return chr(int(match[2], 16))
        return ESCAPES[match[3]]

    return re.sub(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", one, text)


def shown(text):
    def one(character):
        if character in SHOWN:
            return SHOWN[character]
        if ord(character) < 0x20 or character in "\x7f\ufffe\uffff":
            return "\\u%04X" % ord(character)
        return character

    return "".join(map(one, text))


TOKEN = re.compile(
    r'\s*(?:(?P<open><<\(?)|(?P<close>\)?>>)|<(?P<iri>[^>]*)>|(?P<blank>_:[^\s<>"]*[^\s<>".])|'
    r'"(?P<text>(?:[^"\\]|\\.)*)"(?:@(?P<tag>[A-Za-z0-9-]+)|\^\^<(?P<type>[^>]*)>)?)'
)


def term(line, at):
    match = TOKEN.match(line, at)
    if not match:
        raise ValueError(f"no term at {at}: {line}")
    if match["open"]:
        terms, at = [], match.end()
        for _ in range(3):
            one, at = term(line, at)
            terms.append(one)
        close = TOKEN.match(line, at)
        if not close or not close["close"]:
            raise ValueError(f"a quoted triple that does not end: {line}")
        return "<<( " + " ".join(terms) + " )>>", close.end()
    if match["iri"] is not None:
        return f"<{unescaped(match['iri'])}>", match.end()
    if match["blank"]:
        return match["blank"], match.end()
    end = ""
    if match["tag"]:
        end = "@" + match["tag"].lower()
    elif match["type"] and match["type"] != STRING:
        end = f"^^<{match['type']}>"
    return f'"{shown(unescaped(match["text"]))}"{end}', match.end()


def statements(files):
    """Subject to a set of (predicate, object), all as they are written."""
    said = {}
    for file in files:
        with open(file, encoding="utf-8", newline="\n") as quads:
            for line in quads:
                if not line.strip():
                    continue
                terms, at = [], 0
                while line[at:].strip() != ".":
                    one, at = term(line, at)
                    terms.append(one)
                if len(terms) == 4 and terms[3] == GRAPH:
                    said.setdefault(terms[0], set()).add((terms[1], terms[2]))
    return said


# --- Chains ---------------------------------------------------------------------------------------


def objects(said, subject, name):
    predicate = f"<{NS}{name}>"
    return sorted(o for p, o in said.get(subject, ()) if p == predicate)


def literals(said, subject, name):
    return [text[1:-1] for text in objects(said, subject, name)]


def parts(said, subject):
    return {o for p, o in said[subject] if p in PARTS and o in said}


def entity_hash(said, subject):
    left_out = (f"<{NS}entityHash>", f"<{NS}document>")
    lines = {f"{subject} {p} {o} .\n" for p, o in said[subject] if p not in left_out}
    for part in parts(said, subject):
        lines |= {f"{part} {p} {o} .\n" for p, o in said[part]}
    lines = sorted(line.encode() for line in lines)
    return hashlib.sha256(b"".join(lines)).hexdigest()


def wrong(said, run, signed):
    """What is wrong with the chain of a run, or None."""
    by_hash = {h: s for s in said for h in literals(said, s, "entityHash")}
    root, end = f"<{run}>", f"<{run}/final>"
    if signed is not None and literals(said, end, "entityHash") != [signed]:
        return f"{end} does not have the hash that was signed"
    seen, todo, ends = set(), [end], []
    while todo:
        entity = todo.pop()
        if entity in seen:
            continue
        seen.add(entity)
        if entity not in said:
            return f"{entity} is missing"
        if literals(said, entity, "entityHash") != [entity_hash(said, entity)]:
            return f"{entity} was changed"
        before = literals(said, entity, "previousHash")
        if not before:
            ends.append(entity)
        for previous in before:
            if previous not in by_hash:
                return f"what comes before {entity} is missing"
            todo.append(by_hash[previous])
    if root not in ends:
        return f"{root} is missing"
    inner = {part for entity in seen for part in parts(said, entity)}
    name = run.rsplit(":", 1)[1]
    for entity in said:
        if name in re.split("[:/<>]", entity) and entity not in seen | inner:
            return f"{entity} is not of the chain"
    return None


# --- Ed25519 (RFC 8032, section 5.1) --------------------------------------------------------------

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def recovered(y, sign):
    if y >= P:
        raise ValueError("not a point")
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P:
        raise ValueError("not a point")
    return P - x if x % 2 != sign else x


def point(data):
    number = int.from_bytes(data, "little")
    y, sign = number & (2**255 - 1), number >> 255
    x = recovered(y, sign)
    return (x, y, 1, x * y % P)


def added(a, b):
    e = (a[1] - a[0]) * (b[1] - b[0]) % P
    f = (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, h, i, j = f - e, f + e, h - g, h + g
    return (e * i % P, j * h % P, i * j % P, e * h % P)


def times(number, base):
    result = (0, 1, 1, 0)
    while number:
        if number & 1:
            result = added(result, base)
        base = added(base, base)
        number >>= 1
    return result


def same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


Y = 4 * pow(5, P - 2, P) % P
BASE = (recovered(Y, 0), Y, 1, recovered(Y, 0) * Y % P)


def is_signed(key, message, signature):
    if len(key) != 32 or len(signature) != 64:
        return False
    s = int.from_bytes(signature[32:], "little")
    if s >= L:
        return False
    try:
        a, r = point(key), point(signature[:32])
    except ValueError:
        return False
    digest = hashlib.sha512(signature[:32] + key + message).digest()
    k = int.from_bytes(digest, "little") % L
    return same(times(s, BASE), added(r, times(k, a)))


# --- Heads ----------------------------------------------------------------------------------------


def head_wrong(file, pem):
    """What is wrong with a head file, or None."""
    body = "".join(line for line in pem.splitlines() if not line.startswith("-"))
    key = base64.b64decode(body)[-32:]
    text = file["head"].encode()
    fields = dict(line.split(": ", 1) for line in file["head"].splitlines()[1:])
    if not file["head"].startswith("threadgraph trace head 1\n"):
        return "no head"
    if fields["key"] != hashlib.sha256(key).hexdigest()[:16]:
        return "signed by another key"
    if not is_signed(key, text, base64.b64decode(file["signature"])):
        return "the signature is wrong"
    lines = [f"{run['hash']} {run['run']} {run['collection']}\n" for run in file["runs"]]
    if int(fields["runs"]) != len(lines):
        return "not all runs"
    if fields["root"] != hashlib.sha256("".join(lines).encode()).hexdigest():
        return "other runs"
    return None


def main():
    split = sys.argv.index("--")
    collection, files = sys.argv[1], sys.argv[2:split]
    with open(sys.argv[split + 1], encoding="utf-8") as file:
        head = json.load(file)
    with open(sys.argv[split + 2], encoding="utf-8") as file:
        pem = file.read()
    said = statements(files)
    runs = {
        run["run"]: wrong(said, run["run"], run["hash"])
        for run in head["runs"]
        if run["collection"] == collection
    }
    print(json.dumps({"runs": runs, "head": head_wrong(head, pem)}))


main()
