//! What decides what a processor makes of a chunk, beside the chunk: whoever reads chunks and whoever has to know whether they
//! are to be read again say the same.

use crate::processors::{
    kg_extract_agent, kg_extract_definitions, kg_extract_ontology, kg_extract_relationships,
    kg_extract_rows, prompt, prompt_rag,
};

/// Config type of prompts.
pub const PROMPTS: &str = "prompt";
/// Config type of ontologies.
pub const ONTOLOGIES: &str = "ontology";
/// Row of the system prompt.
const SYSTEM: &str = "system";

/// What decides what one processor makes of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Determinants {
    /// Id of the processor.
    pub processor: &'static str,
    /// The prompt that it uses, and others whose text has a part in the reply.
    pub prompts: &'static [&'static str],
    /// Processor that renders it, and so knows which model replies.
    pub renderer: &'static str,
    /// Types of configuration of which each row counts.
    pub kinds: &'static [&'static str],
}

/// Of definitions.
pub const DEFINITIONS: Determinants = Determinants {
    processor: kg_extract_definitions::PROCESSOR.id,
    prompts: &["extract-definitions"],
    renderer: prompt::PROCESSOR.id,
    kinds: &[],
};
/// Of relationships.
pub const RELATIONSHIPS: Determinants = Determinants {
    processor: kg_extract_relationships::PROCESSOR.id,
    prompts: &["extract-relationships"],
    renderer: prompt::PROCESSOR.id,
    kinds: &[],
};
/// Of what ontologies name.
pub const ONTOLOGY: Determinants = Determinants {
    processor: kg_extract_ontology::PROCESSOR.id,
    prompts: &["extract-with-ontologies"],
    renderer: prompt::PROCESSOR.id,
    kinds: &[ONTOLOGIES],
};
/// Of rows of tables.
pub const ROWS: Determinants = Determinants {
    processor: kg_extract_rows::PROCESSOR.id,
    prompts: &["extract-rows"],
    renderer: prompt::PROCESSOR.id,
    kinds: &[crate::table::TABLE],
};
/// Of what an agent finds. The agent's own prompt has its part in what it answers.
pub const AGENT: Determinants = Determinants {
    processor: kg_extract_agent::PROCESSOR.id,
    prompts: &["agent-kg-extract", "agent-react"],
    renderer: prompt_rag::PROCESSOR.id,
    kinds: &[],
};
/// Of each processor that has a model read chunks.
pub const DETERMINANTS: [Determinants; 5] = [DEFINITIONS, RELATIONSHIPS, ONTOLOGY, ROWS, AGENT];

/// What decides what a processor makes of a chunk; `None` of one that no configuration but its own row decides about.
pub fn of(processor: &str) -> Option<&'static Determinants> {
    DETERMINANTS.iter().find(|one| one.processor == processor)
}

/// Keys of the rows that make up prompts, of the config type [`PROMPTS`].
pub fn prompt_rows(prompts: &[&str]) -> impl Iterator<Item = String> {
    let templates = prompts.iter().map(|id| format!("template.{id}"));
    templates.chain([SYSTEM.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processors::{PROCESSORS, Role};

    #[test]
    fn whoever_has_a_model_read_chunks_is_listed() {
        let asks = ["PromptRequest", "AgentRequest"];
        for known in PROCESSORS {
            let has = |role, messages: &[&str]| {
                let mut specs = known.wired();
                specs.any(|spec| spec.role == role && messages.contains(&spec.message))
            };
            if has(Role::Reads, &["Chunk"]) && has(Role::Asks, &asks) {
                let listed = of(known.id);
                assert!(
                    listed.is_some_and(|one| !one.prompts.is_empty()),
                    "{}",
                    known.id
                );
            }
        }
        let rows: Vec<_> = prompt_rows(&["a"]).collect();
        assert_eq!(rows, ["template.a", "system"]);
    }
}
