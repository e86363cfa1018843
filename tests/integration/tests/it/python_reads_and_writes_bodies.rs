//! Each message of the wire against the dataclass of the released Python library: what one side writes the other reads with
//! every field that both have, and writes again as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tg_schemas::Message;
use tg_schemas::codec::{ContentType, decode, encode};
use tg_schemas::msg::*;
use tg_schemas::processors::PROCESSORS;
use tg_testkit::process::root;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Messages that only processors of ours say to each other.
const OURS: [&str; 92] = [
    "AgentRun",
    "AgentRunStep",
    "AgentRunCall",
    "RunCost",
    "AnswerCost",
    "AnswerCall",
    "ModelService",
    "ModelSettings",
    "AgentRunsRequest",
    "AgentRunsResponse",
    "AgentTask",
    "AuditDropped",
    "AuditEntry",
    "AuditRequest",
    "AuditResponse",
    "ChatCompletionRequest",
    "ChatCompletionResponse",
    "ChatTool",
    "ChatToolCall",
    "ChatTurn",
    "ChatUsage",
    "ChunkReaders",
    "Citation",
    "CollectionDrop",
    "CollectionDropped",
    "DetachedRun",
    "EndedRun",
    "HostedFlow",
    "HostedProcessor",
    "KeptStreamRequest",
    "KeptStreamResponse",
    "LabelledTerm",
    "LibraryText",
    "LibraryTexts",
    "ListenerInfo",
    "ListenerMessage",
    "ListenerRequest",
    "ListenerResponse",
    "LoopRecord",
    "MeasureRequest",
    "MeasureResponse",
    "ModelHealth",
    "ModelRest",
    "ModelRoute",
    "Neighbour",
    "NeighbourhoodRequest",
    "NeighbourhoodResponse",
    "OperationRequest",
    "OperationResponse",
    "PollRecord",
    "Presence",
    "ProcessingError",
    "PutAside",
    "Receipt",
    "Receipts",
    "ReembedRequest",
    "ReembedResponse",
    "Reembedding",
    "Reindexed",
    "Retract",
    "RouteBackend",
    "RunHappened",
    "RunStanding",
    "RunSummary",
    "RunTally",
    "RunTallyEntry",
    "RunToolCall",
    "RunWritten",
    "SessionNotice",
    "SourceDocument",
    "SourcesRequest",
    "SourcesResponse",
    "SummedStep",
    "Superseded",
    "ThreadMessage",
    "ThreadTurn",
    "ThreadsEnded",
    "ThreadsRequest",
    "ThreadsResponse",
    "ToolHookRequest",
    "ToolHookResponse",
    "TracedSource",
    "TracesRequest",
    "TracesResponse",
    "Usage",
    "UsageCall",
    "UsageRequest",
    "UsageResponse",
    "UsageTotal",
    "Violation",
    "ViolationsRequest",
    "ViolationsResponse",
];

/// What this side makes of a body by reading and writing it.
fn through<M: Message>(body: &Value) -> Result<Value> {
    let read: M = decode(&serde_json::to_vec(body)?, ContentType::Json)
        .with_context(|| format!("{}: {body}", M::NAME))?;
    // Also by the other form, which is what processors of ours write to each other.
    let avro = encode(&read, ContentType::Avro)?;
    let read: M = decode(&avro, ContentType::Avro)?;
    Ok(serde_json::from_slice(&encode(&read, ContentType::Json)?)?)
}

type Through = fn(&Value) -> Result<Value>;

macro_rules! messages {
    ($($name:ident)*) => {
        fn messages() -> BTreeMap<&'static str, Through> {
            BTreeMap::from([$((<$name as Message>::NAME, through::<$name> as Through)),*])
        }
    };
}

messages! {
    AgentRequest AgentResponse AgentStep ApiKeyInput ApiKeyRecord Assignment AuditEvent Chunk ChunkEmbeddings
    ChunkMatch CollectionManagementRequest CollectionManagementResponse CollectionMetadata ConfigKey ConfigPush
    ConfigRequest ConfigResponse ConfigValue Criteria Delegation Document DocumentEmbeddings
    DocumentEmbeddingsRequest DocumentEmbeddingsResponse DocumentMetadata DocumentRagQuery DocumentRagResponse
    EmbeddingsRequest EmbeddingsResponse Entitlement EntityContext EntityContexts EntityEmbeddings EntityMatch
    ExtractedObject FlowRequest FlowResponse GrantInput GraphEmbeddings GraphEmbeddingsRequest
    GraphEmbeddingsResponse GraphQLError GraphRagQuery GraphRagResponse GroupInput IamRequest IamResponse
    ImageToTextRequest ImageToTextResponse KeywordIndexRequest KeywordIndexResponse KnowledgeRequest
    KnowledgeResponse LibrarianRequest LibrarianResponse LibraryBlob LibraryMetadata Metadata ModelInfo
    OverrideAuthority PassthroughRequest PassthroughResponse PlanStep ProcessingMetadata PromptRequest
    PromptResponse QuestionToStructuredQueryRequest QuestionToStructuredQueryResponse RerankerDocument
    RerankerQuery RerankerRequest RerankerResponse RerankerResult RowEmbeddings RowEmbeddingsRequest
    RowEmbeddingsResponse RowIndexEmbedding RowIndexMatch RowsQueryRequest RowsQueryResponse Source
    SparqlBinding SparqlQueryRequest SparqlQueryResponse StructuredDataDiagnosisRequest
    StructuredDataDiagnosisResponse StructuredQueryRequest StructuredQueryResponse TextCompletionRequest
    TextCompletionResponse TextDocument ToolRequest ToolResponse ToolServiceRequest ToolServiceResponse
    TraversalStep Triples TriplesQueryRequest TriplesQueryResponse UploadProgress UploadSession UserContext
    UserInput UserRecord WorkspaceChanges WorkspaceInput WorkspaceRecord
}

#[derive(Deserialize)]
struct Samples {
    bodies: BTreeMap<String, Vec<Value>>,
    ours: BTreeSet<String>,
}

/// The other side's word on something.
async fn python(what: &str, input: &Value) -> Result<Vec<u8>> {
    let mut child = Command::new(root().join(".cache/venv/bin/python3"))
        .arg(root().join("tests/integration/clients/bodies.py"))
        .arg(root().join("schemas/avro"))
        .arg(what)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("no Python: run the set-up first")?;
    let mut into = child.stdin.take().context("a pipe")?;
    let text = input.to_string();
    let written = tokio::spawn(async move { into.write_all(text.as_bytes()).await });
    let output = child.wait_with_output().await?;
    // One that needs no input may have ended before it was written.
    let _ = written.await;
    ensure!(
        output.status.success(),
        "{what}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}

async fn faults(pairs: &Value) -> Result<Vec<String>> {
    Ok(serde_json::from_slice(&python("check", pairs).await?)?)
}

#[tokio::test]
async fn with_every_field() -> Result<()> {
    let samples: Samples = serde_json::from_slice(&python("samples", &Value::Null).await?)?;
    let messages = messages();
    let (theirs, known) = (samples.bodies.keys(), messages.keys());
    assert!(theirs.eq(known), "messages of both sides, and the list");
    assert_eq!(samples.ours, OURS.map(str::to_owned).into());
    for spec in PROCESSORS.iter().flat_map(|processor| processor.specs) {
        let name = spec.message;
        let listed = messages.contains_key(name) || OURS.contains(&name);
        assert!(listed, "{name} is a message of the table");
    }

    let mut pairs = serde_json::Map::new();
    for (name, bodies) in &samples.bodies {
        let made = bodies.iter().map(|body| {
            let came = messages[name.as_str()](body)?;
            Ok(json!([body, came]))
        });
        let made: Vec<Value> = made.collect::<Result<_>>()?;
        ensure!(made.len() == 3, "{name}: {} bodies", made.len());
        pairs.insert(name.clone(), made.into());
    }
    let told = faults(&Value::Object(pairs.clone())).await?;
    ensure!(told.is_empty(), "{told:#?}");

    // One that says something else, and one that lacks a field.
    for (name, field, wrong) in [
        ("AgentRequest", "question", json!("other")),
        ("Triples", "metadata", Value::Null),
        ("TextCompletionResponse", "in_token", json!("many")),
    ] {
        let mut pair = pairs[name].clone();
        ensure!(!pair[0][1][field].is_null(), "{name} has {field}");
        pair[0][1][field] = wrong;
        let told = faults(&json!({name: pair})).await?;
        ensure!(!told.is_empty(), "{name} with another {field} passes");
    }
    Ok(())
}
