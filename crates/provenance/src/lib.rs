//! Turns what an agent did into PROV-O triples.
