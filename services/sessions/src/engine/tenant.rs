//! What a workspace says of its sessions: three levels, of which the last that says something counts.

use std::collections::BTreeMap;

use serde::Deserialize;
use tg_schemas::operations::{
    CompactStrategy, Failure, TenantChange, TenantConfig, TenantLevels, TenantSettings,
};

use super::agent_file::unmarked;

/// Most messages that stay as they are when a session is shortened.
pub const KEEP: i64 = 200;
/// Longest name of a model or a flow, in characters.
const NAME: usize = 256;
/// Most workspaces in the operator's file.
const MOST: usize = 10_000;

/// The operator's file of workspaces.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    tenants: Vec<Tenant>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tenant {
    id: String,
    #[serde(default)]
    defaults: TenantSettings,
}

/// What is said beside the workspaces themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Levels {
    /// The settings of the process.
    pub process: TenantSettings,
    /// Those of the operator's file, by workspace.
    pub yaml: BTreeMap<String, TenantSettings>,
    /// Models that may be asked; none: all.
    pub models: Vec<String>,
}

/// Whether settings are in their ranges.
///
/// # Errors
/// The first field that is not.
fn checked(settings: &TenantSettings, models: &[String]) -> Result<(), Failure> {
    let keep = settings.compact_keep_last_n;
    if keep.is_some_and(|keep| !(0..=KEEP).contains(&keep)) {
        return Err(Failure::invalid(
            "compact_keep_last_n",
            "must be a whole number from 0 to 200",
        ));
    }
    let names = [
        ("compact_summary_model", &settings.compact_summary_model),
        ("agent_flow", &settings.agent_flow),
    ];
    for (field, name) in names {
        let fits = |name: &String| (1..=NAME).contains(&name.trim().chars().count());
        if name.as_ref().is_some_and(|name| !fits(name)) {
            return Err(Failure::invalid(field, "must have 1 to 256 characters"));
        }
    }
    let model = settings.compact_summary_model.as_ref();
    if model.is_some_and(|model| !models.is_empty() && !models.contains(model)) {
        return Err(Failure::invalid(
            "compact_summary_model",
            "is not one of the allowed models",
        ));
    }
    Ok(())
}

/// Reads the operator's file.
///
/// # Errors
/// What is wrong with it.
pub fn read(text: &str, models: &[String]) -> Result<BTreeMap<String, TenantSettings>, String> {
    let file: File = serde_yaml_ng::from_str(unmarked(text)).map_err(|error| error.to_string())?;
    if file.tenants.len() > MOST {
        return Err(format!("tenants: must have at most {MOST} entries"));
    }
    let mut all = BTreeMap::new();
    for one in file.tenants {
        checked(&one.defaults, models)
            .map_err(|failure| format!("{}: {}", one.id, failure.message))?;
        if all.insert(one.id.clone(), one.defaults).is_some() {
            return Err(format!("tenants: {} stands there twice", one.id));
        }
    }
    Ok(all)
}

/// What the rows of a workspace say. A row that cannot be read says nothing.
pub fn of_rows(rows: &BTreeMap<String, String>) -> TenantSettings {
    fn value<T: for<'a> Deserialize<'a>>(rows: &BTreeMap<String, String>, key: &str) -> Option<T> {
        serde_json::from_slice(rows.get(key)?.as_bytes()).ok()
    }
    TenantSettings {
        compact_strategy: value(rows, "compact_strategy"),
        compact_keep_last_n: value(rows, "compact_keep_last_n"),
        compact_observation_mask: value(rows, "compact_observation_mask"),
        compact_summary_model: value(rows, "compact_summary_model"),
        agent_flow: value(rows, "agent_flow"),
    }
}

/// A change as rows: `None` takes a setting back.
///
/// # Errors
/// The first field that is out of its range.
pub fn changes(
    change: &TenantChange,
    models: &[String],
) -> Result<BTreeMap<String, Option<String>>, Failure> {
    let settings = TenantSettings {
        compact_strategy: change.compact_strategy.flatten(),
        compact_keep_last_n: change.compact_keep_last_n.flatten(),
        compact_observation_mask: change.compact_observation_mask.flatten(),
        compact_summary_model: change.compact_summary_model.clone().flatten(),
        agent_flow: change.agent_flow.clone().flatten(),
    };
    checked(&settings, models)?;
    let told = serde_json::to_value(change).unwrap_or_default();
    let told = told.as_object().cloned().unwrap_or_default();
    Ok(told
        .into_iter()
        .map(|(key, value)| (key, (!value.is_null()).then(|| value.to_string())))
        .collect())
}

/// The settings of a workspace.
pub fn config(workspace: &str, levels: &Levels, own: TenantSettings) -> TenantConfig {
    let usual = TenantSettings {
        compact_strategy: Some(CompactStrategy::Auto),
        compact_keep_last_n: Some(10),
        compact_observation_mask: Some(true),
        compact_summary_model: None,
        agent_flow: Some("default".to_owned()),
    };
    let process = levels.process.clone();
    let yaml = levels.yaml.get(workspace).cloned().unwrap_or_default();
    let mut effective = usual;
    for level in [&process, &yaml, &own] {
        let level = level.clone();
        effective = TenantSettings {
            compact_strategy: level.compact_strategy.or(effective.compact_strategy),
            compact_keep_last_n: level.compact_keep_last_n.or(effective.compact_keep_last_n),
            compact_observation_mask: level
                .compact_observation_mask
                .or(effective.compact_observation_mask),
            compact_summary_model: level
                .compact_summary_model
                .or(effective.compact_summary_model),
            agent_flow: level.agent_flow.or(effective.agent_flow),
        };
    }
    TenantConfig {
        tenant: workspace.to_owned(),
        effective,
        levels: TenantLevels {
            process,
            yaml,
            db: own,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(most: i64) -> TenantSettings {
        TenantSettings {
            compact_keep_last_n: Some(most),
            ..TenantSettings::default()
        }
    }

    #[test]
    fn line_011_the_last_level_that_says_something_counts() {
        let mut levels = Levels::default();
        let counts = |levels: &Levels, own| config("w", levels, own).effective.compact_keep_last_n;
        assert_eq!(counts(&levels, TenantSettings::default()), Some(10));
        levels.process = keep(9);
        levels.yaml = read(
            "tenants: [{id: w, defaults: {compact_keep_last_n: 7}}]",
            &[],
        )
        .unwrap();
        assert_eq!(counts(&levels, TenantSettings::default()), Some(7));
        assert_eq!(counts(&levels, keep(4)), Some(4));
        let other = config("x", &levels, TenantSettings::default());
        assert_eq!(other.effective.compact_keep_last_n, Some(9));
    }

    #[test]
    fn a_mark_before_the_file_means_nothing() {
        let text =
            "\u{feff}tenants:\r\n  - id: w\r\n    defaults:\r\n      compact_keep_last_n: 7\r\n";
        assert_eq!(read(text, &[]).unwrap()["w"], keep(7));
    }

    #[test]
    fn a_file_of_workspaces_is_read_strictly() {
        for bad in [
            "",
            "tenants: [{id: w, defaults: {compact_keep_last_n: 201}}]",
            "tenants: [{id: w, defaults: {speed: 1}}]",
            "tenants: [{id: w}, {id: w}]",
            "tenants: [{id: w, tokens: []}]",
        ] {
            assert!(read(bad, &[]).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_null_takes_a_setting_back_and_a_bad_value_is_refused() {
        let models = ["m".to_owned()];
        let change = TenantChange {
            compact_keep_last_n: Some(None),
            compact_summary_model: Some(Some("m".to_owned())),
            ..TenantChange::default()
        };
        let rows = changes(&change, &models).unwrap();
        assert_eq!(rows["compact_keep_last_n"], None);
        assert_eq!(rows["compact_summary_model"].as_deref(), Some("\"m\""));
        assert_eq!(rows.len(), 2);
        let bad = TenantChange {
            compact_summary_model: Some(Some("n".to_owned())),
            ..TenantChange::default()
        };
        assert!(changes(&bad, &models).is_err());
    }
}
