//! Documents, what becomes of them, answers with their traces, cores, and a whole workspace in a bundle.

use super::step::{Step, run};

const WHO_BUILT: &str = "Who built the Harrowgate lantern?";
const WHO_IS: &str = "Who is Ottoline Frask?";
const SUMS: &str = "What is 2 + 3? What is 6 + 7?";
const SPLIT: &str = "What is 4 + 5? What is 5 + 6?";
const SUNDAY: &str = "Which Sunday may visitors light the Harrowgate lantern?";

pub(super) const STEPS: &[Step] = &[
    run(&[
        "tg-add-library-document",
        "--id",
        "urn:doc:lantern",
        "--name",
        "Lantern",
        "--description",
        "about a lantern",
        "--tags",
        "lamps,glass",
        "-k",
        "text/plain",
        "{dir}lantern.txt",
    ])
    .exactly("{dir}lantern.txt: Loaded successfully."),
    run(&[
        "tg-add-library-document",
        "--id",
        "urn:doc:clocks",
        "--name",
        "Clocks",
        "-k",
        "application/pdf",
        "{pdf}",
    ])
    .exactly("{pdf}: Loaded successfully."),
    run(&[
        "tg-add-library-document",
        "--id",
        "urn:doc:clocks",
        "--name",
        "Clocks",
        "-k",
        "application/pdf",
        "{pdf}",
    ])
    .exactly("{pdf}: Loaded successfully."),
    run(&[
        "tg-add-library-document",
        "--id",
        "urn:doc:clocks",
        "--name",
        "Other clocks",
        "-k",
        "application/pdf",
        "{pdf}",
    ])
    .says(&["Failed: conflict: Document already exists"]),
    // From 2 MiB it goes in parts.
    run(&[
        "tg-add-library-document",
        "--id",
        "urn:doc:large",
        "--name",
        "Large",
        "-k",
        "text/plain",
        "{dir}large.txt",
    ])
    .says(&["{dir}large.txt: Loaded successfully."]),
    run(&["tg-show-library-documents"]).says(&[
        "| id    | urn:doc:lantern ",
        "| title | Lantern ",
        "| note  | about a lantern ",
        "| tags  | lamps, glass ",
        "| id    | urn:doc:clocks ",
        "| kind  | application/pdf ",
        "| id    | urn:doc:large ",
    ]),
    run(&["tg-get-document-content", "urn:doc:lantern"])
        .says(&["The Harrowgate lantern is a lamp made of blue glass."]),
    run(&[
        "tg-get-document-content",
        "urn:doc:large",
        "-o",
        "{dir}large.out",
    ])
    .says(&["Written 2500000 bytes to "]),
    run(&["tg-get-document-content", "urn:doc:none"]).says(&["Exception: 404 Client Error"]),
    run(&["tg-remove-library-document", "--id", "urn:doc:large"]).silent(),
    run(&["tg-remove-library-document", "--id", "urn:doc:large"])
        .says(&["Exception: ", "does not exist"]),
    run(&["tg-show-library-documents"]).lacks(&["urn:doc:large"]),
    // Processing.
    run(&[
        "tg-start-library-processing",
        "-d",
        "urn:doc:lantern",
        "--id",
        "p1",
        "-i",
        "default",
        "--collection",
        "docs",
        "--tags",
        "a,b",
    ])
    .silent(),
    run(&[
        "tg-start-library-processing",
        "-d",
        "urn:doc:clocks",
        "--id",
        "p2",
        "-i",
        "default",
        "--collection",
        "docs",
    ])
    .silent(),
    run(&[
        "tg-start-library-processing",
        "-d",
        "urn:doc:none",
        "--id",
        "p3",
        "-i",
        "default",
        "--collection",
        "docs",
    ])
    .exactly("Exception: not-found: Document does not exist"),
    run(&["tg-show-library-processing"]).says(&[
        "| id          | p1 ",
        "| document-id | urn:doc:lantern ",
        "| flow        | default ",
        "| collection  | docs ",
        "| tags        | a, b ",
        "| id          | p2 ",
    ]),
    // To the root: what the document is and is called, its pages, its chunks, the facts in them.
    run(&[
        "tg-show-extraction-provenance",
        "urn:doc:lantern",
        "-C",
        "docs",
        "--show-content",
    ])
    .says(&[
        "Document: urn:doc:lantern\n  Title: \"Lantern\"\n  Type: text/plain",
        "Content: \"The Harrowgate lantern is a lamp",
        "└── Chunk: ",
        "Edge: (ottoline-frask, was-a, glassblower)",
    ])
    .lacks(&["Unknown"])
    .until(),
    run(&[
        "tg-show-extraction-provenance",
        "urn:doc:clocks",
        "-C",
        "docs",
    ])
    .says(&[
        "Document: urn:doc:clocks\n  Title: \"Clocks\"\n  Type: application/pdf",
        "├── Page: Page 1",
        "└── Page: Page 3",
        "Edge: (",
    ])
    .lacks(&["Unknown"])
    .until(),
    run(&[
        "tg-show-extraction-provenance",
        "urn:doc:lantern",
        "-C",
        "docs",
        "--format",
        "json",
    ])
    .says(&[
        "\"type\": \"document\"",
        "\"title\": \"Lantern\"",
        "\"type\": \"chunk\"",
    ]),
    // Answers.
    run(&[
        "tg-invoke-document-embeddings",
        "blue glass lamp",
        "-c",
        "docs",
        "-l",
        "1",
    ])
    .says(&["1. urn:chunk:", "(score: 0."])
    .until(),
    run(&["tg-invoke-document-rag", "-q", WHO_BUILT, "-C", "docs"])
        .exactly("The Harrowgate lantern was built by Ottoline Frask in 1887 [1].")
        .until(),
    run(&[
        "tg-invoke-document-rag",
        "-q",
        WHO_BUILT,
        "-C",
        "docs",
        "--no-streaming",
    ])
    .exactly("The Harrowgate lantern was built by Ottoline Frask in 1887 [1]."),
    run(&[
        "tg-invoke-document-rag",
        "-q",
        WHO_BUILT,
        "-C",
        "docs",
        "-x",
    ])
    .says(&["was built by Ottoline Frask in 1887 [1]."])
    .tells(&[
        "[question] urn:trustgraph:docrag:",
        "[grounding]",
        "Concept: Harrowgate",
        "[exploration]",
        "[synthesis]",
    ]),
    run(&["tg-invoke-graph-rag", "-q", WHO_IS, "-C", "docs"])
        .says(&["glassblower from Pellworth [1]"])
        .tells(&["Sources:\n  - Lantern (urn:doc:lantern)"])
        .until(),
    // The command hands over an argument that the library does not take: nothing is ever asked.
    run(&[
        "tg-invoke-graph-rag",
        "-q",
        WHO_IS,
        "-C",
        "docs",
        "--no-streaming",
    ])
    .exactly("Exception: FlowInstance.graph_rag() got an unexpected keyword argument 'graph'"),
    run(&["tg-invoke-graph-rag", "-q", WHO_IS, "-C", "docs", "-x"])
        .says(&["glassblower from Pellworth [1]"])
        .tells(&[
            "[question] urn:trustgraph:question:",
            "[focus]",
            "Edge: (Ottoline Frask, was a, glassblower)",
            "[synthesis]",
        ]),
    run(&["tg-invoke-agent", "-q", WHO_IS, "-v"]).says(&[
        "❓ Who is Ottoline Frask?",
        "🤔",
        "💡",
        "I found nothing that answers this.",
    ]),
    run(&["tg-invoke-agent", "-q", SUNDAY]).exactly("I found nothing that answers this."),
    run(&["tg-invoke-agent", "-q", SUNDAY, "-C", "docs", "-x"])
        .says(&["Visitors may light it on the first Sunday of May [1]."])
        .tells(&[
            "[session] urn:trustgraph:agent:",
            "[analysis: document_query]",
            "[observation]",
            "[conclusion]",
        ]),
    run(&[
        "tg-invoke-agent",
        "-q",
        "6*7?",
        "--no-streaming",
        "-g",
        "none",
    ])
    .lacks(&["xception"]),
    // Patterns, and their traces.
    run(&["tg-invoke-agent", "-q", SUMS, "-p", "plan-then-execute"]).says(&["5", "13"]),
    run(&["tg-list-explain-traces", "--format", "json"])
        .says(&[SUMS])
        .keeps(&[("planned", "/0/id")])
        .until(),
    run(&["tg-show-explain-trace", "{planned}"])
        .says(&[
            "--- Plan ---",
            "Plan with 2 steps:",
            "--- Step Result ---",
            "Step: What is 6 + 7?",
            "--- Synthesis ---",
        ])
        .beside(&["show-explain-trace", "{planned}"])
        .until(),
    run(&["tg-invoke-agent", "-q", SPLIT, "-p", "supervisor"]).says(&["9", "11"]),
    run(&["tg-list-explain-traces", "--format", "json"])
        .says(&[SPLIT])
        .keeps(&[("split", "/0/id")])
        .until(),
    run(&["tg-show-explain-trace", "{split}"])
        .says(&[
            "--- Decomposition ---",
            "Decomposed into 2 research threads:",
            "--- Finding ---",
            "Goal: What is 4 + 5?",
            "Goal: What is 5 + 6?",
            "--- Synthesis ---",
        ])
        .beside(&["show-explain-trace", "{split}"])
        .until(),
    // Traces.
    run(&["tg-list-explain-traces", "-C", "docs"])
        .says(&[
            "Session ID",
            "  Agent  ",
            "  GraphRAG  ",
            "  DocRAG  ",
            WHO_IS,
        ])
        .until(),
    run(&["tg-list-explain-traces", "-C", "docs", "--format", "json"])
        .keeps(&[("agent", "/0/id"), ("graph", "/1/id")]),
    run(&["tg-show-explain-trace", "{agent}", "-C", "docs"]).says(&[
        "{agent}",
        SUNDAY,
        "document_query",
        "first Sunday of May",
    ]),
    run(&[
        "tg-show-explain-trace",
        "{graph}",
        "-C",
        "docs",
        "--show-provenance",
    ])
    .says(&[WHO_IS, "glassblower", "Lantern"]),
    run(&[
        "tg-show-explain-trace",
        "{graph}",
        "-C",
        "docs",
        "--format",
        "json",
    ])
    .says(&["\"question\"", "\"synthesis\""]),
    run(&[
        "tg-show-explain-trace",
        "urn:trustgraph:question:none",
        "-C",
        "docs",
    ])
    .says(&[
        "=== GraphRAG Session: Unknown ===",
        "No synthesis data found",
    ]),
    run(&["tg-stop-library-processing", "--id", "p2"]).silent(),
    run(&["tg-show-library-processing"])
        .says(&["| p1 "])
        .lacks(&["| p2 "]),
    // Cores.
    run(&["tg-show-kg-cores"])
        .says(&["urn:doc:lantern"])
        .until(),
    run(&["tg-get-kg-core", "--id", "urn:doc:lantern", "-o", "{dir}kg"])
        .says(&["Got: ", " GE, 2 library metadata, 2 library blob messages."])
        .until(),
    run(&["tg-get-kg-core", "--id", "urn:core:none", "-o", "{dir}none"])
        .says(&["Error: not-found: id: there is no such core"]),
    run(&["tg-dump-msgpack", "-i", "{dir}kg", "-r"]).says(&[
        "[\"t\", {",
        "[\"ge\", {",
        "[\"lm\", {",
        "[\"lb\", {",
    ]),
    // It looks for vectors where files of 2.11 have none.
    run(&["tg-dump-msgpack", "-i", "{dir}kg", "-s"])
        .exits(1)
        .tells(&["KeyError: 'v'"]),
    run(&["tg-put-kg-core", "--id", "urn:core:2", "-i", "{dir}kg"])
        .says(&["Put: ", " GE, 2 library metadata, 2 library blob messages."]),
    run(&["tg-show-kg-cores"]).says(&["urn:core:2"]),
    run(&[
        "tg-load-kg-core",
        "--id",
        "urn:core:2",
        "-f",
        "default",
        "-C",
        "cored",
    ])
    .silent(),
    run(&[
        "tg-query-graph",
        "-s",
        "http://trustgraph.ai/e/ottoline-frask",
        "-C",
        "cored",
    ])
    .says(&["http://trustgraph.ai/e/was-a http://trustgraph.ai/e/glassblower"]),
    run(&["tg-load-kg-core", "--id", "urn:core:2", "-f", "nothing"])
        .says(&["Exception: ", "there is no flow"]),
    run(&["tg-unload-kg-core", "--id", "urn:core:2", "-f", "default"]).silent(),
    run(&[
        "tg-query-graph",
        "-s",
        "http://trustgraph.ai/e/ottoline-frask",
        "-C",
        "cored",
    ])
    .silent(),
    run(&["tg-delete-kg-core", "--id", "urn:core:2"]).silent(),
    run(&["tg-show-kg-cores"]).lacks(&["urn:core:2"]),
    run(&["tg-put-de-core", "--id", "urn:core:3", "-i", "{dir}de"])
        .exactly("Put: 1 document embeddings messages."),
    run(&["tg-get-de-core", "--id", "urn:core:3", "-o", "{dir}de.out"])
        .exactly("Got: 1 document embeddings messages."),
    run(&["tg-dump-msgpack", "-i", "{dir}de.out", "-r"]).says(&[
        "[\"de\", {",
        "\"urn:chunk:1\"",
        "[0.5, 2.0]",
    ]),
    // The old pair sends no key. One fails, the other neither says so nor ends.
    run(&["tg-load-doc-embeds", "-i", "{dir}de"])
        .exits(1)
        .tells(&["401"]),
    run(&["tg-save-doc-embeds", "-o", "{dir}saved"])
        .never_ends()
        .says(&["Document embeddings:          0"]),
    // A workspace in a bundle.
    run(&["tg-load-sample-documents"])
        .says(&["Loading 7 sample document(s)...", "Complete."])
        .lacks(&["rror"]),
    run(&["tg-show-library-documents"]).says(&[
        "https://trustgraph.ai/doc/belgian-beer",
        "The Brewing Traditions of Belgium",
    ]),
    run(&["tg-export-workspace", "-o", "{dir}w.tgx"]).says(&[
        "Exporting collections: ",
        "docs",
        "from workspace 'default' to ",
    ]),
    run(&["tg-export-workspace-config", "-o", "{dir}w.json"])
        .tells(&["Exported ", "from workspace 'default'"]),
    run(&["tg-export-workspace-config", "-o", "-"]).says(&[
        "\"source_workspace\": \"default\"",
        "\"template.agent-react\"",
    ]),
    run(&[
        "tg-create-workspace",
        "--workspace-id",
        "acme",
        "--name",
        "Acme",
    ])
    .exactly("Workspace created: acme"),
    run(&[
        "tg-import-workspace-config",
        "-i",
        "{dir}w.json",
        "-w",
        "acme",
        "--dry-run",
    ])
    .says(&["[dry-run] would import "]),
    run(&[
        "tg-import-workspace-config",
        "-i",
        "{dir}w.json",
        "-w",
        "acme",
    ])
    .says(&["Imported ", "into workspace 'acme' (from 'default')."]),
    run(&[
        "tg-start-flow",
        "-w",
        "acme",
        "-n",
        "everything",
        "-i",
        "default",
        "-d",
        "imported",
    ])
    .silent(),
    run(&[
        "tg-import-workspace",
        "-i",
        "{dir}w.tgx",
        "-w",
        "acme",
        "--dry-run",
    ])
    .says(&["Dry run: "]),
    run(&["tg-import-workspace", "-i", "{dir}w.tgx", "-w", "acme"]).says(&[
        "into workspace 'acme'",
        " triple(s), ",
        "(0 skipped as existing)",
    ]),
    run(&["tg-import-workspace", "-i", "{dir}w.tgx", "-w", "acme"]).says(&[" 0 document(s) ("]),
    run(&["tg-show-library-documents", "-w", "acme"]).says(&["belgian-beer"]),
    run(&[
        "tg-query-graph",
        "-w",
        "acme",
        "-s",
        "http://trustgraph.ai/e/ottoline-frask",
        "-C",
        "docs",
    ])
    .says(&["http://trustgraph.ai/e/was-a http://trustgraph.ai/e/glassblower"])
    .until(),
    run(&["tg-show-flows", "-w", "acme"])
        .says(&["| desc       | imported ", "request:tg:agent:acme:default"]),
    // It removes each document, and then its parts, which went with it: nothing that has been processed is replaced.
    run(&[
        "tg-import-workspace",
        "-i",
        "{dir}w.tgx",
        "-w",
        "acme",
        "--overwrite",
    ])
    .exits(1)
    .says(&["Exception: not-found: Document does not exist"]),
];
