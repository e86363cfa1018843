"""Bodies of messages through the released Python library, as its processors read and write them.

`bodies.py SCHEMAS samples` prints bodies of every message that both sides know: one with all fields that our schema
has, one with all that the dataclass has, one with none. `bodies.py SCHEMAS check` reads pairs of a body and of what
was made of it by being read and written over there, and prints what is lost or says something else.
"""

import dataclasses
import json
import pathlib
import sys
import types
import typing

import trustgraph.schema as schema
from trustgraph.base.serialization import dataclass_to_dict, dict_to_dataclass

TERM = {"type": "i", "iri": "urn:a"}
LITERAL = {"type": "l", "value": "v", "datatype": "urn:d"}


def of_avro(kind, known):
    """A value of an Avro schema with something in every field."""
    if isinstance(kind, list):
        return of_avro(kind[1], known)
    if isinstance(kind, dict):
        if kind["type"] == "array":
            return [of_avro(kind["items"], known)]
        if kind["type"] == "map":
            return {"key": of_avro(kind["values"], known)}
        if kind["type"] != "record":
            return of_avro(kind["type"], known)
        if kind["name"] == "Term":
            return TERM
        fields = {}
        for field in kind["fields"]:
            free = {"key": [1, None, {"text": "x"}]}
            fields[field["name"]] = free if field.get("free") else of_avro(field["type"], known)
        return fields
    plain = {"string": "text", "long": 7, "double": 0.5, "float": 0.5, "boolean": True}
    return plain[kind] if kind in plain else of_avro(known[kind.rsplit(".", 1)[-1]], known)


def records(kind):
    """Every record that is written out in a schema, by its name."""
    known = {}
    if isinstance(kind, list):
        for one in kind:
            known.update(records(one))
    elif isinstance(kind, dict):
        for inner in kind.values():
            known.update(records(inner))
        if kind.get("type") == "record":
            known[kind["name"]] = kind
    return known


def of_class(kind):
    """A value of a type as dataclasses name it, with something in every field."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        return of_class(next(one for one in typing.get_args(kind) if one is not type(None)))
    inner = typing.get_args(kind)
    if typing.get_origin(kind) is list:
        return [of_class(inner[0])]
    if typing.get_origin(kind) is dict:
        return {"key": of_class(inner[1])}
    if kind is schema.Term:
        return schema.Term(**LITERAL)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, localns=vars(schema))
        return kind(**{field.name: of_class(hints[field.name]) for field in dataclasses.fields(kind)})
    plain = {str: "theirs", int: 9, float: 0.25, bool: True, bytes: b"theirs", dict: {"key": "x"}, list: ["x"]}
    return plain.get(kind, "theirs")


def through(body, kind):
    """What a foreign processor writes of a body that it has read."""
    return json.loads(json.dumps(dataclass_to_dict(dict_to_dataclass(body, kind))))


def pruned(value):
    """Without what says nothing: whether a field that is empty is written is each side's own business."""
    if isinstance(value, dict):
        kept = {key: pruned(inner) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if inner not in (None, "", 0, False) and inner != [] and inner != {}}
    return [pruned(inner) for inner in value] if isinstance(value, list) else value


def differ(body, read, at):
    """What a reader does not see of a body. Fields that its class does not have are our additions."""
    if dataclasses.is_dataclass(read):
        names = {field.name for field in dataclasses.fields(read)}
        # A term says only what its kind has.
        lacking = set() if isinstance(read, (schema.Term, schema.Triple)) else names - body.keys()
        yield from (f"{at}.{name}: is not written here" for name in sorted(lacking))
        for name in sorted(names & body.keys()):
            yield from differ(body[name], getattr(read, name), f"{at}.{name}")
    elif isinstance(read, list) and isinstance(body, list) and len(read) == len(body):
        for one, other in zip(body, read):
            yield from differ(one, other, f"{at}[]")
    elif isinstance(read, dict) and isinstance(body, dict) and read.keys() == body.keys():
        for key in body:
            yield from differ(body[key], read[key], f"{at}.{key}")
    elif body != (read.decode() if isinstance(read, bytes) else read):
        yield f"{at}: {body!r} is read as {read!r}"


def classes(folder):
    """Names of our messages, each with the dataclass of that name if there is one."""
    for path in sorted(folder.glob("*.avsc")):
        kind = getattr(schema, path.stem, None)
        yield path, kind if dataclasses.is_dataclass(kind) else None


def samples(folder):
    bodies, ours = {}, []
    for path, kind in classes(folder):
        if kind is None:
            ours.append(path.stem)
            continue
        written = json.loads(path.read_text())
        full = of_avro(written, records(written))
        bodies[path.stem] = [full, through(dataclass_to_dict(of_class(kind)), kind), through({}, kind)]
    return {"bodies": bodies, "ours": ours}


def check(pairs):
    faults = []
    for name, made in pairs.items():
        kind = getattr(schema, name)
        for at, (sent, came) in enumerate(made):
            if at == 0:
                faults.extend(differ(came, dict_to_dataclass(came, kind), name))
            before, after = pruned(through(sent, kind)), pruned(through(came, kind))
            if before != after:
                faults.append(f"{name}: of {before} came {after}")
    return faults


if __name__ == "__main__":
    where, what = pathlib.Path(sys.argv[1]), sys.argv[2]
    json.dump(samples(where) if what == "samples" else check(json.load(sys.stdin)), sys.stdout)
