//! What the gateway says of itself: which revisions and capabilities it has, and what a model should know of its tools.

use rmcp::model::{
    DiscoverResult, Implementation, InitializeResult, PromptsCapability, ProtocolVersion,
    ResourcesCapability, ServerCapabilities, ToolsCapability,
};
use serde_json::{Value, json};

use super::revision::Revision;

/// What a model is told of the tools as a whole.
const INSTRUCTIONS: &str = "Knowledge of one workspace: documents, a knowledge graph made of them, and agents. \
    For a question in words use ask_agent, graph_rag or document_rag; for facts by their names query_triples or \
    sparql_query; for texts search_documents and get_document.";

fn capabilities() -> ServerCapabilities {
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(ToolsCapability::default());
    capabilities.resources = Some(ResourcesCapability::default());
    capabilities.prompts = Some(PromptsCapability::default());
    capabilities
}

fn server() -> Implementation {
    Implementation::new("threadgraph", env!("CARGO_PKG_VERSION")).with_title("Threadgraph")
}

/// The answer to `initialize`: in the revision that is asked for, if it has such a beginning and is known, else in the
/// newest of those.
pub(crate) fn initialized(asked: &str) -> Value {
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
    let known = known.find(|version| version.as_str() == asked && version.has_initialize());
    let version = known.unwrap_or(&ProtocolVersion::LATEST_WITH_INITIALIZE);
    let result = InitializeResult::new(capabilities())
        .with_protocol_version(version.clone())
        .with_server_info(server())
        .with_instructions(INSTRUCTIONS);
    with_more(serde_json::to_value(result).unwrap_or_default())
}

/// The answer to `server/discover`.
pub(crate) fn discovered() -> Value {
    let versions = ProtocolVersion::KNOWN_VERSIONS.to_vec();
    let mut result = DiscoverResult::new(versions, capabilities()).with_server_info(server());
    result.instructions = Some(INSTRUCTIONS.to_owned());
    with_more(serde_json::to_value(result).unwrap_or_default())
}

/// What rmcp has as deprecated, or under a feature.
fn with_more(mut result: Value) -> Value {
    for capability in ["completions", "logging"] {
        result["capabilities"][capability] = json!({});
    }
    result
}

/// A listing as a revision has it: the newest says how long it holds, which is until it is asked for again, as what
/// a caller may do can change at any time.
pub(crate) fn listed(mut result: Value, revision: Revision) -> Value {
    if revision == Revision::Stateless {
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
    }
    result
}

/// An answer that holds for its request alone, as a revision has it.
pub(crate) fn completed(mut result: Value, revision: Revision) -> Value {
    if revision == Revision::Stateless {
        result["resultType"] = json!("complete");
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_names_the_revision_that_is_asked_for_or_the_newest_that_has_one() {
        for (asked, answered) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("", "2025-11-25"),
        ] {
            assert_eq!(initialized(asked)["protocolVersion"], answered);
        }
        for kind in ["tools", "resources", "prompts", "completions", "logging"] {
            assert!(initialized("")["capabilities"][kind].is_object(), "{kind}");
        }
    }

    #[test]
    fn the_newest_revision_is_discovered_with_all_that_it_requires() {
        let found = discovered();
        let versions = found["supportedVersions"].as_array().unwrap();
        assert!(versions.contains(&json!("2026-07-28")) && versions.contains(&json!("2025-11-25")));
        for key in [
            "resultType",
            "ttlMs",
            "cacheScope",
            "capabilities",
            "instructions",
        ] {
            assert!(!found[key].is_null(), "{key}");
        }
        assert_eq!(
            listed(json!({"tools": []}), Revision::Handshake),
            json!({"tools": []})
        );
        assert_eq!(
            listed(json!({}), Revision::Stateless)["cacheScope"],
            "private"
        );
    }
}
