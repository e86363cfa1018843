//! Specs that several processors have, for code that works in each of them, and specs with two ends.

use super::spec::{Asks, Reads, Spec, Writes};
use crate::msg::*;

/// The two specs of a question that a config row names, `<what>-request` and `<what>-response`.
macro_rules! asks {
    ($($(#[$doc:meta])* $name:ident($what:literal): $question:ty => $reply:ty;)*) => {
        $(
            $(#[$doc])*
            pub const $name: Spec<Asks<$question, $reply>> =
                Spec::pair(concat!($what, "-request"), concat!($what, "-response"));
        )*
    };
}

asks! {
    /// Asks the agent.
    AGENT("agent"): AgentRequest => AgentResponse;
    /// Asks for an answer from documents.
    DOCUMENT_RAG("document-rag"): DocumentRagQuery => DocumentRagResponse;
    /// Asks for the chunks next to a vector.
    DOCUMENT_EMBEDDINGS("document-embeddings"): DocumentEmbeddingsRequest => DocumentEmbeddingsResponse;
    /// Asks for the vectors of texts.
    EMBEDDINGS("embeddings"): EmbeddingsRequest => EmbeddingsResponse;
    /// Asks for the entities next to a vector.
    GRAPH_EMBEDDINGS("graph-embeddings"): GraphEmbeddingsRequest => GraphEmbeddingsResponse;
    /// Asks for an answer from the graph.
    GRAPH_RAG("graph-rag"): GraphRagQuery => GraphRagResponse;
    /// Asks what a picture shows.
    IMAGE_TO_TEXT("image-to-text"): ImageToTextRequest => ImageToTextResponse;
    /// Asks for the chunks that hold words.
    KEYWORD_INDEX("keyword-index"): KeywordIndexRequest => KeywordIndexResponse;
    /// Asks the library.
    LIBRARIAN("librarian"): LibrarianRequest => LibrarianResponse;
    /// Asks a tool to be called.
    MCP_TOOL("mcp-tool"): ToolRequest => ToolResponse;
    /// Asks for a structured query that a question in words stands for.
    NLP_QUERY("nlp-query"): QuestionToStructuredQueryRequest => QuestionToStructuredQueryResponse;
    /// Asks for a text that a model writes by a template.
    PROMPT("prompt"): PromptRequest => PromptResponse;
    /// Asks for texts by how much they have to do with a question.
    RERANKER("reranker"): RerankerRequest => RerankerResponse;
    /// Asks for the rows next to a vector.
    ROW_EMBEDDINGS("row-embeddings-query"): RowEmbeddingsRequest => RowEmbeddingsResponse;
    /// Asks for rows.
    ROWS_QUERY("rows-query"): RowsQueryRequest => RowsQueryResponse;
    /// Asks a query of the graph.
    SPARQL("sparql"): SparqlQueryRequest => SparqlQueryResponse;
    /// Asks for rows by a question in words.
    STRUCTURED_QUERY("structured-query"): StructuredQueryRequest => StructuredQueryResponse;
    /// Asks a model.
    TEXT_COMPLETION("text-completion"): TextCompletionRequest => TextCompletionResponse;
    /// Asks a hook of the flow about a call of a tool.
    TOOL_HOOK("tool-hook"): ToolHookRequest => ToolHookResponse;
    /// Asks for triples by a pattern.
    TRIPLES_QUERY("triples"): TriplesQueryRequest => TriplesQueryResponse;
}

/// Asks the graph store of the flow for the edges around nodes.
pub const NEIGHBOURS: Spec<Asks<NeighbourhoodRequest, NeighbourhoodResponse>> =
    Spec::new("graph-neighbours").own();
/// Asks the graph store of the flow where facts come from.
pub const SOURCES: Spec<Asks<SourcesRequest, SourcesResponse>> = Spec::new("graph-sources").own();

/// Asks the model of the flow with a chat.
pub const CHAT_COMPLETION: Spec<Asks<ChatCompletionRequest, ChatCompletionResponse>> =
    Spec::new("chat-completion").own();

/// Asks the prompt service of the flow how long a prompt is.
pub const PROMPT_MEASURE: Spec<Asks<PromptRequest, MeasureResponse>> =
    Spec::new("measure-prompt").own();
/// Asks the agent of the flow how long its first prompt about a question is.
pub const AGENT_MEASURE: Spec<Asks<MeasureRequest, MeasureResponse>> =
    Spec::new("measure-agent").own();

/// Writes triples that were found in a text.
pub const TRIPLES: Spec<Writes<Triples>> = Spec::new("triples");
/// Writes what is known of entities.
pub const ENTITY_CONTEXTS: Spec<Writes<EntityContexts>> = Spec::new("entity-contexts");
/// Writes the trace of an answer.
pub const EXPLAINABILITY: Spec<Writes<Triples>> = Spec::new("explainability");
/// Writes what the stores of a flow have to forget. A flow that has a store has its queue from the start, so that what
/// is to be forgotten waits for a store that is away.
pub const RETRACT: Spec<Writes<Retract>> = Spec::new("retract").own().droppable();
/// Writes one record per model call, where a blueprint wires somebody to it who counts them.
pub const USAGE: Spec<Writes<Usage>> = Spec::new("usage").own().droppable();
/// Writes the steps of an agent's runs, which the agent itself reads.
pub const STEP: Spec<Writes<AgentRun>> = Spec::new("agent-step").own();
/// Writes a step together with what the step before left behind, as one record. A relay, without a reader of its own:
/// it passes on to [`STEP`] and to [`TRACE`].
pub const STEP_AND_TRACE: Spec<Writes<AgentRun>> = Spec::new("agent-next").own().droppable();
/// Writes what a step leaves behind, as one record. A relay: it passes on to [`EXPLAINABILITY`] and [`LIBRARY_TEXTS`].
pub const TRACE: Spec<Writes<Triples>> = Spec::new("agent-trace").own().droppable();
/// Writes what cannot be handled now.
pub const DEAD_LETTERS: Spec<Writes<DeadLetter>> = Spec::new("put-aside").system();
/// Writes who handled which record of a run.
pub const RUN_TALLY: Spec<Writes<RunTally>> = Spec::new("run-tally").system();
/// Writes texts for the library of a workspace.
pub const LIBRARY_TEXTS: Spec<Writes<LibraryTexts>> = Spec::new("library-texts").system();

/// Reads chunks.
pub const CHUNKS: Spec<Reads<Chunk>> = Spec::new("input").on("chunk-load");
/// Reads objects that were found in a text.
pub const OBJECTS: Spec<Reads<ExtractedObject>> = Spec::new("input").on("rows-store");
