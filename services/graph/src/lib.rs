//! RDF store, pattern queries and SPARQL.
