//! Names of attributes: `gen_ai.*` as OpenTelemetry's semantic conventions for generative AI have them (v0.1.0 of
//! `semantic-conventions-genai`), `messaging.*` and `error.type` as its conventions for messaging and for errors, and
//! `threadgraph.*` for what they have no name for. Usage stands on spans of models only, so that a sum over a trace counts
//! no token twice.

/// What is done: `chat`, `execute_tool` or `invoke_agent`.
pub const GEN_AI_OPERATION: &str = "gen_ai.operation.name";
/// Who serves the model.
pub const GEN_AI_PROVIDER: &str = "gen_ai.provider.name";
/// The model that is asked for.
pub const GEN_AI_REQUEST_MODEL: &str = "gen_ai.request.model";
/// The model that answered.
pub const GEN_AI_RESPONSE_MODEL: &str = "gen_ai.response.model";
/// The tool that runs.
pub const GEN_AI_TOOL: &str = "gen_ai.tool.name";
/// Tokens that the model read.
pub const GEN_AI_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
/// Tokens that the model wrote.
pub const GEN_AI_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";

/// What is done with a message: `send` or `process`.
pub const MESSAGING_OPERATION: &str = "messaging.operation.type";
/// The topic or queue.
pub const MESSAGING_DESTINATION: &str = "messaging.destination.name";
/// The message.
pub const MESSAGING_MESSAGE_ID: &str = "messaging.message.id";
/// What joins a question with its answers.
pub const MESSAGING_CONVERSATION: &str = "messaging.message.conversation_id";

/// The kind of a failure.
pub(crate) const ERROR_TYPE: &str = "error.type";

/// The processor that works on a message.
pub const PROCESSOR: &str = "threadgraph.processor";
/// The workspace of a request.
pub const WORKSPACE: &str = "threadgraph.workspace";
/// The flow of a request.
pub const FLOW: &str = "threadgraph.flow";
/// The id of a request, as its client knows it.
pub const REQUEST_ID: &str = "threadgraph.request_id";
/// The endpoint by which a request came.
pub const ENDPOINT: &str = "threadgraph.endpoint";
/// The service, or kind of a flow's service, that a request is for.
pub const SERVICE: &str = "threadgraph.service";
/// The operation of the service.
pub const OPERATION: &str = "threadgraph.operation";
/// The backend of a model that was chosen.
pub const BACKEND: &str = "threadgraph.backend";
/// The kind of a tool.
pub const TOOL_KIND: &str = "threadgraph.tool.kind";
/// The run of an agent.
pub const RUN: &str = "threadgraph.run";
/// The number of a run's step.
pub const STEP: &str = "threadgraph.step";
