//! IRIs of RDF: namespaces and terms that the product reads or writes, exactly as readers of graphs and traces expect
//! them. They stand here alone, so that two readers of one term cannot differ.

/// Beginning of the graphs of the product's own, which hold no facts.
pub const OWN_GRAPHS: &str = "urn:graph:";
/// Graph of query-time traces.
pub const RETRIEVAL_GRAPH: &str = "urn:graph:retrieval";
/// Graph of extraction provenance.
pub const SOURCE_GRAPH: &str = "urn:graph:source";
/// Graph of policies, which decide who sees what of their collection; readers leave it out of knowledge.
pub const POLICY_GRAPH: &str = "urn:graph:policy";

/// Namespaces of the XML form of messages between listeners.
pub mod message {
    /// The envelope.
    pub const ENVELOPE: &str = "https://xml-pipeline.org/ns/envelope/v1";
    /// What the system itself says.
    pub const CORE: &str = "https://xml-pipeline.org/ns/core/v1";
    /// What is inherited along a chain, beside what the envelope's own namespace has.
    pub const INHERITED: &str = "urn:tg:message:inherited:v1";
}

/// Beginnings of the IRIs of things that are made here.
pub mod made {
    /// Components that act; the name follows.
    pub const AGENT: &str = "https://trustgraph.ai/agent/";
    /// What an extractor found in a chunk; an id follows.
    pub const SUBGRAPH: &str = "https://trustgraph.ai/subgraph/";
    /// An extractor's work on a chunk; an id follows.
    pub const ACTIVITY: &str = "https://trustgraph.ai/activity/";
    /// Below it `doc/`, `org/` and `pubev/`, each followed by an id.
    pub const LIBRARY: &str = "https://trustgraph.ai/";
    /// Entities found in texts; the name follows.
    pub const ENTITY: &str = "http://trustgraph.ai/e/";
    /// Ontologies that give no IRI of their own; the key follows.
    pub const ONTOLOGY: &str = "https://trustgraph.ai/ontology/";
}

/// The part of a SPARQL pattern that keeps a variable to what the graph knows: no trace, no page, chunk or document, all of
/// which are of classes of [`tg`], and no term of a vocabulary, of which a label alone is said.
pub fn known_things(variable: &str) -> String {
    let (own, label) = (tg::NAMESPACE, rdfs::LABEL);
    format!(
        "FILTER(!isIRI(?{variable}) || !STRSTARTS(STR(?{variable}), \"{own}\")) \
         FILTER NOT EXISTS {{ ?{variable} a ?{variable}_class FILTER(STRSTARTS(STR(?{variable}_class), \"{own}\")) }} \
         FILTER EXISTS {{ {{ ?{variable} ?{variable}_says ?{variable}_more FILTER(?{variable}_says != <{label}>) }} \
         UNION {{ ?{variable}_from ?{variable}_by ?{variable} }} }}"
    )
}

macro_rules! namespace {
    ($(#[$doc:meta])* $module:ident = $namespace:literal {
        $($(#[$about:meta])* $name:ident = $local:literal;)*
    }) => {
        $(#[$doc])*
        pub mod $module {
            /// The namespace: what the IRIs of its terms begin with.
            pub const NAMESPACE: &str = $namespace;
            $($(#[$about])* pub const $name: &str = concat!($namespace, $local);)*
        }
    };
}

namespace! {
    /// RDF 1.1.
    rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#" {
        /// Of which class something is.
        TYPE = "type";
    }
}

namespace! {
    /// RDF Schema 1.1.
    rdfs = "http://www.w3.org/2000/01/rdf-schema#" {
        /// Name for readers.
        LABEL = "label";
        /// Description for readers.
        COMMENT = "comment";
    }
}

namespace! {
    /// SHACL, with its advanced features: what policies are written in.
    sh = "http://www.w3.org/ns/shacl#" {
        /// Class of a policy.
        NODE_SHAPE = "NodeShape";
        /// Its place among others, a number.
        ORDER = "order";
        /// What it is about.
        TARGET = "target";
        /// A query for `?this`.
        SELECT = "select";
        /// What it says of that.
        RULE = "rule";
        /// A query that makes a result.
        CONSTRUCT = "construct";
        /// Where the prefixes of a query are declared.
        PREFIXES = "prefixes";
        /// A declared prefix.
        DECLARE = "declare";
        /// Its short form.
        PREFIX = "prefix";
        /// What it stands for.
        NAMESPACE_OF = "namespace";
        /// Class of what a rule makes.
        VALIDATION_RESULT = "ValidationResult";
    }
}

namespace! {
    /// What the result of a policy says.
    policy = "https://trustgraph.ai/ontology/policy/" {
        /// Whether the thing is hidden; without it, it is.
        BLOCKS = "blocks";
    }
}

namespace! {
    /// What policies know of the user.
    user_context = "https://trustgraph.ai/ontology/user-context/" {
        /// Class of the user.
        CLASS = "UserContext";
        /// A unit of the organisation that the user belongs to.
        ORGANISATIONAL_UNIT = "organisationalUnit";
        /// A role of the user.
        ROLE = "role";
        /// What the question is for.
        PURPOSE = "purpose";
        /// Something that the user is assigned to.
        HAS_ASSIGNMENT = "hasAssignment";
        /// What that is.
        RESOURCE = "resource";
        /// How far an assignment or delegation goes.
        SCOPE = "scope";
        /// Whether an assignment holds.
        STATUS = "status";
        /// From when something holds.
        VALID_FROM = "validFrom";
        /// Until when something holds.
        VALID_TO = "validTo";
        /// More about an assignment, by names of the policies' own.
        QUALIFIERS = "qualifiers";
        /// Something that the user may see.
        HAS_ENTITLEMENT = "hasEntitlement";
        /// What that is.
        RESOURCE_SCOPE = "resourceScope";
        /// How far the access goes.
        ACCESS_LEVEL = "accessLevel";
        /// A right to pass over a policy.
        HAS_OVERRIDE_AUTHORITY = "hasOverrideAuthority";
        /// Of which area.
        POLICY_AREA = "policyArea";
        /// When.
        CONDITION = "condition";
        /// For whom the user acts.
        HAS_DELEGATION = "hasDelegation";
        /// Who that is.
        DELEGATOR_ID = "delegatorId";
    }
}

namespace! {
    /// Datatypes of XML Schema 1.1.
    xsd = "http://www.w3.org/2001/XMLSchema#" {
        /// Text: the datatype of a literal that names none.
        STRING = "string";
        /// Whole number.
        INTEGER = "integer";
    }
}

namespace! {
    /// SPARQL 1.1 Service Description.
    sd = "http://www.w3.org/ns/sparql-service-description#" {}
}

namespace! {
    /// OWL 2.
    owl = "http://www.w3.org/2002/07/owl#" {}
}

/// Dublin Core: the fifteen elements, and the terms that came after them.
pub const DUBLIN_CORE: &str = "http://purl.org/dc/";

namespace! {
    /// Dublin Core, the fifteen elements.
    dc = "http://purl.org/dc/elements/1.1/" {
        /// Title.
        TITLE = "title";
    }
}

namespace! {
    /// Dublin Core terms.
    dcterms = "http://purl.org/dc/terms/" {
        /// MIME type.
        FORMAT = "format";
        /// Title.
        TITLE = "title";
    }
}

namespace! {
    /// SKOS.
    skos = "http://www.w3.org/2004/02/skos/core#" {
        /// What a concept means.
        DEFINITION = "definition";
        /// Name that is preferred.
        PREF_LABEL = "prefLabel";
        /// Another name.
        ALT_LABEL = "altLabel";
    }
}

namespace! {
    /// schema.org.
    schema = "https://schema.org/" {
        /// Name.
        NAME = "name";
    }
}

namespace! {
    /// schema.org as many datasets write it.
    schema_http = "http://schema.org/" {
        /// Name.
        NAME = "name";
    }
}

namespace! {
    /// FOAF.
    foaf = "http://xmlns.com/foaf/0.1/" {
        /// Name.
        NAME = "name";
    }
}

namespace! {
    /// PROV-O.
    prov = "http://www.w3.org/ns/prov#" {
        /// Class of what makes entities.
        ACTIVITY = "Activity";
        /// Class of who acts.
        AGENT = "Agent";
        /// What made something.
        WAS_GENERATED_BY = "wasGeneratedBy";
        /// What an activity read.
        USED = "used";
        /// Who carried an activity out.
        WAS_ASSOCIATED_WITH = "wasAssociatedWith";
        /// Class of everything in a trace except thoughts.
        ENTITY = "Entity";
        /// What something was made from.
        WAS_DERIVED_FROM = "wasDerivedFrom";
        /// What says the same of the same things.
        ALTERNATE_OF = "alternateOf";
        /// When a session began.
        STARTED_AT_TIME = "startedAtTime";
    }
}

namespace! {
    /// Terms of traces and of extraction.
    tg = "https://trustgraph.ai/ns/" {
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
        /// Class: how a question is gone about.
        PATTERN_DECISION = "PatternDecision";

        /// Class: a plan of steps.
        PLAN = "Plan";
        /// Class: what came of a step of a plan.
        STEP_RESULT = "StepResult";
        /// Class: a question split among subagents.
        DECOMPOSITION = "Decomposition";
        /// Class: what a subagent found.
        FINDING = "Finding";
        /// What a step of a plan is to find out.
        PLAN_STEP = "planStep";
        /// What a subagent is to find out.
        SUBAGENT_GOAL = "subagentGoal";

        /// The question's text.
        QUERY = "query";
        /// Id of the thread of listeners on which the question was asked.
        THREAD = "thread";
        /// Id of the thread of the listener that asked it.
        PARENT_THREAD = "parentThread";
        /// Name of the tool chosen.
        ACTION = "action";
        /// Arguments as JSON text.
        ARGUMENTS = "arguments";
        /// A tool that could have been chosen.
        TOOL_CANDIDATE = "toolCandidate";
        /// Number of the step, from 1.
        STEP_NUMBER = "stepNumber";
        /// Which of the calls that a step makes side by side it is, from 1.
        CALL_NUMBER = "callNumber";
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
        /// Name of the pattern chosen.
        PATTERN = "pattern";
        /// Type of the task.
        TASK_TYPE = "taskType";
        /// Why a run ended.
        TERMINATION_REASON = "terminationReason";
        /// Class: what a guard did about a step.
        GUARD = "Guard";
        /// What it did: `warn`, `tell`, `block`, `stop`.
        GUARD_RUNG = "guardRung";
        /// What found that it was needed.
        GUARD_DETECTOR = "guardDetector";
        /// How much was counted.
        GUARD_COUNT = "guardCount";
        /// Class: a summary that stands for earlier steps of a run.
        COMPACTION = "Compaction";
        /// How good it is: `full`, `partial`, `note`, `hard_clear`.
        COMPACTION_TIER = "compactionTier";
        /// How many steps it stands for, from the first on.
        COMPACTED_STEPS = "compactedSteps";
        /// Tokens, about, that the steps took before.
        TOKENS_BEFORE = "tokensBefore";
        /// Tokens, about, that they take now.
        TOKENS_AFTER = "tokensAfter";
        /// The summary.
        SUMMARY = "summary";
        /// Id of the prompt that asked for it.
        PROMPT = "prompt";
        /// Class: a user was asked before a tool was used.
        CONFIRMATION = "Confirmation";
        /// What came of it: `yes`, `no`, `unanswered`, `too-many`.
        CONFIRMATION_ANSWER = "confirmationAnswer";
        /// User who answered.
        CONFIRMATION_BY = "confirmationBy";
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
        /// A file whose facts were loaded; the library does not have it.
        LOADED_FILE = "LoadedFile";
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
        /// Link from an answer, or from a citation, to a selection that it cites.
        CITES = "cites";
        /// Class: a number in an answer, with what it names.
        CITATION_CLASS = "Citation";
        /// Link from an answer to one of its citations.
        CITATION = "citation";
        /// Number by which an answer cites, from 1.
        CITATION_NUMBER = "citationNumber";
        /// Literal `true` of an answer that says that there is none.
        REFUSED = "refused";
        /// SHA-256 of what a trace says of an entity, in hexadecimal; see `docs/traces.md`.
        ENTITY_HASH = "entityHash";
        /// The entity hash of an entity before.
        PREVIOUS_HASH = "previousHash";
        /// SHA-256 of an entity's text in the library, in hexadecimal.
        TEXT_HASH = "textHash";
        /// Version of the prompt behind an extraction.
        PROMPT_VERSION = "promptVersion";
    }
}
