//! Processors that answer questions: agents, retrieval, prompts, models and tools.

use super::declare::{ProcessorScope, ProcessorSpec, Rows, count, flatten, processors};
use super::shared;
use super::spec::{Asks, Hears, Reads, Serves, Spec, SpecRow, Writes};
use crate::msg::*;

processors! {
    /// Runs agents, step by step.
    agent_manager("agent-manager", Flow, hosted: true) {
        MEASURE: Serves<MeasureRequest, MeasureResponse> = shared::AGENT_MEASURE.served();
        NEXT: Asks<AgentRequest, AgentResponse> = Spec::new("next");
        NEXT_STEP: Writes<AgentRun> = shared::STEP;
        NEXT_STEP_AND_TRACE: Writes<AgentRun> = shared::STEP_AND_TRACE;
        STEP_TRACE: Writes<Triples> = shared::TRACE;
        REQUEST: Serves<AgentRequest, AgentResponse> = Spec::pair("request", "response");
        RUNS: Serves<AgentRunsRequest, AgentRunsResponse> = Spec::new("agent-runs").system();
        STEP: Reads<AgentRun> = shared::STEP.read();
        TRACES: Serves<TracesRequest, TracesResponse> = Spec::new("traces").workspace();
        USAGE_TOTALS: Serves<UsageRequest, UsageResponse> = Spec::new("usage").workspace();
        + [
            CHAT_COMPLETION, DOCUMENT_EMBEDDINGS, DOCUMENT_RAG, EMBEDDINGS, EXPLAINABILITY, GRAPH_RAG, IMAGE_TO_TEXT, LIBRARIAN,
            LIBRARY_TEXTS, MCP_TOOL, PROMPT, PROMPT_MEASURE, ROW_EMBEDDINGS, SOURCES, SPARQL, STRUCTURED_QUERY, TEXT_COMPLETION,
            TOOL_HOOK, TRIPLES_QUERY,
        ];
    }

    /// Answers questions from documents.
    document_rag("document-rag", Flow, hosted: true) {
        REQUEST: Serves<DocumentRagQuery, DocumentRagResponse> = Spec::pair("request", "response");
        + [
            DOCUMENT_EMBEDDINGS, EMBEDDINGS, EXPLAINABILITY, KEYWORD_INDEX, LIBRARIAN,
            LIBRARY_TEXTS, NEIGHBOURS, PROMPT, RERANKER, SOURCES,
        ];
    }

    /// Answers questions from the graph.
    graph_rag("graph-rag", Flow, hosted: true) {
        REQUEST: Serves<GraphRagQuery, GraphRagResponse> = Spec::pair("request", "response");
        + [
            EMBEDDINGS, EXPLAINABILITY, GRAPH_EMBEDDINGS, LIBRARIAN, LIBRARY_TEXTS, NEIGHBOURS,
            PROMPT, RERANKER, SOURCES, TRIPLES_QUERY,
        ];
    }

    /// Describes pictures.
    image_to_text("image-to-text", Flow, hosted: true, parameters: ["model"]) {
        REQUEST: Serves<ImageToTextRequest, ImageToTextResponse> =
            Spec::pair("request", "response");
        + [USAGE];
    }

    /// Calls tools.
    mcp_tool("mcp-tool", Flow, hosted: true) {
        REQUEST: Serves<ToolRequest, ToolResponse> = Spec::pair("request", "response");
        + [TEXT_COMPLETION];
    }

    /// Counts what models are asked.
    metering("metering", Flow, hosted: false) {
        INPUT: Hears<TextCompletionResponse> = Spec::new("input");
    }

    /// Counts what models of retrieval are asked.
    metering_rag("metering-rag", Flow, hosted: false) {
        INPUT: Hears<TextCompletionResponse> = Spec::new("input");
    }

    /// Turns questions in words into structured queries.
    nlp_query("nlp-query", Flow, hosted: true) {
        REQUEST: Serves<QuestionToStructuredQueryRequest, QuestionToStructuredQueryResponse> =
            Spec::pair("request", "response");
        + [PROMPT];
    }

    /// Renders templates and has a model write.
    prompt("prompt", Flow, hosted: true) {
        MEASURE: Serves<PromptRequest, MeasureResponse> = shared::PROMPT_MEASURE.served();
        REQUEST: Serves<PromptRequest, PromptResponse> = Spec::pair("request", "response");
        + [TEXT_COMPLETION];
    }

    /// Renders the templates of retrieval and has a model write.
    prompt_rag("prompt-rag", Flow, hosted: true) {
        REQUEST: Serves<PromptRequest, PromptResponse> = Spec::pair("request", "response");
        + [TEXT_COMPLETION];
    }

    /// Orders texts by how much they have to do with a question.
    reranker("reranker", Flow, hosted: true, parameters: ["model"]) {
        REQUEST: Serves<RerankerRequest, RerankerResponse> = Spec::pair("request", "response");
        + [EMBEDDINGS];
    }

    /// Describes structured data.
    structured_diag("structured-diag", Flow, hosted: true) {
        REQUEST: Serves<StructuredDataDiagnosisRequest, StructuredDataDiagnosisResponse> =
            Spec::pair("request", "response");
        + [PROMPT];
    }

    /// Finds rows by a question in words.
    structured_query("structured-query", Flow, hosted: true) {
        REQUEST: Serves<StructuredQueryRequest, StructuredQueryResponse> =
            Spec::pair("request", "response");
        + [NLP_QUERY, ROWS_QUERY];
    }

    /// Asks a model.
    text_completion("text-completion", Flow, hosted: true, parameters: ["model", "temperature"]) {
        CHAT: Serves<ChatCompletionRequest, ChatCompletionResponse> = shared::CHAT_COMPLETION.served();
        REQUEST: Serves<TextCompletionRequest, TextCompletionResponse> =
            Spec::pair("request", "response");
        + [USAGE];
    }

    /// Asks the model of retrieval.
    text_completion_rag("text-completion-rag", Flow, hosted: true, parameters: ["model", "temperature"]) {
        REQUEST: Serves<TextCompletionRequest, TextCompletionResponse> =
            Spec::pair("request", "response");
        + [USAGE];
    }
}
