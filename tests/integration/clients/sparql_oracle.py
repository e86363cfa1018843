"""Answers SPARQL queries with pyoxigraph, for a test that compares them with ours.

Reads one JSON object with `quads` and `queries` from standard input, writes a list with one object per query:
`rows` and `variables`, `ask`, `triples` or `error`. Terms have the form of the gateway's API.
"""

import json
import sys

import pyoxigraph as ox

STRING = "http://www.w3.org/2001/XMLSchema#string"
LANG_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"


def read(term):
    if term["t"] == "i":
        return ox.NamedNode(term["i"])
    if term["t"] == "b":
        return ox.BlankNode(term["d"])
    if term.get("ln"):
        return ox.Literal(term["v"], language=term["ln"])
    if term.get("dt"):
        return ox.Literal(term["v"], datatype=ox.NamedNode(term["dt"]))
    return ox.Literal(term["v"])


def write(term):
    if term is None:
        return None
    if isinstance(term, ox.NamedNode):
        return {"t": "i", "i": term.value}
    if isinstance(term, ox.BlankNode):
        return {"t": "b", "d": term.value}
    if isinstance(term, ox.Triple):
        return {"t": "t", "tr": triple(term)}
    told = {"t": "l", "v": term.value}
    if term.language:
        told["ln"] = term.language
    elif term.datatype.value not in (STRING, LANG_STRING):
        told["dt"] = term.datatype.value
    return told


def triple(one):
    return {"s": write(one.subject), "p": write(one.predicate), "o": write(one.object)}


def answer(store, query):
    try:
        found = store.query(query)
        if isinstance(found, ox.QueryBoolean):
            return {"ask": bool(found)}
        if isinstance(found, ox.QueryTriples):
            return {"triples": [triple(one) for one in found]}
        names = [variable.value for variable in found.variables]
        rows = [[write(row[name]) for name in names] for row in found]
        return {"variables": names, "rows": rows}
    except (SyntaxError, ValueError, RuntimeError, OSError) as error:
        return {"error": str(error)}


def main():
    asked = json.load(sys.stdin)
    store = ox.Store()
    for quad in asked["quads"]:
        graph = ox.NamedNode(quad["g"]) if quad.get("g") else ox.DefaultGraph()
        store.add(ox.Quad(read(quad["s"]), read(quad["p"]), read(quad["o"]), graph))
    json.dump([answer(store, query) for query in asked["queries"]], sys.stdout)


main()
