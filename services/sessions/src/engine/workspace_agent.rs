//! What an agent of a workspace may be like, and how it changes.

use tg_schemas::operations::{AgentChange, Failure, NewAgent};

use super::chat::ChatDefaults;
use super::definition::{Definition, Reranking};

/// Longest name, description and prompt, in characters.
const NAME: usize = 200;
const DESCRIPTION: usize = 2_000;
const PROMPT: usize = 131_072;
/// Most collections that an agent reads, and longest name of one, in characters.
pub const COLLECTIONS: usize = 100;
const COLLECTION: usize = 256;
/// Most passages of a collection.
const MOST_PASSAGES: i64 = 100;

/// Whether a text is a UUID in its usual form.
pub fn is_id(text: &str) -> bool {
    let digits = |part: &str, count: usize| {
        part.len() == count && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let parts: Vec<&str> = text.split('-').collect();
    let sizes = [8, 4, 4, 4, 12];
    parts.len() == sizes.len()
        && parts
            .iter()
            .zip(sizes)
            .all(|(part, size)| digits(part, size))
}

/// An id that a request names.
///
/// # Errors
/// It is not a UUID.
pub fn id<'a>(field: &str, text: &'a str) -> Result<&'a str, Failure> {
    match is_id(text) {
        true => Ok(text),
        false => Err(Failure::invalid(field, "must be a UUID")),
    }
}

/// What an agent is like, as it is kept: collections sorted, each once.
///
/// # Errors
/// The first field that is out of its range, or names what is not there.
pub fn settled(mut agent: NewAgent) -> Result<NewAgent, Failure> {
    let name = agent.name.chars().count();
    if agent.name.trim().is_empty() {
        return Err(Failure::invalid("name", "is required"));
    }
    if name > NAME {
        return Err(Failure::invalid("name", "must have at most 200 characters"));
    }
    let texts = [
        ("description", &agent.description, DESCRIPTION),
        ("systemPrompt", &agent.system_prompt, PROMPT),
        ("userPrompt", &agent.user_prompt, PROMPT),
    ];
    for (field, text, most) in texts {
        if text
            .as_ref()
            .is_some_and(|text| text.chars().count() > most)
        {
            return Err(Failure::invalid(
                field,
                &format!("must have at most {most} characters"),
            ));
        }
    }
    for (field, number) in [
        ("ragMaxResults", agent.rag_max_results),
        ("rerankMaxResults", agent.rerank_max_results),
    ] {
        if number.is_some_and(|number| !(1..=MOST_PASSAGES).contains(&number)) {
            let reason = format!("must be a whole number from 1 to {MOST_PASSAGES}");
            return Err(Failure::invalid(field, &reason));
        }
    }
    if agent.rag_min_score.is_some_and(|score| !score.is_finite()) {
        return Err(Failure::invalid("ragMinScore", "must be a number"));
    }
    if let Some(service) = &mut agent.llm_service_id {
        *service = service.to_lowercase();
    }
    if let Some(service) = &mut agent.reranking_service_id {
        *service = service.to_lowercase();
    }
    agent.knowledge_base_ids = collections(agent.knowledge_base_ids)?;
    Ok(agent)
}

/// Collections as a set: sorted, each once.
///
/// # Errors
/// There are too many, or one has no name or a long one.
pub fn collections(mut ids: Vec<String>) -> Result<Vec<String>, Failure> {
    let named = |id: &String| (1..=COLLECTION).contains(&id.chars().count());
    if !ids.iter().all(named) {
        let reason = format!("must hold names of 1 to {COLLECTION} characters");
        return Err(Failure::invalid("knowledgeBaseIds", &reason));
    }
    ids.sort();
    ids.dedup();
    if ids.len() > COLLECTIONS {
        let reason = format!("must have at most {COLLECTIONS} entries");
        return Err(Failure::invalid("knowledgeBaseIds", &reason));
    }
    Ok(ids)
}

/// What an agent without instructions is told where the operator says nothing else.
const INSTRUCTIONS: &str = "You are a helpful assistant. Answer what you are asked, briefly and truthfully, and say so where you do not know.";

/// Tools that every agent of a workspace has: they look into the collections of its conversation.
pub const TOOLS: [&str; 7] = [
    "list_kbs",
    "list_documents",
    "count_documents",
    "summarize_kb",
    "search_kb",
    "list_chunks",
    "get_document",
];

/// What an agent of a workspace answers by.
pub struct Usual<'a> {
    /// The collections of its conversation.
    pub own: &'a [String],
    /// All collections of the workspace.
    pub all: Vec<String>,
    /// What the operator says where the agent says nothing.
    pub chat: &'a ChatDefaults,
}

/// The agent as it answers: by the collections of its conversation, else by its own, else by all of the workspace. What it leaves
/// open the operator says.
pub fn definition(agent: NewAgent, usual: Usual<'_>) -> Definition {
    let chat = usual.chat;
    let instructions = match chat.prompt.as_str() {
        "" => INSTRUCTIONS,
        prompt => prompt,
    };
    let names_model = !chat.model.is_empty();
    let passages = agent.rag_max_results.unwrap_or(chat.passages);
    let kept = agent.rerank_max_results.unwrap_or(passages);
    let prompt = agent.system_prompt.filter(|own| !own.trim().is_empty());
    let mut read = match (usual.own, agent.knowledge_base_ids) {
        ([], own) if own.is_empty() => usual.all,
        ([], own) => own,
        (own, _) => own.to_vec(),
    };
    read.truncate(COLLECTIONS);
    let tools: &[&str] = if read.is_empty() { &[] } else { &TOOLS };
    Definition {
        name: agent.name,
        description: agent.description.unwrap_or_default(),
        model: chat.model.clone(),
        max_tokens: names_model.then_some(chat.max_tokens),
        system_prompt: prompt.unwrap_or_else(|| instructions.to_owned()),
        rag_index: read.first().cloned(),
        rag_top_k: passages,
        rag_min_score: agent.rag_min_score,
        rerank: agent.rerank_enabled.then(|| Reranking {
            kept,
            ..Reranking::default()
        }),
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        knowledge: read.clone(),
        collections: if agent.rag_enabled { read } else { Vec::new() },
        ..Definition::default()
    }
}

/// An agent with what changes of it.
///
/// # Errors
/// As of [`settled`].
pub fn changed(mut agent: NewAgent, change: AgentChange) -> Result<NewAgent, Failure> {
    fn set<T>(field: &mut T, to: Option<T>) {
        if let Some(to) = to {
            *field = to;
        }
    }
    set(&mut agent.name, change.name);
    set(&mut agent.description, change.description);
    set(&mut agent.system_prompt, change.system_prompt);
    set(&mut agent.user_prompt, change.user_prompt);
    set(&mut agent.llm_service_id, change.llm_service_id);
    set(&mut agent.knowledge_base_ids, change.knowledge_base_ids);
    set(&mut agent.rag_enabled, change.rag_enabled);
    set(&mut agent.rag_max_results, change.rag_max_results);
    set(&mut agent.rag_min_score, change.rag_min_score);
    set(&mut agent.rerank_enabled, change.rerank_enabled);
    set(&mut agent.reranking_service_id, change.reranking_service_id);
    set(&mut agent.rerank_max_results, change.rerank_max_results);
    settled(agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> NewAgent {
        NewAgent {
            name: name.to_owned(),
            ..NewAgent::default()
        }
    }

    fn code(result: Result<NewAgent, Failure>) -> &'static str {
        result.map_or_else(|failure| failure.code.as_str(), |_| "")
    }

    #[test]
    fn line_054_collections_are_a_sorted_set() {
        let agent = NewAgent {
            knowledge_base_ids: ["b", "a", "b"].map(str::to_owned).to_vec(),
            ..named("r")
        };
        assert_eq!(settled(agent).unwrap().knowledge_base_ids, ["a", "b"]);
    }

    #[test]
    fn what_an_agent_reads_is_bounded() {
        let read = |ids: Vec<String>| collections(ids).is_ok();
        let many = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        assert!(read(many(COLLECTIONS)) && !read(many(COLLECTIONS + 1)));
        // Each counts once.
        assert!(read(vec!["a".to_owned(); COLLECTIONS + 1]));
        assert!(read(vec!["é".repeat(COLLECTION)]) && !read(vec!["é".repeat(COLLECTION + 1)]));
        assert!(!read(vec![String::new()]));
        for (most, is_well) in [(0, false), (1, true), (100, true), (101, false)] {
            let mut agent = named("a");
            agent.rag_max_results = Some(most);
            assert_eq!(settled(agent).is_ok(), is_well, "{most}");
        }
    }

    #[test]
    fn line_053_services_are_named_in_small_letters() {
        let agent = NewAgent {
            reranking_service_id: Some("X".to_owned()),
            ..named("r")
        };
        let settled_one = settled(agent).unwrap();
        assert_eq!(settled_one.reranking_service_id.as_deref(), Some("x"));
        for bad in [named(" "), named(&"x".repeat(201))] {
            assert_eq!(code(settled(bad)), "validation_error");
        }
    }

    #[test]
    fn line_052_a_change_leaves_the_rest_and_null_clears() {
        let before = NewAgent {
            description: Some("d".to_owned()),
            system_prompt: Some("s".to_owned()),
            ..named("r")
        };
        let change = AgentChange {
            name: Some("q".to_owned()),
            description: Some(None),
            ..AgentChange::default()
        };
        let after = changed(before, change).unwrap();
        assert_eq!((after.name.as_str(), after.description), ("q", None));
        assert_eq!(after.system_prompt.as_deref(), Some("s"));
    }

    #[test]
    fn line_076_the_collections_of_the_conversation_come_first() {
        let list = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let read = |own: &[&str], agents: &[&str], enabled| {
            let agent = NewAgent {
                knowledge_base_ids: list(agents),
                rag_enabled: enabled,
                ..named("r")
            };
            let own = list(own);
            let usual = Usual {
                own: &own,
                all: list(&["k1", "k2", "k3"]),
                chat: &ChatDefaults::default(),
            };
            definition(agent, usual).collections
        };
        assert_eq!(read(&["k1"], &["k2"], true), ["k1"]);
        assert_eq!(read(&[], &["k2"], true), ["k2"]);
        assert_eq!(read(&[], &[], true), ["k1", "k2", "k3"]);
        assert!(read(&["k1"], &["k2"], false).is_empty());
    }

    #[test]
    fn tools_look_into_at_most_a_hundred_collections() {
        let usual = Usual {
            own: &[],
            all: (0..=COLLECTIONS).map(|at| at.to_string()).collect(),
            chat: &ChatDefaults::default(),
        };
        let found = definition(named("r"), usual);
        assert_eq!((found.knowledge.len(), found.tools.len()), (COLLECTIONS, 7));
        assert!(found.collections.is_empty());
    }

    #[test]
    fn what_an_agent_leaves_open_the_operator_says() {
        let of = |agent: NewAgent, chat: &ChatDefaults| {
            let usual = Usual {
                own: &[],
                all: Vec::new(),
                chat,
            };
            definition(agent, usual)
        };
        let found = of(named("r"), &ChatDefaults::default());
        assert_eq!((found.model.as_str(), found.max_tokens), ("", None));
        // There is nothing that its tools could look into.
        assert!(found.tools.is_empty());
        assert_eq!(
            (found.rag_top_k, found.system_prompt.as_str()),
            (6, INSTRUCTIONS)
        );
        let chat = ChatDefaults {
            prompt: "Be terse.".to_owned(),
            passages: 3,
            max_tokens: 77,
            model: "usual".to_owned(),
            service: None,
            of_flow: true,
        };
        let found = of(named("r"), &chat);
        assert_eq!(
            (found.model.as_str(), found.max_tokens),
            ("usual", Some(77))
        );
        assert_eq!(
            (found.rag_top_k, found.system_prompt.as_str()),
            (3, "Be terse.")
        );
        let own = NewAgent {
            system_prompt: Some("Be kind.".to_owned()),
            rag_max_results: Some(9),
            rerank_enabled: true,
            ..named("r")
        };
        let found = of(own, &chat);
        let own = Reranking {
            kept: 9,
            ..Reranking::default()
        };
        assert_eq!(found.rerank, Some(own));
        assert_eq!(
            (found.rag_top_k, found.system_prompt.as_str()),
            (9, "Be kind.")
        );
    }

    #[test]
    fn line_058_an_id_is_a_uuid() {
        assert!(is_id("6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70"));
        for bad in [
            "",
            "x",
            "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d7",
            "6f1f6a526f0c4d3e9a533a1c4b1e2d70",
        ] {
            assert!(id("agent_id", bad).is_err(), "{bad}");
        }
    }
}
