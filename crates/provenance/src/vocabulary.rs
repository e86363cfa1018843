//! IRIs of graphs, classes and predicates, exactly as readers of traces expect them.

/// Graph of query-time traces.
pub const RETRIEVAL_GRAPH: &str = "urn:graph:retrieval";
/// Graph of extraction provenance.
pub const SOURCE_GRAPH: &str = "urn:graph:source";

/// `rdf:type`.
pub const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
/// `rdfs:label`.
pub const RDFS_LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";
/// `rdfs:comment`.
pub const RDFS_COMMENT: &str = "http://www.w3.org/2000/01/rdf-schema#comment";

/// Terms of PROV-O.
pub mod prov {
    /// Class of everything in a trace except thoughts.
    pub const ENTITY: &str = "http://www.w3.org/ns/prov#Entity";
    /// What something was made from.
    pub const WAS_DERIVED_FROM: &str = "http://www.w3.org/ns/prov#wasDerivedFrom";
    /// When a session began.
    pub const STARTED_AT_TIME: &str = "http://www.w3.org/ns/prov#startedAtTime";
}

/// Terms of the trace vocabulary.
pub mod tg {
    macro_rules! terms {
        ($($(#[$doc:meta])* $name:ident = $local:literal;)*) => {
            $($(#[$doc])* pub const $name: &str = concat!("https://trustgraph.ai/ns/", $local);)*
        };
    }

    terms! {
        /// Class: any question.
        QUESTION = "Question";
        /// Class: a question to an agent.
        AGENT_QUESTION = "AgentQuestion";
        /// Class: a decision of an agent.
        ANALYSIS = "Analysis";
        /// Class: a decision to use a tool.
        TOOL_USE = "ToolUse";
        /// Class: umbrella of thoughts.
        REFLECTION = "Reflection";
        /// Class: a thought.
        THOUGHT_CLASS = "Thought";
        /// Class: what a tool returned.
        OBSERVATION = "Observation";
        /// Class: the end of a run.
        CONCLUSION = "Conclusion";
        /// Class: umbrella of answers.
        ANSWER = "Answer";
        /// Class: something failed.
        ERROR = "Error";

        /// The question's text.
        QUERY = "query";
        /// Name of the tool chosen.
        ACTION = "action";
        /// Arguments as JSON text.
        ARGUMENTS = "arguments";
        /// A tool that could have been chosen.
        TOOL_CANDIDATE = "toolCandidate";
        /// Number of the step, from 1.
        STEP_NUMBER = "stepNumber";
        /// Duration of the model call.
        LLM_DURATION_MS = "llmDurationMs";
        /// Duration of the tool call.
        TOOL_DURATION_MS = "toolDurationMs";
        /// What the tool's failure said.
        TOOL_ERROR = "toolError";
        /// Link from a decision to its thought.
        THOUGHT = "thought";
        /// Link to the stored text.
        DOCUMENT = "document";
        /// Why a run ended.
        TERMINATION_REASON = "terminationReason";
        /// Input tokens of a model call.
        IN_TOKEN = "inToken";
        /// Output tokens of a model call.
        OUT_TOKEN = "outToken";
        /// Model that was called.
        LLM_MODEL = "llmModel";
    }
}
