//! Triples in, and asked for in every way; vectors and ranks; collections; rows.

use super::step::{Step, run};

pub(super) const STEPS: &[Step] = &[
    run(&[
        "tg-set-collection",
        "g1",
        "-n",
        "Graph one",
        "-d",
        "by hand",
        "-t",
        "tagged",
    ])
    .says(&[
        "Collection 'g1' set successfully.",
        "| Collection  | g1 ",
        "| Name        | Graph one ",
        "| Tags        | tagged ",
    ]),
    run(&["tg-list-collections"]).says(&["| default    | Default ", "| g1 "]),
    run(&["tg-list-collections", "-t", "tagged"])
        .says(&["Graph one"])
        .lacks(&["| default"]),
    run(&["tg-list-collections", "-t", "other"]).exactly("No collections found."),
    // Turtle, with a node that has no name: it is one node, and another one after another load.
    run(&[
        "tg-load-turtle",
        "-i",
        "urn:load:1",
        "-C",
        "g1",
        "{dir}g.ttl",
    ])
    .says(&[
        "Loading triples...",
        "Processing {dir}g.ttl...",
        "Triples loaded.",
        "File loaded.",
    ])
    .lacks(&["retry"]),
    run(&["tg-query-graph", "-s", "urn:e:a", "-C", "g1"])
        .says(&[
            "urn:e:a urn:p:name \"café\"@fr",
            "urn:e:a urn:p:height \"324\"^^http://www.w3.org/2001/XMLSchema#integer",
            "urn:e:a urn:p:part n",
        ])
        .until(),
    run(&[
        "tg-query-graph",
        "-p",
        "urn:p:part",
        "-C",
        "g1",
        "--format",
        "json",
    ])
    .keeps(&[("node", "/0/o/i")]),
    run(&["tg-query-graph", "-s", "<{node}>", "-C", "g1"]).exactly("{node} urn:p:name \"inner\""),
    run(&[
        "tg-query-graph",
        "-o",
        "<{node}>",
        "--object-type",
        "iri",
        "-C",
        "g1",
    ])
    .exactly("urn:e:a urn:p:part {node}"),
    run(&[
        "tg-query-graph",
        "-o",
        "324",
        "--object-datatype",
        "http://www.w3.org/2001/XMLSchema#integer",
        "-C",
        "g1",
        "--format",
        "pipe",
        "-H",
    ])
    .says(&["subject|predicate|object", "urn:e:a|urn:p:height|"]),
    run(&[
        "tg-query-graph",
        "-o",
        "café",
        "--object-language",
        "fr",
        "-C",
        "g1",
    ])
    .says(&["urn:e:a urn:p:name"]),
    run(&[
        "tg-query-graph",
        "-C",
        "g1",
        "-l",
        "2",
        "--format",
        "pipe",
        "-H",
    ])
    .says(&["subject|predicate|object"]),
    run(&["tg-query-graph", "-s", "urn:e:none", "-C", "g1"]).silent(),
    run(&["tg-query-graph", "-s", "urn:e:a", "-f", "nothing"])
        .exits(1)
        .silent()
        .tells(&["Exception: Invalid flow default/nothing"]),
    run(&["tg-show-graph", "-C", "g1"])
        .says(&["urn:e:a urn:p:name café", "urn:e:a urn:p:part {node}"]),
    // It reads types and languages by other names than they have, and loses them.
    run(&["tg-graph-to-turtle", "-C", "g1"])
        .says(&[
            "<urn:e:a> ns1:height \"324\" ;",
            "ns1:name \"café\" ;",
            "ns1:name \"inner\"",
        ])
        .lacks(&["@fr", "XMLSchema#integer"]),
    run(&[
        "tg-invoke-sparql-query",
        "-C",
        "g1",
        "-q",
        "SELECT ?n WHERE { <urn:e:a> <urn:p:part> ?b . ?b <urn:p:name> ?n FILTER(isBlank(?b)) }",
    ])
    .says(&["inner"]),
    run(&[
        "tg-invoke-sparql-query",
        "-C",
        "g1",
        "-q",
        "SELECT ?b WHERE { <urn:e:a> <urn:p:part> ?b }",
    ])
    .says(&["{node}"]),
    run(&[
        "tg-invoke-sparql-query",
        "-C",
        "g1",
        "-q",
        "ASK { <urn:e:a> <urn:p:height> 324 }",
    ])
    .exactly("true"),
    run(&[
        "tg-invoke-sparql-query",
        "-C",
        "g1",
        "-q",
        "CONSTRUCT WHERE { <urn:e:a> <urn:p:name> ?o }",
    ])
    .says(&["<urn:e:a> <urn:p:name> \"café\""]),
    run(&["tg-invoke-sparql-query", "-C", "g1", "-q", "nonsense"])
        .exits(1)
        .silent()
        .tells(&["Exception: error at 1:1: no query begins with nonsense"]),
    run(&[
        "tg-load-turtle",
        "-i",
        "urn:load:2",
        "-C",
        "g1",
        "{dir}g.ttl",
    ])
    .says(&["File loaded."]),
    run(&[
        "tg-invoke-sparql-query",
        "-C",
        "g1",
        "-q",
        "SELECT (COUNT(?b) AS ?n) WHERE { <urn:e:a> <urn:p:part> ?b . ?b <urn:p:name> \"inner\" }",
    ])
    .says(&["2"])
    .until(),
    // Turtle and TriG with what is known of the entities.
    run(&[
        "tg-load-knowledge",
        "-i",
        "urn:load:3",
        "-C",
        "g2",
        "-F",
        "trig",
        "{dir}g.trig",
    ])
    .says(&[
        "Loaded 4 triples",
        "Triples loaded. Total: 4",
        "Loaded 2 entity contexts",
        "Triples and entity contexts loaded.",
    ]),
    run(&[
        "tg-load-knowledge",
        "-i",
        "urn:load:4",
        "-C",
        "g2",
        "-g",
        "urn:g:policy",
        "{dir}g.ttl",
    ])
    .says(&[
        "Triples loaded. Total: 5",
        "Triples and entity contexts loaded.",
    ]),
    run(&["tg-show-graph", "-C", "g2", "--show-graph"])
        .says(&[
            "[urn:g:policy] urn:e:a urn:p:part n",
            "[(default)] urn:e:c urn:p:name see",
            "[urn:g:one] urn:e:c urn:p:in urn:e:d",
            "urn:p:name blank",
        ])
        .until(),
    run(&[
        "tg-query-graph",
        "-C",
        "g2",
        "-g",
        "urn:g:one",
        "-s",
        "urn:e:c",
    ])
    .says(&["urn:e:c urn:p:in urn:e:d"])
    .lacks(&["see"]),
    run(&["tg-show-graph", "-C", "g2", "-g", ""]).exactly("urn:e:c urn:p:name see"),
    // Vectors and ranks.
    run(&["tg-invoke-embeddings", "hello", "world"]).says(&["Text 1: [", "Text 2: ["]),
    run(&["tg-invoke-graph-embeddings", "Bee", "-c", "g2", "-l", "1"])
        .exactly("1. urn:e:b (score: 1.0000)")
        .until(),
    run(&[
        "tg-invoke-graph-embeddings",
        "Bee",
        "-c",
        "g2",
        "--rdf-type",
        "urn:t:None",
    ])
    .lacks(&["urn:e:b"]),
    run(&[
        "tg-invoke-reranker",
        "-q",
        "blue glass",
        "--",
        "green cheese",
        "blue glass lamp",
    ])
    .says(&[
        "| query: blue glass | doc: blue glass lamp",
        "  0.0000 | query: blue glass | doc: green cheese",
    ]),
    run(&["tg-delete-collection", "g1", "-y"]).exactly("Collection 'g1' deleted successfully."),
    run(&["tg-list-collections"]).lacks(&["Graph one"]),
    run(&["tg-query-graph", "-s", "urn:e:a", "-C", "g1"]).silent(),
    // Rows.
    run(&[
        "tg-put-config-item",
        "--type",
        "schema",
        "--key",
        "lamps",
        "--value",
        "{schema}",
    ])
    .exactly("Configuration item set: schema/lamps"),
    run(&[
        "tg-load-structured-data",
        "-i",
        "{dir}rows.csv",
        "-d",
        "{dir}rows.json",
        "--parse-only",
    ])
    .says(&[
        "Record 1:",
        "\"schema_name\": \"lamps\"",
        "\"maker\": \"Frask\"",
        "Record 2:",
    ]),
    run(&[
        "tg-load-structured-data",
        "-i",
        "{dir}rows.csv",
        "-d",
        "{dir}rows.json",
        "--load",
        "--collection",
        "r1",
    ])
    .says(&[
        "- Successfully imported: 2",
        "Load Complete!",
        "- Records imported: 2",
    ]),
    run(&[
        "tg-load-structured-data",
        "-i",
        "{dir}rows.csv",
        "--discover-schema",
    ])
    .says(&["Best matching schema: lamps"]),
    run(&[
        "tg-load-structured-data",
        "-i",
        "{dir}rows.csv",
        "--generate-descriptor",
        "--schema-name",
        "lamps",
    ])
    .says(&[
        "Generated Descriptor:",
        "\"target_field\": \"maker\"",
        "\"type\": \"to_int\"",
    ]),
    run(&[
        "tg-load-structured-data",
        "-i",
        "{dir}rows.csv",
        "--auto",
        "--collection",
        "r2",
    ])
    .says(&[
        "Auto-selected schema: lamps",
        "- Successfully imported: 2",
        "Auto-Import Complete!",
    ]),
    run(&[
        "tg-invoke-rows-query",
        "-q",
        "{ lamps { id maker height } }",
        "-C",
        "r1",
        "--format",
        "csv",
    ])
    .says(&["id,maker,height", "1,Frask,12.5", "2,Bell,3.0"])
    .until(),
    run(&[
        "tg-invoke-rows-query",
        "-q",
        "{ lamps { id maker height } }",
        "-C",
        "r2",
    ])
    .says(&[
        "| id | maker | height |",
        "| 1  | Frask |  12.5  |",
        "| 2  | Bell  |  3.0   |",
    ])
    .until(),
    run(&[
        "tg-invoke-rows-query",
        "-q",
        "query q($m: String) { lamps(where: {maker: {eq: $m}}) { id } }",
        "-v",
        r#"{"m": "Bell"}"#,
        "-o",
        "q",
        "-C",
        "r1",
        "--format",
        "json",
    ])
    .says(&["\"id\": 2"])
    .lacks(&["\"id\": 1"]),
    run(&[
        "tg-invoke-rows-query",
        "-q",
        "{ nothing { id } }",
        "-C",
        "r1",
    ])
    .exits(1)
    .tells(&["Unknown field \"nothing\" on type \"Query\"."]),
    run(&[
        "tg-invoke-row-embeddings",
        "Frask",
        "-s",
        "lamps",
        "-c",
        "r1",
        "-l",
        "1",
    ])
    .says(&["Index: maker", "Values: ['Frask']", "Score: 1.0000"])
    .lacks(&["Bell"])
    .until(),
    run(&[
        "tg-invoke-nlp-query",
        "-q",
        "Which lamps has the maker Frask?",
    ])
    .says(&[
        "Generated GraphQL Query:",
        "lamps {",
        "Detected Schemas: lamps",
        "Confidence: ",
    ]),
    run(&[
        "tg-invoke-structured-query",
        "-q",
        "lamps with maker Frask",
        "--collection",
        "r1",
    ])
    .says(&["| id | maker | height |", "| Frask |  12.5  |"]),
];
