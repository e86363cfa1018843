//! Which values of a row are embedded: the schema's `vector-indexes`, else its `indexed` fields. Pure.

use std::collections::{BTreeMap, HashSet};

use serde::Deserialize;

/// Config type of schemas.
pub(crate) const KIND: &str = "schema";

/// What the stage of rows needs of a schema.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Schema {
    fields: Vec<Field>,
    #[serde(rename = "vector-indexes", alias = "vector_indexes")]
    vector_indexes: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
struct Field {
    name: String,
    indexed: bool,
}

/// A value to embed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Value {
    /// The index: a field, or several with commas between.
    pub(crate) index: String,
    /// Values of its fields.
    pub(crate) value: Vec<String>,
    /// The values with blanks between.
    pub(crate) text: String,
}

impl Schema {
    pub(crate) fn read(row: &str) -> Option<Self> {
        serde_json::from_slice(row.as_bytes()).ok()
    }

    fn indexes(&self) -> Vec<&str> {
        match self.vector_indexes.as_deref() {
            Some(named) if !named.is_empty() => named.iter().map(String::as_str).collect(),
            _ => {
                let indexed = self.fields.iter().filter(|field| field.indexed);
                indexed.map(|field| field.name.as_str()).collect()
            }
        }
    }

    /// The values of rows, each once per index; rows that lack a value of an index have none there.
    pub(crate) fn values(&self, rows: &[BTreeMap<String, String>]) -> Vec<Value> {
        let mut all = Vec::new();
        let mut seen = HashSet::new();
        for index in self.indexes() {
            for row in rows {
                let fields = index.split(',').map(|field| row.get(field.trim()));
                let value: Option<Vec<String>> = fields
                    .map(|value| value.filter(|text| !text.trim().is_empty()).cloned())
                    .collect();
                let Some(value) = value else { continue };
                let value = Value {
                    index: index.to_owned(),
                    text: value.join(" "),
                    value,
                };
                if seen.insert(value.clone()) {
                    all.push(value);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        owned.collect()
    }

    #[test]
    fn each_value_counts_once_per_index() {
        let text = r#"{"name": "people", "vector-indexes": ["name", "city", "name,city"],
            "fields": [{"name": "name", "indexed": true}, {"name": "age"}]}"#;
        let schema = Schema::read(text).unwrap();
        let rows = [
            row(&[("name", "Vienna"), ("city", "Vienna")]),
            row(&[("name", "Ann"), ("city", "Vienna"), ("age", "4")]),
            row(&[("name", "Bob"), ("city", " ")]),
        ];
        let values = schema.values(&rows);
        let found: Vec<_> = values
            .iter()
            .map(|value| (value.index.as_str(), value.text.as_str()))
            .collect();
        let wanted = [
            ("name", "Vienna"),
            ("name", "Ann"),
            ("name", "Bob"),
            ("city", "Vienna"),
            ("name,city", "Vienna Vienna"),
            ("name,city", "Ann Vienna"),
        ];
        assert_eq!(found, wanted);
        assert_eq!(values[5].value, ["Ann", "Vienna"]);
    }

    #[test]
    fn without_vector_indexes_the_indexed_fields_count() {
        let text = r#"{"fields": [{"name": "a", "indexed": true}, {"name": "b"}]}"#;
        let values = Schema::read(text)
            .unwrap()
            .values(&[row(&[("a", "x"), ("b", "y")])]);
        assert_eq!(values.len(), 1);
        assert!(Schema::read("[").is_none());
    }
}
