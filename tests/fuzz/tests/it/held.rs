//! Types and schema files, held together: a file is what is made from the types (`UPDATE=1 cargo test -p tg-fuzz
//! schema_files` writes it), and a type reads and writes what its file says.
//!
//! Here, and not beside the types: code for each type and each form is large, and those of the crate itself are optimised.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::ser::{PrettyFormatter, Serializer};
use serde_json::{Map, Value, json};
use tg_schemas::codec::{ContentType, decode, encode};
use tg_schemas::msg::*;
use tg_schemas::{Message, Term};
use tg_testkit::process::root;

use self::generate::{Messages, Said, Types};

mod generate;

/// Every message: its type's name, what it says of itself, and the check of the type against its file.
macro_rules! messages {
    ($($name:ident)*) => {
        fn listed() -> Vec<(&'static str, Said, fn())> {
            vec![$((
                stringify!($name),
                Said {
                    name: <$name as Message>::NAME,
                    default: serde_json::to_value($name::default()).expect("a message is JSON"),
                },
                holds::<$name>,
            )),*]
        }
    };
}

messages! {
    AgentRequest AgentResponse AnswerCost AnswerCall AgentStep PlanStep ToolServiceRequest ToolServiceResponse ToolHookRequest ToolHookResponse PassthroughRequest
    PassthroughResponse TextCompletionRequest TextCompletionResponse ModelInfo ModelService ModelSettings ToolRequest ToolResponse
    PromptRequest PromptResponse EntityContext EntityContexts Triples TriplesQueryRequest TriplesQueryResponse
    SparqlBinding SparqlQueryRequest SparqlQueryResponse Document TextDocument Chunk DocumentMetadata
    ProcessingMetadata Criteria UploadProgress UploadSession LibrarianRequest LibrarianResponse ConfigKey
    ConfigValue ConfigRequest ConfigResponse WorkspaceChanges ConfigPush FlowRequest FlowResponse
    CollectionMetadata CollectionManagementRequest CollectionManagementResponse UserInput UserRecord
    WorkspaceInput WorkspaceRecord ApiKeyInput ApiKeyRecord GroupInput GrantInput IamRequest IamResponse
    AuditEvent AuditEntry AuditRequest AuditDropped AuditResponse
    Metadata UserContext Assignment Entitlement OverrideAuthority Delegation Usage DeadLetter
    Presence HostedProcessor HostedFlow AgentRun AgentRunStep AgentRunCall RunCost LoopRecord PollRecord
    AgentRunsRequest DetachedRun AgentRunsResponse RunToolCall RunHappened RunStanding SummedStep RunSummary AgentTask SessionNotice TracesRequest EndedRun TracesResponse UsageCall UsageRequest UsageTotal UsageResponse ChatToolCall ChatTurn ChatTool ChatCompletionRequest ChatUsage ModelHealth ModelRest RouteBackend ModelRoute ChatCompletionResponse RunWritten RunTallyEntry RunTally LibraryText
    LibraryTexts Retract Superseded ChunkReaders Reindexed CollectionDrop CollectionDropped
    ReembedRequest Reembedding ReembedResponse ProcessingError NeighbourhoodRequest LabelledTerm
    Neighbour NeighbourhoodResponse SourcesRequest TracedSource SourceDocument SourcesResponse
    ImageToTextRequest ImageToTextResponse TraversalStep GraphRagQuery Source Citation GraphRagResponse DocumentRagQuery
    DocumentRagResponse EntityEmbeddings GraphEmbeddings ChunkEmbeddings DocumentEmbeddings RowIndexEmbedding
    RowEmbeddings EmbeddingsRequest EmbeddingsResponse GraphEmbeddingsRequest EntityMatch
    GraphEmbeddingsResponse DocumentEmbeddingsRequest ChunkMatch DocumentEmbeddingsResponse KeywordIndexRequest
    KeywordIndexResponse RowIndexMatch RowEmbeddingsRequest RowEmbeddingsResponse RerankerQuery RerankerDocument
    RerankerRequest RerankerResult RerankerResponse LibraryMetadata LibraryBlob KnowledgeRequest
    KnowledgeResponse ExtractedObject StructuredDataDiagnosisRequest StructuredDataDiagnosisResponse
    GraphQLError RowsQueryRequest RowsQueryResponse QuestionToStructuredQueryRequest
    QuestionToStructuredQueryResponse StructuredQueryRequest StructuredQueryResponse ViolationsRequest Violation
    ViolationsResponse MeasureRequest MeasureResponse Receipt Receipts
    ThreadsRequest ThreadMessage ThreadTurn ListenerInfo ThreadsResponse ListenerRequest ListenerMessage ListenerResponse
    ThreadsEnded OperationRequest OperationResponse KeptStreamRequest KeptStreamResponse
}

/// Holds a type against its file: a body in which every field says something is read, says the same, and is written
/// and read again, as is one in which none does.
fn holds<M: Message + Default + PartialEq + std::fmt::Debug>() {
    let schema: Value = serde_json::from_slice(M::AVRO.as_bytes()).expect("a schema is JSON");
    let mut records = BTreeMap::new();
    collect(&schema, &mut records);
    let full = sample(&schema, &records);
    let body = serde_json::to_vec(&full).expect("JSON");
    let message: M = match decode(&body, ContentType::Json) {
        Ok(message) => message,
        Err(error) => panic!(
            "{}: the type does not read what the file says: {error}",
            M::NAME
        ),
    };
    let said = serde_json::to_value(&message).expect("a message is JSON");
    assert_eq!(said, full, "{}: the type says something else", M::NAME);
    for message in [message, M::default()] {
        let avro = encode(&message, ContentType::Avro).expect("written");
        let read = decode::<M>(&avro, ContentType::Avro).expect("read");
        assert_eq!(read, message, "{}", M::NAME);
    }
}

/// A value of this schema in which every field says something.
fn sample(schema: &Value, records: &BTreeMap<String, Value>) -> Value {
    match schema {
        Value::String(name) => match name.as_str() {
            "string" => json!("text"),
            "long" => json!(7),
            "double" | "float" => json!(0.5),
            "boolean" => json!(true),
            "null" => Value::Null,
            name => sample(&records[local(name)], records),
        },
        Value::Array(variants) => sample(&variants[1], records),
        Value::Object(map) => match map["type"].as_str() {
            Some("array") => json!([sample(&map["items"], records)]),
            Some("map") => json!({"key": sample(&map["values"], records)}),
            Some("record") if local(text(&map["name"])) == "Term" => {
                serde_json::to_value(Term::iri("urn:a")).expect("a term is JSON")
            }
            Some("record") => {
                let mut value = Map::new();
                for field in map["fields"].as_array().expect("fields") {
                    let inner = match field["free"] == json!(true) {
                        true => json!({"key": [1, null, {"text": "x"}]}),
                        false => sample(&field["type"], records),
                    };
                    value.insert(text(&field["name"]).to_owned(), inner);
                }
                Value::Object(value)
            }
            _ => sample(&map["type"], records),
        },
        other => panic!("no schema: {other}"),
    }
}

/// Every record that is written out in a schema, by its name.
fn collect(schema: &Value, into: &mut BTreeMap<String, Value>) {
    match schema {
        Value::Object(map) => {
            if map.get("type") == Some(&json!("record")) {
                into.entry(local(text(&map["name"])).to_owned())
                    .or_insert_with(|| schema.clone());
            }
            map.values().for_each(|value| collect(value, into));
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, into)),
        _ => {}
    }
}

fn local(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn shown(schema: &Value) -> String {
    let mut out = Vec::new();
    let mut writer = Serializer::with_formatter(&mut out, PrettyFormatter::with_indent(b" "));
    serde::Serialize::serialize(schema, &mut writer).expect("JSON");
    String::from_utf8(out).expect("UTF-8") + "\n"
}

/// What every file is to say, by the message's name. `change` is made in each source before it is read.
fn made(change: fn(String) -> String) -> BTreeMap<String, String> {
    let sources = root().join("schemas/src");
    let mut paths = vec![sources.join("error.rs"), sources.join("rdf.rs")];
    for entry in std::fs::read_dir(sources.join("msg")).expect("a folder") {
        paths.push(entry.expect("a file").path());
    }
    let mut types = Types::default();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a file");
        if let Err(error) = types.add(&change(text)) {
            panic!("{}: {error}", path.display());
        }
    }
    let messages: Messages = listed()
        .into_iter()
        .map(|(of, said, _)| (of, said))
        .collect();
    let named: BTreeSet<String> = messages.keys().map(|&of| of.to_owned()).collect();
    assert_eq!(types.messages(), &named, "messages, and the list above");
    let made = messages.iter().map(|(of, said)| {
        let schema = types.schema(of, &messages);
        let schema = schema.unwrap_or_else(|error| panic!("{error}"));
        (said.name.to_owned(), shown(&schema))
    });
    made.collect()
}

fn folder() -> PathBuf {
    root().join("schemas/avro")
}

/// What every file says, by its name.
fn found() -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder()).expect("a folder");
    let files = entries.map(|entry| {
        let path = entry.expect("a file").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        let text = std::fs::read_to_string(&path).expect("a file");
        (name.into_owned(), text)
    });
    files.collect()
}

/// The names of files that are not as made, are missing, or are no message's.
fn stale(made: &BTreeMap<String, String>, found: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = made.keys().chain(found.keys()).collect();
    let stale = names
        .into_iter()
        .filter(|name| made.get(*name) != found.get(*name));
    stale.cloned().collect()
}

#[test]
fn schema_files_are_what_is_generated() {
    let made = made(|source| source);
    let stale = stale(&made, &found());
    if std::env::var_os("UPDATE").is_none() {
        assert!(
            stale.is_empty(),
            "not as the types say (UPDATE=1 writes them): {}",
            stale.join(", ")
        );
        return;
    }
    for name in stale {
        let path = folder().join(format!("{name}.avsc"));
        match made.get(&name) {
            Some(text) => std::fs::write(path, text).expect("written"),
            None => std::fs::remove_file(path).expect("removed"),
        }
    }
}

#[test]
fn a_type_that_its_files_do_not_follow_is_noticed() {
    let grown = made(|source| {
        source.replace(
            "pub struct LibraryText {",
            "pub struct LibraryText { pub added: Option<i64>,",
        )
    });
    let mut found = made(|source| source);
    assert_eq!(stale(&grown, &found), ["LibraryText", "LibraryTexts"]);
    assert_eq!(stale(&found, &found), [""; 0]);
    found.insert("Former".to_owned(), String::new());
    found.remove("Usage");
    assert_eq!(stale(&made(|source| source), &found), ["Former", "Usage"]);
}

#[test]
fn every_message_agrees_with_its_file() {
    for (_, _, holds) in listed() {
        holds();
    }
}
