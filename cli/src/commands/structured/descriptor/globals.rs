//! What a descriptor names once and uses in many places.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::node::{DescriptorNode, Read};
use crate::commands::structured::transform;

/// Variables, constants and lookup tables.
#[derive(Debug, Default)]
pub(super) struct Globals {
    texts: BTreeMap<String, Value>,
    pub(super) tables: BTreeMap<String, Arc<BTreeMap<String, String>>>,
}

impl Globals {
    pub(super) fn read(whole: &DescriptorNode<'_>) -> Read<Self> {
        let globals = whole.object("globals")?;
        globals.only(&["variables", "constants", "lookup_tables"])?;
        let mut read = Self::default();
        for key in ["variables", "constants"] {
            let named = globals.object(key)?;
            let own = named
                .map
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()));
            read.texts.extend(own);
        }
        let tables = globals.object("lookup_tables")?;
        for name in tables.map.keys() {
            let table = tables.object(name)?;
            let entry = |(key, value): (&String, &Value)| {
                (
                    key.clone(),
                    transform::cell(Some(value)).unwrap_or_default(),
                )
            };
            let entries = table.map.iter().map(entry).collect();
            read.tables.insert(name.clone(), Arc::new(entries));
        }
        Ok(read)
    }

    /// The same with `${name}` replaced by the variable or constant of that name.
    pub(super) fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.filled_text(text),
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Object(map) => {
                let filled = map
                    .iter()
                    .map(|(key, value)| (key.clone(), self.filled(value)));
                Value::Object(filled.collect())
            }
            other => other.clone(),
        }
    }

    fn filled_text(&self, text: &str) -> Value {
        let whole = text
            .strip_prefix("${")
            .and_then(|text| text.strip_suffix('}'));
        if let Some(value) = whole.and_then(|name| self.texts.get(name)) {
            return value.clone();
        }
        let mut text = text.to_owned();
        for (name, value) in &self.texts {
            let marked = format!("${{{name}}}");
            if text.contains(&marked) {
                let value = transform::cell(Some(value)).unwrap_or_default();
                text = text.replace(&marked, &value);
            }
        }
        text.into()
    }
}
