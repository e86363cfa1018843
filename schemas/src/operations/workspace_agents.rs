//! Agents of workspaces and their templates, as the operations on them answer.

use serde::{Deserialize, Deserializer, Serialize};

/// An agent of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct WorkspaceAgent {
    /// Its workspace.
    pub workspace_id: String,
    /// Its id.
    pub agent_id: String,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// What is put before the first message of a conversation.
    pub user_prompt: Option<String>,
    /// Reserved: always empty.
    pub tool_ids: Vec<String>,
    /// The LLM service that answers.
    pub llm_service_id: Option<String>,
    /// Collections that it reads.
    pub knowledge_base_ids: Vec<String>,
    /// Whether it reads them before each answer.
    pub rag_enabled: bool,
    /// Most passages that are read.
    pub rag_max_results: Option<i64>,
    /// Passages below this score are left out.
    pub rag_min_score: Option<f64>,
    /// Whether passages are put in another order before the best are kept.
    pub rerank_enabled: bool,
    /// The reranking service.
    pub reranking_service_id: Option<String>,
    /// Passages that are kept then.
    pub rerank_max_results: Option<i64>,
    /// When it was created.
    pub created_at: String,
    /// When it changed last.
    pub updated_at: String,
}

/// A template of agents.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, rename_all = "camelCase")]
pub struct AgentTemplate {
    /// Its id.
    pub template_id: String,
    /// Name of the agents made of it.
    pub name: String,
    /// What they are for.
    pub description: String,
    /// The system prompt.
    pub system_prompt: String,
    /// Whether a new workspace has an agent made of it.
    pub default_on_new_workspace: bool,
}

/// Reads a field that is there: `null` clears it. A field that is left out is not read at all.
pub(super) fn said<'de, D, T>(from: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(from).map(Some)
}

/// Reads a field that is there and cannot be cleared: `null` is refused.
pub(super) fn present<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::operations::{AgentChange, ConversationChange, read};

    #[test]
    fn line_052_null_clears_what_may_be_empty_and_nothing_else() {
        let change = |value: serde_json::Value| {
            let object = value.as_object().cloned().unwrap();
            read::<AgentChange>(&object)
        };
        let cleared = change(json!({"llmServiceId": null, "description": "d"})).unwrap();
        assert_eq!(cleared.llm_service_id, Some(None));
        assert_eq!(cleared.description, Some(Some("d".to_owned())));
        assert_eq!(cleared.system_prompt, None);
        for refused in [
            json!({"name": null}),
            json!({"knowledgeBaseIds": null}),
            json!({"ragEnabled": null}),
            json!({"agentId": "x"}),
            json!({"createdAt": "x"}),
        ] {
            let key = refused.as_object().and_then(|object| object.keys().next());
            let key = key.cloned().unwrap_or_default();
            assert!(change(refused).unwrap_err().starts_with(&key), "{key}");
        }
        let title = json!({"title": null}).as_object().cloned().unwrap();
        let change = read::<ConversationChange>(&title).unwrap();
        assert_eq!(change.title, Some(None));
    }
}
