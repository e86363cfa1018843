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

/// `dc:title`.
pub const DC_TITLE: &str = "http://purl.org/dc/elements/1.1/title";
/// `skos:definition`.
pub const SKOS_DEFINITION: &str = "http://www.w3.org/2004/02/skos/core#definition";

/// Terms of PROV-O.
pub mod prov {
    /// Class of what makes entities.
    pub const ACTIVITY: &str = "http://www.w3.org/ns/prov#Activity";
    /// Class of who acts.
    pub const AGENT: &str = "http://www.w3.org/ns/prov#Agent";
    /// What made something.
    pub const WAS_GENERATED_BY: &str = "http://www.w3.org/ns/prov#wasGeneratedBy";
    /// What an activity read.
    pub const USED: &str = "http://www.w3.org/ns/prov#used";
    /// Who carried an activity out.
    pub const WAS_ASSOCIATED_WITH: &str = "http://www.w3.org/ns/prov#wasAssociatedWith";
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

        /// Class: a document of the library.
        DOCUMENT_CLASS = "Document";
        /// Class: a page of a document.
        PAGE = "Page";
        /// Class: a part of a document that has no pages.
        SECTION = "Section";
        /// Class: a piece of text that extractors read.
        CHUNK = "Chunk";
        /// Class: an image in a document.
        IMAGE = "Image";
        /// Class: what one extractor found in one chunk.
        SUBGRAPH = "Subgraph";
        /// Link from a subgraph to a fact, as a quoted triple.
        CONTAINS = "contains";
        /// MIME type.
        MIME_TYPE = "mimeType";
        /// Number of a page, from 1.
        PAGE_NUMBER = "pageNumber";
        /// Number of a chunk in its parent, from 1.
        CHUNK_INDEX = "chunkIndex";
        /// Where a chunk begins in its parent's text, in characters from 0.
        CHAR_OFFSET = "charOffset";
        /// Characters of a chunk.
        CHAR_LENGTH = "charLength";
        /// Size that a chunker was set to.
        CHUNK_SIZE = "chunkSize";
        /// Overlap that a chunker was set to.
        CHUNK_OVERLAP = "chunkOverlap";
        /// Version of the component that acted.
        COMPONENT_VERSION = "componentVersion";
        /// Kinds of elements on a page, with commas between.
        ELEMENT_TYPES = "elementTypes";
        /// Tables on a page.
        TABLE_COUNT = "tableCount";
        /// Images on a page.
        IMAGE_COUNT = "imageCount";
        /// Ontology that guided an extraction.
        ONTOLOGY = "ontology";
        /// Class: a question to GraphRAG.
        GRAPH_RAG_QUESTION = "GraphRagQuestion";
        /// Class: a question to DocumentRAG.
        DOC_RAG_QUESTION = "DocRagQuestion";
        /// Class: what a question is about.
        GROUNDING = "Grounding";
        /// Class: what was looked at for an answer.
        EXPLORATION = "Exploration";
        /// Class: what was chosen for an answer.
        FOCUS = "Focus";
        /// Class: an answer written from what was chosen.
        SYNTHESIS = "Synthesis";
        /// Class: a chosen edge.
        EDGE_SELECTION = "EdgeSelection";
        /// Class: a chosen chunk.
        CHUNK_SELECTION = "ChunkSelection";
        /// Something the question is about, or a choice was made for.
        CONCEPT = "concept";
        /// Link to an entity that the search of the graph began with.
        ENTITY = "entity";
        /// Edges looked at.
        EDGE_COUNT = "edgeCount";
        /// Chunks looked at.
        CHUNK_COUNT = "chunkCount";
        /// Link to a chosen edge's description.
        SELECTED_EDGE = "selectedEdge";
        /// Link to a chunk, or to a chosen chunk's description.
        SELECTED_CHUNK = "selectedChunk";
        /// The chosen edge, as a quoted triple.
        EDGE = "edge";
        /// How well the chosen fits.
        SCORE = "score";
        /// Link from an answer to a selection that it cites.
        CITES = "cites";
        /// Version of the prompt behind an extraction.
        PROMPT_VERSION = "promptVersion";
    }
}
