//! The tools that clients are offered: each is an operation that the gateway has anyway, with its own words for what is
//! asked. Who may use one is whoever may use the operation.

use rmcp::model::{Tool as Shown, ToolAnnotations};
use serde_json::{Value, json};

use crate::engine::translate::Body;

/// What answers a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// A service of the flow.
    Kind(&'static str),
    /// An operation of a service outside flows.
    Operation(&'static str, &'static str),
}

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A text that must be there.
    Required,
    /// A text.
    Text,
    /// A whole number from, to, and where none is given.
    Number(i64, i64, i64),
}

/// An argument of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) form: Form,
    /// The key of the request that it is; none: it is read by [`super::called`] or [`super::told`].
    pub(crate) key: Option<&'static str>,
    about: &'static str,
}

/// What an answer is made into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A text under a key, and what its numbers cite.
    Prose(&'static str),
    /// Statements.
    Triples,
    /// Results of a query.
    Results,
    /// The content of a document.
    Content,
    /// What was added.
    Added,
    /// What a search found.
    Found,
    /// The text of what it found.
    Fetched,
    /// The entries of a listing under a key, under a name, with these keys of each; without any, as they are.
    Listing(&'static str, &'static str, &'static [&'static str]),
}

/// A tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// Its name.
    pub(crate) name: &'static str,
    title: &'static str,
    about: &'static str,
    /// What answers it.
    pub(crate) of: Of,
    /// It changes something.
    pub(crate) writes: bool,
    /// Its arguments, but for `flow` and `collection`.
    pub(crate) arguments: &'static [Argument],
    /// It is about a flow.
    pub(crate) flow: bool,
    /// It is about a collection.
    pub(crate) collection: bool,
    /// What its answer is made into.
    pub(crate) answer: Answer,
}

const fn argument(
    name: &'static str,
    form: Form,
    key: &'static str,
    about: &'static str,
) -> Argument {
    Argument {
        name,
        form,
        key: Some(key),
        about,
    }
}

const fn own(name: &'static str, form: Form, about: &'static str) -> Argument {
    Argument {
        name,
        form,
        key: None,
        about,
    }
}

/// The argument that names a flow.
pub(crate) const FLOW: &str = "flow";
/// The argument that names a collection.
pub(crate) const COLLECTION: &str = "collection";
/// The argument that says where the text of a document begins.
pub(crate) const OFFSET: &str = "offset";

const AFTER: Argument = argument(
    "after",
    Form::Text,
    "after",
    "The `next` of the page before",
);
const BEGIN: Argument = own(
    OFFSET,
    Form::Number(0, i64::MAX, 0),
    "Where to begin, in bytes, as the answer before said",
);
const PAGE: Argument = argument("limit", Form::Number(1, 500, 100), "limit", "Most entries");
const QUERY: Argument = argument("query", Form::Required, "query", "The question");

/// A service of a flow over a collection.
const fn asks(
    name: &'static str,
    kind: &'static str,
    words: (&'static str, &'static str),
    arguments: &'static [Argument],
    answer: Answer,
) -> Tool {
    Tool {
        name,
        title: words.0,
        about: words.1,
        of: Of::Kind(kind),
        writes: false,
        arguments,
        flow: true,
        collection: true,
        answer,
    }
}

/// An operation of a service outside flows that reads.
const fn reads(
    name: &'static str,
    of: (&'static str, &'static str),
    words: (&'static str, &'static str),
    arguments: &'static [Argument],
    answer: Answer,
) -> Tool {
    Tool {
        name,
        title: words.0,
        about: words.1,
        of: Of::Operation(of.0, of.1),
        writes: false,
        arguments,
        flow: false,
        collection: false,
        answer,
    }
}

/// All tools, in the order in which they are listed.
pub(crate) const TOOLS: &[Tool] = &[
    Tool {
        // Its own tools may do anything that they are configured for.
        writes: true,
        ..asks(
            "ask_agent",
            "agent",
            (
                "Ask the agent",
                "Asks the agent of a flow, which reasons in steps, uses its tools over the knowledge graph and the \
                 documents, and answers with citations. For questions that need several look-ups; it may take minutes. \
                 With a progress token its thoughts are told while it works.",
            ),
            &[argument(
                "question",
                Form::Required,
                "question",
                "The question, complete in itself",
            )],
            Answer::Prose("answer"),
        )
    },
    reads(
        "list_agents",
        ("sessions", "list-named-agents"),
        (
            "List agents",
            "Lists the agents that are described here: names, what they are for, their tools. chat_with_agent asks one.",
        ),
        &[],
        Answer::Listing("agents", "agents", &["name", "description", "tools"]),
    ),
    Tool {
        // As those of the agent of the flow.
        writes: true,
        ..reads(
            "chat_with_agent",
            ("sessions", "chat"),
            (
                "Ask an agent by name",
                "Asks one of the agents that list_agents names, by its own instructions, tools and documents. Nothing of it is \
                 kept: the message is complete in itself. It may take minutes.",
            ),
            &[
                argument(
                    "name",
                    Form::Required,
                    "name",
                    "Name of the agent; of an agent of the workspace its id",
                ),
                argument("message", Form::Required, "message", "The question"),
            ],
            Answer::Prose("content"),
        )
    },
    asks(
        "graph_rag",
        "graph-rag",
        (
            "Answer from the knowledge graph",
            "Answers a question from the statements of the knowledge graph that fit it. For relationships between things.",
        ),
        &[QUERY],
        Answer::Prose("response"),
    ),
    asks(
        "document_rag",
        "document-rag",
        (
            "Answer from the documents",
            "Answers a question from the passages of the documents that fit it, and cites them.",
        ),
        &[QUERY],
        Answer::Prose("response"),
    ),
    asks(
        "query_triples",
        "triples",
        (
            "Find statements",
            "Finds statements (triples) of the knowledge graph by any of subject, predicate and object, exactly as \
             they are. Answers in N-Quads, one statement a line.",
        ),
        &[
            argument("subject", Form::Text, "s", "IRI of the subject"),
            argument("predicate", Form::Text, "p", "IRI of the predicate"),
            argument(
                "object",
                Form::Text,
                "o",
                "IRI of the object, or the text of a literal",
            ),
            argument(
                "graph",
                Form::Text,
                "g",
                "IRI of the named graph; absent: all graphs",
            ),
            argument(
                "limit",
                Form::Number(1, 1000, 100),
                "limit",
                "Most statements",
            ),
        ],
        Answer::Triples,
    ),
    asks(
        "sparql_query",
        "sparql",
        (
            "Query with SPARQL",
            "Runs a SPARQL 1.1 query (SELECT, ASK, CONSTRUCT or DESCRIBE) over the knowledge graph. Terms are written \
             as in N-Triples. Updates are refused.",
        ),
        &[
            argument("query", Form::Required, "query", "The query"),
            argument("limit", Form::Number(1, 1000, 100), "limit", "Most results"),
        ],
        Answer::Results,
    ),
    asks(
        "search_documents",
        "keyword-index",
        (
            "Search by keywords",
            "Finds the passages of the documents that hold given words, best first: their ids, which get_document reads.",
        ),
        &[
            argument("query", Form::Required, "query", "The words"),
            argument("limit", Form::Number(1, 100, 10), "limit", "Most passages"),
        ],
        Answer::Listing("chunks", "passages", &["chunk_id", "score"]),
    ),
    reads(
        "list_documents",
        ("librarian", "list-documents"),
        (
            "List documents",
            "Lists the documents of the library: ids, titles and kinds.",
        ),
        &[PAGE, AFTER],
        Answer::Listing("document-metadatas", "documents", ABOUT_DOCUMENT),
    ),
    reads(
        "list_document_parts",
        ("librarian", "list-children"),
        (
            "List the parts of a document",
            "Lists what was made of a document: the pages of a PDF, the passages of a text. get_document reads each.",
        ),
        &[
            argument(
                "document_id",
                Form::Required,
                "document-id",
                "Id of the document",
            ),
            PAGE,
            AFTER,
        ],
        Answer::Listing("document-metadatas", "parts", ABOUT_DOCUMENT),
    ),
    reads(
        "get_document",
        ("librarian", "get-document-content"),
        (
            "Read a document",
            "Reads the text of a document, a page or a passage. A long text is cut, and says where to go on.",
        ),
        &[
            argument(
                "document_id",
                Form::Required,
                "document-id",
                "Id of the document, page or passage",
            ),
            BEGIN,
        ],
        Answer::Content,
    ),
    Tool {
        writes: true,
        flow: true,
        collection: true,
        ..reads(
            "add_document",
            ("librarian", "load-document"),
            (
                "Add a document",
                "Adds a text to the library and has a flow process it into a collection: afterwards answers draw on it. \
                 Processing goes on after this returns. The same text is the same document.",
            ),
            &[
                own("text", Form::Required, "The text, plain or Markdown"),
                own("title", Form::Required, "Its title"),
                own(
                    "kind",
                    Form::Text,
                    "text/plain (as if absent), text/markdown or text/html",
                ),
                own(
                    "document_id",
                    Form::Text,
                    "An IRI of your choice; absent: made of the text",
                ),
            ],
            Answer::Added,
        )
    },
    reads(
        "list_collections",
        ("collection-management", "list-collections"),
        (
            "List collections",
            "Lists the collections that knowledge is kept in.",
        ),
        &[PAGE, AFTER],
        Answer::Listing("collections", "collections", &[]),
    ),
    reads(
        "list_flows",
        ("flow", "list-flows"),
        ("List flows", "Lists the flows that run."),
        &[PAGE, AFTER],
        Answer::Listing("flow-ids", "flows", &[]),
    ),
    // By these two names ChatGPT searches a server.
    asks(
        "search",
        "keyword-index",
        (
            "Search",
            "Finds passages of the documents that hold the words of a query, best first: their ids, how they begin, and their \
             addresses. fetch reads one.",
        ),
        &[argument("query", Form::Required, "query", "The words")],
        Answer::Found,
    ),
    reads(
        "fetch",
        ("librarian", "get-document-content"),
        (
            "Fetch",
            "Reads the text of something that search found. A long text is cut, and says where to go on.",
        ),
        &[
            argument(
                "id",
                Form::Required,
                "document-id",
                "Id of a result of search",
            ),
            BEGIN,
        ],
        Answer::Fetched,
    ),
];

const ABOUT_DOCUMENT: &[&str] = &["id", "title", "kind", "comments", "tags", "parent-id"];

/// A tool by its name.
pub(crate) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

impl Tool {
    /// Whether it tells how it goes while it is answered.
    pub(crate) fn tells(&self) -> bool {
        self.of == Of::Kind("agent")
    }

    /// Whether it finds what the library knows more of.
    pub(crate) fn finds(&self) -> bool {
        self.answer == Answer::Found
    }

    /// As it is listed; `defaults` are the flow and the collection where a call names none.
    pub(crate) fn shown(&self, defaults: (&str, &str)) -> Shown {
        let mut properties = Body::new();
        let mut required = Vec::new();
        for argument in self.arguments {
            let mut schema = match argument.form {
                Form::Required | Form::Text => json!({"type": "string"}),
                Form::Number(least, most, usual) => {
                    let mut schema = json!({"type": "integer", "minimum": least, "default": usual});
                    if most < i64::MAX {
                        schema["maximum"] = most.into();
                    }
                    schema
                }
            };
            schema["description"] = argument.about.into();
            if argument.form == Form::Required {
                required.push(Value::from(argument.name));
            }
            properties.insert(argument.name.to_owned(), schema);
        }
        let mut named = |is: bool, name: &str, usual: &str, about: &str| {
            if is {
                let schema = json!({"type": "string", "default": usual, "description": about});
                properties.insert(name.to_owned(), schema);
            }
        };
        named(self.flow, FLOW, defaults.0, "The flow that is asked");
        named(
            self.collection,
            COLLECTION,
            defaults.1,
            "The collection that is looked in",
        );
        let mut schema = Body::new();
        schema.insert("type".to_owned(), "object".into());
        schema.insert("properties".to_owned(), properties.into());
        schema.insert("required".to_owned(), required.into());
        schema.insert("additionalProperties".to_owned(), false.into());
        let acts = matches!(self.name, "ask_agent" | "chat_with_agent");
        let hints = ToolAnnotations::with_title(self.title)
            .read_only(!self.writes)
            .destructive(acts)
            .idempotent(!self.writes || self.name == "add_document")
            .open_world(acts);
        Shown::new(self.name, self.about, schema)
            .with_title(self.title)
            .with_annotations(hints)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::registry;

    #[test]
    fn each_tool_is_an_operation_that_there_is() {
        for tool in TOOLS {
            match tool.of {
                Of::Kind(kind) => assert!(registry::flow_kind(kind).is_some(), "{}", tool.name),
                Of::Operation(service, operation) => {
                    let service = registry::service(service).unwrap();
                    assert!(service.gate(operation).is_some(), "{}", tool.name);
                }
            }
        }
        let names: BTreeSet<_> = TOOLS.iter().map(|tool| tool.name).collect();
        assert_eq!(names.len(), TOOLS.len());
        // A model chooses badly among many.
        assert!(TOOLS.len() <= 25);
    }

    #[test]
    fn a_schema_says_what_must_be_there_and_what_is_meant_where_nothing_is_said() {
        let shown = find("query_triples").unwrap().shown(("f", "c"));
        let schema = Value::Object(shown.input_schema.as_ref().clone());
        assert_eq!(schema["required"], json!([]));
        assert_eq!(schema["properties"]["flow"]["default"], "f");
        assert_eq!(schema["properties"]["collection"]["default"], "c");
        assert_eq!(schema["properties"]["limit"]["maximum"], 1000);
        let hints = shown.annotations.unwrap();
        assert_eq!(
            (hints.read_only_hint, hints.destructive_hint),
            (Some(true), Some(false))
        );
        let shown = find("add_document").unwrap().shown(("f", "c"));
        let schema = Value::Object(shown.input_schema.as_ref().clone());
        assert_eq!(schema["required"], json!(["text", "title"]));
        let hints = shown.annotations.unwrap();
        assert_eq!(
            (hints.read_only_hint, hints.destructive_hint),
            (Some(false), Some(false))
        );
        let shown = find("list_flows").unwrap().shown(("f", "c"));
        assert!(
            !shown.input_schema["properties"]
                .as_object()
                .unwrap()
                .contains_key("flow")
        );
    }
}
