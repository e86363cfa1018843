//! What a workspace says of its sessions, on three levels: the process, the operator's file of workspaces, and the workspace itself.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use super::records::CompactStrategy;
use super::workspace_agents::said;

/// Settings; those that are left out are said elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TenantSettings {
    /// When a new session is shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_strategy: Option<CompactStrategy>,
    /// Messages that stay as they are then, 0 to 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_keep_last_n: Option<i64>,
    /// Whether a summary leaves out what tools returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_observation_mask: Option<bool>,
    /// The model that sums up; left out everywhere: that of the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact_summary_model: Option<String>,
    /// The flow that answers for agents which name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_flow: Option<String>,
}

/// What each level says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TenantLevels {
    /// The settings of the process.
    pub process: TenantSettings,
    /// The operator's file.
    pub yaml: TenantSettings,
    /// The workspace.
    pub db: TenantSettings,
}

/// The settings of a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct TenantConfig {
    /// The workspace.
    pub tenant: String,
    /// What counts: the last level that says something.
    #[serde(serialize_with = "whole")]
    pub effective: TenantSettings,
    /// What each level says.
    pub levels: TenantLevels,
}

/// Writes each setting, also one of which nobody says anything.
fn whole<S: Serializer>(settings: &TenantSettings, to: S) -> Result<S::Ok, S::Error> {
    let mut all = to.serialize_map(Some(5))?;
    all.serialize_entry("compact_strategy", &settings.compact_strategy)?;
    all.serialize_entry("compact_keep_last_n", &settings.compact_keep_last_n)?;
    all.serialize_entry(
        "compact_observation_mask",
        &settings.compact_observation_mask,
    )?;
    all.serialize_entry("compact_summary_model", &settings.compact_summary_model)?;
    all.serialize_entry("agent_flow", &settings.agent_flow)?;
    all.end()
}

/// What changes. `null` takes a setting of the workspace back. Any other field is refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct TenantChange {
    /// When a new session is shortened.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub compact_strategy: Option<Option<CompactStrategy>>,
    /// Messages that stay as they are then, 0 to 200.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub compact_keep_last_n: Option<Option<i64>>,
    /// Whether a summary leaves out what tools returned.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub compact_observation_mask: Option<Option<bool>>,
    /// The model that sums up.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub compact_summary_model: Option<Option<String>>,
    /// The flow that answers for agents which name none.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub agent_flow: Option<Option<String>>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_counts_has_every_setting_and_a_level_what_it_says() {
        let keeps = TenantSettings {
            compact_keep_last_n: Some(3),
            ..TenantSettings::default()
        };
        let told = TenantConfig {
            effective: keeps.clone(),
            levels: TenantLevels {
                db: keeps,
                ..TenantLevels::default()
            },
            ..TenantConfig::default()
        };
        let written = serde_json::to_value(&told).unwrap();
        let effective = json!({"compact_strategy": null, "compact_keep_last_n": 3,
            "compact_observation_mask": null, "compact_summary_model": null, "agent_flow": null});
        assert_eq!(written["effective"], effective);
        assert_eq!(written["levels"]["db"], json!({"compact_keep_last_n": 3}));
        assert_eq!(
            serde_json::from_value::<TenantConfig>(written).unwrap(),
            told
        );
    }
}
