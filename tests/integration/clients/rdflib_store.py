"""What rdflib's SPARQL store, unmodified, reads of a collection. Arguments: the endpoint and a key; prints JSON."""

import json
import sys
import urllib.error

from rdflib import Graph, Literal, URIRef
from rdflib.namespace import RDFS
from rdflib.plugins.stores.sparqlstore import SPARQLStore, SPARQLUpdateStore

endpoint, key = sys.argv[1:3]
HEADERS = {"Authorization": f"Bearer {key}"}
WREN = URIRef("http://example.org/wren")
GRAPH = URIRef("http://example.org/notes")


def store(**more):
    return SPARQLStore(endpoint, headers=dict(HEADERS), **more)


told = {}
graph = Graph(store())
told["label"] = [str(label) for label in graph.objects(WREN, RDFS.label)]
told["languages"] = [label.language for label in graph.objects(WREN, RDFS.label)]
told["weight"] = [weight.toPython() for weight in graph.objects(WREN, URIRef("http://example.org/grams"))]
told["size"] = len(graph)
told["has"] = (WREN, RDFS.label, Literal("Zaunkönig", lang="de")) in graph
told["has_not"] = (WREN, RDFS.label, Literal("Wren", lang="de")) in graph
told["subjects"] = sorted(str(subject) for subject in set(graph.subjects()))

SELECT = "SELECT ?label WHERE { ?bird rdfs:label ?label } ORDER BY ?label"
ASK = "ASK { <http://example.org/wren> ?p ?o }"
CONSTRUCT = "CONSTRUCT { ?s <urn:is> ?o } WHERE { ?s rdfs:label ?o }"
for method in ("GET", "POST", "POST_FORM"):
    for syntax in ("xml", "json", "csv", "tsv"):
        rows = Graph(store(method=method, returnFormat=syntax)).query(SELECT, initNs={"rdfs": RDFS})
        told[f"select {method} {syntax}"] = [str(row[0]) for row in rows]
    for syntax in ("xml", "json"):
        told[f"ask {method} {syntax}"] = bool(Graph(store(method=method, returnFormat=syntax)).query(ASK))
    for syntax in ("xml", "application/rdf+xml", "text/turtle"):
        built = Graph(store(method=method, returnFormat=syntax)).query(CONSTRUCT, initNs={"rdfs": RDFS})
        told[f"construct {method} {syntax}"] = sorted(str(triple[2]) for triple in built.graph)

# A named graph is asked for by default-graph-uri.
told["named"] = [str(value) for value in Graph(store(), identifier=GRAPH).objects(WREN, None)]
told["contexts"] = sorted(str(one) for one in store().contexts())

bound = graph.query("SELECT ?label WHERE { ?bird ?p ?label }", initBindings={"bird": WREN, "p": RDFS.label})
told["bound"] = len(bound)


def refused(work):
    try:
        return f"answered: {work()}"
    except urllib.error.HTTPError as error:
        return error.code
    except ValueError:
        return "refused"


told["broken"] = refused(lambda: len(graph.query("SELECT")))
writing = SPARQLUpdateStore(endpoint, endpoint, headers=dict(HEADERS), autocommit=True)
told["update"] = refused(lambda: Graph(writing, identifier=GRAPH).add((WREN, RDFS.label, Literal("x"))))
told["without a key"] = refused(lambda: len(Graph(SPARQLStore(endpoint))))
json.dump(told, sys.stdout)
