//! Bodies, headers, names of topics and files of knowledge cores.

use serde_json::Value;
use tg_core_file::msgpack::{Scanner, decode as unpack, encode as pack};
use tg_core_file::record::{to_put, to_record};
use tg_schemas::codec::{ContentType, decode, encode, register};
use tg_schemas::msg::*;
use tg_schemas::{Error, FlowId, Headers, Message, Term, Topic, Triple, WorkspaceId};
use tg_testkit::fuzz::{Sayings, beside_doors, door, run};
use tg_testkit::process::root;

/// Reads a body as this type; what was read can be written and read again.
fn read<M: Message>(body: &[u8], as_type: ContentType, sayings: &Sayings<'_>) {
    if let Some(message) = sayings.of(decode::<M>(body, as_type).map_err(Error::from)) {
        let again = encode(&message, as_type).expect("what was read can be written");
        assert!(decode::<M>(&again, as_type).is_ok(), "{}", M::NAME);
    }
}

macro_rules! each {
    ($do:ident: $($name:ident)*) => { [$(($do!($name))),*] };
}

/// The name and the reader of a type, and its default as a seed.
macro_rules! target {
    ($name:ident) => {
        (
            <$name>::NAME,
            read::<$name> as Reader,
            encode(&$name::default(), ContentType::Json)
                .expect("JSON")
                .to_vec(),
            encode(&$name::default(), ContentType::Avro)
                .expect("Avro")
                .to_vec(),
        )
    };
}

type Reader = fn(&[u8], ContentType, &Sayings<'_>);
type Target = (&'static str, Reader, Vec<u8>, Vec<u8>);

fn targets() -> Vec<Target> {
    each!(target: AgentRequest AgentResponse AgentStep PlanStep ToolServiceRequest ToolServiceResponse ToolHookRequest ToolHookResponse
        PassthroughRequest PassthroughResponse TextCompletionRequest TextCompletionResponse ModelInfo ModelService ModelSettings ToolRequest
        ToolResponse PromptRequest PromptResponse EntityContext EntityContexts Triples TriplesQueryRequest
        TriplesQueryResponse SparqlBinding SparqlQueryRequest SparqlQueryResponse Document TextDocument Chunk
        DocumentMetadata ProcessingMetadata Criteria UploadProgress UploadSession LibrarianRequest LibrarianResponse
        ConfigKey ConfigValue ConfigRequest ConfigResponse WorkspaceChanges ConfigPush FlowRequest FlowResponse
        CollectionMetadata CollectionManagementRequest CollectionManagementResponse UserInput UserRecord
        WorkspaceInput WorkspaceRecord ApiKeyInput ApiKeyRecord GroupInput GrantInput IamRequest IamResponse
    AuditEvent AuditEntry AuditRequest AuditDropped AuditResponse
        Metadata UserContext Assignment Entitlement OverrideAuthority Delegation Usage DeadLetter Presence
        HostedProcessor HostedFlow AgentRun AgentRunStep AgentRunCall RunCost AnswerCost AnswerCall AgentRunsRequest
        DetachedRun AgentRunsResponse RunToolCall RunHappened RunStanding SummedStep RunSummary TracesRequest EndedRun TracesResponse UsageCall UsageRequest UsageTotal UsageResponse RunWritten RunTallyEntry RunTally LibraryText LibraryTexts
        Retract CollectionDrop CollectionDropped ReembedRequest Reembedding ReembedResponse ProcessingError NeighbourhoodRequest LabelledTerm Neighbour
        NeighbourhoodResponse SourcesRequest TracedSource SourceDocument SourcesResponse ImageToTextRequest
        ImageToTextResponse TraversalStep GraphRagQuery Source Citation GraphRagResponse DocumentRagQuery DocumentRagResponse
        EntityEmbeddings GraphEmbeddings ChunkEmbeddings DocumentEmbeddings RowIndexEmbedding RowEmbeddings
        EmbeddingsRequest EmbeddingsResponse GraphEmbeddingsRequest EntityMatch GraphEmbeddingsResponse
        DocumentEmbeddingsRequest ChunkMatch DocumentEmbeddingsResponse KeywordIndexRequest KeywordIndexResponse
        RowIndexMatch RowEmbeddingsRequest RowEmbeddingsResponse RerankerQuery RerankerDocument RerankerRequest
        RerankerResult RerankerResponse LibraryMetadata LibraryBlob KnowledgeRequest KnowledgeResponse
        MeasureRequest MeasureResponse Receipt Receipts
        ExtractedObject StructuredDataDiagnosisRequest StructuredDataDiagnosisResponse GraphQLError RowsQueryRequest
        RowsQueryResponse QuestionToStructuredQueryRequest QuestionToStructuredQueryResponse
        StructuredQueryRequest StructuredQueryResponse
        ThreadsRequest ThreadMessage ThreadTurn ListenerInfo ThreadsResponse ListenerRequest ListenerMessage ListenerResponse
        ThreadsEnded OperationRequest OperationResponse AgentTask SessionNotice KeptStreamRequest KeptStreamResponse
        ChatToolCall ChatTurn ChatTool ChatCompletionRequest ChatUsage ModelHealth ModelRest RouteBackend ModelRoute
        ChatCompletionResponse LoopRecord PollRecord Superseded ChunkReaders Reindexed ViolationsRequest Violation ViolationsResponse)
    .to_vec()
}

fn triples() -> Triples {
    let inner = Triple::new(
        Term::iri("urn:a"),
        Term::Blank("b".into()),
        Term::literal("ü"),
    );
    Triples {
        metadata: Some(Metadata::default()),
        triples: vec![
            Triple::new(
                Term::Quoted(Box::new(inner)),
                Term::iri("p"),
                Term::literal("")
            );
            3
        ],
    }
}

/// Which type reads an input follows from its length, so that every type reads every kind of input.
fn bodies(name: &str, as_type: ContentType) {
    let targets = targets();
    let mut seeds: Vec<Vec<u8>> = targets
        .iter()
        .map(|(_, _, json, avro)| match as_type {
            ContentType::Json => json.clone(),
            ContentType::Avro => avro.clone(),
        })
        .collect();
    seeds.push(encode(&triples(), as_type).expect("written").to_vec());
    seeds.push(br#"{"triples": [{"s": NaN, "p": -Infinity}], "metadata": null}"#.to_vec());
    let seeds: Vec<&[u8]> = seeds.iter().map(Vec::as_slice).collect();
    door(name, &seeds, |bytes, sayings| {
        // The type that the mark at the head names, and one more.
        for (_, reader, _, avro) in &targets {
            if as_type == ContentType::Avro && bytes.starts_with(&avro[..10]) {
                reader(bytes, as_type, sayings);
            }
        }
        targets[bytes.len() % targets.len()].1(bytes, as_type, sayings);
    });
}

#[test]
fn bodies_of_json() {
    bodies("bodies of JSON", ContentType::Json);
}

#[test]
fn bodies_of_avro() {
    bodies("bodies of Avro", ContentType::Avro);
}

#[test]
fn every_message_is_read() {
    let folder = root().join("schemas/avro");
    let files = std::fs::read_dir(folder).expect("the folder of the schemas");
    let mut messages: Vec<String> = files
        .filter_map(|file| {
            file.expect("a file")
                .path()
                .file_stem()?
                .to_str()
                .map(str::to_owned)
        })
        .collect();
    messages.sort();
    let mut read: Vec<&str> = targets().iter().map(|(name, ..)| *name).collect();
    read.sort_unstable();
    assert_eq!(read, messages);
}

#[test]
fn schemas_of_others() {
    let seeds = [
        Usage::AVRO.as_bytes(),
        PlanStep::AVRO.as_bytes(),
        b"\"string\"",
    ];
    run("schemas of others", &seeds, |bytes| {
        if let Ok(text) = std::str::from_utf8(bytes) {
            let _ = register(text);
        }
    });
}

#[test]
fn headers() {
    let seeds: [&[u8]; 6] = [
        b"id\0x-1",
        b"deadline\x001700000000000",
        b"seq\x0018446744073709551615",
        b"frame\0part",
        b"tg-epoch\0-1",
        b"thread\0\xc3\xbc",
    ];
    door("headers", &seeds, |bytes, _| {
        let mut headers = Headers::default();
        let text = String::from_utf8_lossy(bytes);
        let names: Vec<&str> = headers.pairs().iter().map(|(name, _)| *name).collect();
        for pair in text.split('\n') {
            let (name, value) = pair.split_once('\0').unwrap_or((pair, pair));
            headers.set(name, value);
            for name in &names {
                headers.set(name, value);
            }
        }
        for (name, value) in headers.clone().pairs() {
            headers.set(name, &value);
        }
    });
}

#[test]
fn names_of_topics() {
    let seeds: [&[u8]; 4] = [
        b"request:tg:agent:default:f",
        b"flow:tg:triples-store:w",
        b"notify:tg:control",
        b"response:tg:a:b:c:d",
    ];
    beside_doors("names of topics", &seeds, |bytes, sayings| {
        let text = String::from_utf8_lossy(bytes);
        if let Some(topic) = sayings.of(Topic::parse(&text)) {
            assert_eq!(
                Topic::parse(&topic.to_string()).expect("its own name"),
                topic
            );
        }
        let _ = sayings.of(WorkspaceId::new(&text));
        let _ = sayings.of(FlowId::new(&text));
        let _ = sayings.of(tg_flow::engine::address::Address::parse(&text));
    });
}

#[test]
fn terms() {
    let triple = triples().triples[0].to_api().to_string();
    let seeds = [
        triple.as_bytes(),
        b"{\"t\": \"l\", \"v\": 1, \"d\": null}",
        b"\"<urn:a>\"",
    ];
    run("terms", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let _ = Term::guess(&text);
        if let Ok(value) = serde_json::from_slice::<Value>(bytes) {
            if let Some(term) = Term::from_api(&value) {
                assert_eq!(Term::from_api(&term.to_api()).as_ref(), Some(&term));
            }
            let _ = Triple::from_api(&value);
        }
    });
}

#[test]
fn files_of_cores() {
    let mut seed = Vec::new();
    let record = serde_json::json!(["t", {"m": {"i": "id", "c": "c"}, "t": [[["i", "urn:a"], 1, -2, 0.5, null, true]]}]);
    pack(&record, &mut seed);
    let seeds: [&[u8]; 3] = [
        &seed,
        b"\xdd\xff\xff\xff\xff",
        b"\x92\xa1ge\x81\xa1v\xcb\0\0\0\0\0\0\0\0",
    ];
    run("files of cores", &seeds, |bytes| {
        let whole = Scanner::default().end(bytes);
        // Byte by byte it ends where it ends at once.
        let mut scanner = Scanner::default();
        let cut = (0..=bytes.len().min(256)).find_map(|end| scanner.end(&bytes[..end]).transpose());
        if let (Ok(Some(at)), Some(Ok(cut))) = (&whole, cut) {
            assert_eq!(*at, cut);
        }
        if let Ok(Some(end)) = whole
            && let Ok(value) = unpack(&bytes[..end])
            && let Ok(body) = to_put(value, "core")
        {
            let _ = to_record(&body);
        }
        let _ = unpack(bytes);
    });
}
