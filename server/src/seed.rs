//! What a fresh system starts with: the data files of `blueprints/`, embedded in the binary.

use std::collections::BTreeMap;

use serde_json::Value;
use tg_config::Seed;

/// Files of the shape `{type: {key: value}}`.
const TYPED: &[&str] = &[
    include_str!("../../blueprints/blueprints.json"),
    include_str!("../../blueprints/collections.json"),
    include_str!("../../blueprints/interface-descriptions.json"),
    include_str!("../../blueprints/new-workspaces.json"),
    include_str!("../../blueprints/parameter-types.json"),
    include_str!("../../blueprints/token-costs.json"),
    include_str!("../../blueprints/tools.json"),
];

/// The prompts, `{key: value}` of config type `prompt`.
const PROMPTS: &str = include_str!("../../blueprints/prompts.json");

/// Reads the embedded data files.
///
/// # Errors
/// A file of this release is broken (a test holds that none is).
pub fn seed() -> Result<Seed, serde_json::Error> {
    let mut types: BTreeMap<String, BTreeMap<String, Value>> = BTreeMap::new();
    for text in TYPED {
        let file: BTreeMap<String, BTreeMap<String, Value>> =
            serde_json::from_slice(text.as_bytes())?;
        for (kind, rows) in file {
            let name = if kind == "blueprint" {
                "flow-blueprint".to_owned()
            } else {
                kind
            };
            types.entry(name).or_default().extend(rows);
        }
    }
    types
        .entry("prompt".to_owned())
        .or_default()
        .extend(serde_json::from_slice::<BTreeMap<String, Value>>(
            PROMPTS.as_bytes(),
        )?);
    Ok(Seed { types })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_shipped_data_files_are_whole() {
        let seed = super::seed().unwrap();
        for (kind, key) in [
            ("flow-blueprint", "everything"),
            ("flow-blueprint", "structured"),
            ("flow-blueprint", "ontology"),
            ("prompt", "system"),
            ("prompt", "template.agent-react"),
            ("parameter-type", "llm-model"),
            ("tool-native", "graph_about"),
            ("agent-seed", "templates"),
        ] {
            assert!(seed.types[kind].contains_key(key), "{kind}/{key}");
        }
    }
}
