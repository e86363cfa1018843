//! What is kept of a vector: what it stands for, what may be filtered by, where it comes from. Plain
//! values and their stable hashes; no storage.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tg_schemas::Term;

use crate::error::VectorError;

/// Largest dimension that is stored.
pub const MAX_DIMENSION: usize = tg_schemas::limits::DIMENSIONS;

/// Attribute names that say what other fields say already; they are not kept as attributes.
const RESERVED: [&str; 8] = [
    "entity",
    "doc_id",
    "chunk_id",
    "rdf_type",
    "index_name",
    "index_value",
    "text",
    "schema_name",
];

/// What a vector stands for, and what a search returns once, however many vectors it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// An entity, with its kind of term.
    Entity(Term),
    /// A chunk, by id.
    Chunk(String),
    /// A value of a row index.
    Row {
        /// Schema.
        schema: String,
        /// Index.
        index: String,
        /// Values of the index's fields.
        value: Vec<String>,
        /// The text that was embedded.
        text: String,
    },
}

/// What searches may ask for beside nearness.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Facets {
    /// Classes of an entity.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Schema of a row.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub schema: String,
    /// Index of a row.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub index: String,
    /// Free attributes.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Value>,
}

impl Facets {
    /// Facets with these attributes; reserved names and nothings are left out.
    pub fn with(attributes: Map<String, Value>) -> Self {
        let kept = attributes
            .into_iter()
            .filter(|(name, value)| !RESERVED.contains(&name.as_str()) && !value.is_null());
        Self {
            attributes: kept.collect(),
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Everything a condition can match.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        let mut all: Vec<Condition> = self.types.iter().map(|of| Condition::of_type(of)).collect();
        if !self.schema.is_empty() {
            all.push(Condition::of_schema(&self.schema));
        }
        if !self.index.is_empty() {
            all.push(Condition::of_index(&self.index));
        }
        for (name, value) in &self.attributes {
            let scalars = match value {
                Value::Array(values) => values.as_slice(),
                one => std::slice::from_ref(one),
            };
            let known = scalars.iter().filter_map(canonical);
            all.extend(known.map(|value| Condition::attribute(name, value)));
        }
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// One thing that a vector's facets must hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Condition {
    pub(crate) field: i64,
    pub(crate) name: String,
    pub(crate) value: String,
}

impl Condition {
    fn new(field: i64, name: &str, value: impl Into<String>) -> Self {
        Self {
            field,
            name: name.to_owned(),
            value: value.into(),
        }
    }

    fn attribute(name: &str, canonical: String) -> Self {
        Self::new(0, name, canonical)
    }

    /// The entity is of this class.
    pub fn of_type(of: &str) -> Self {
        Self::new(1, "", of)
    }

    /// The row is of this schema.
    pub fn of_schema(schema: &str) -> Self {
        Self::new(2, "", schema)
    }

    /// The row value is of this index.
    pub fn of_index(index: &str) -> Self {
        Self::new(3, "", index)
    }

    /// Conditions of an attribute filter: a value must be there; of a list, all must.
    ///
    /// # Errors
    /// [`VectorError::Field`] for a value that cannot be compared.
    pub fn of_attributes(asked: &Map<String, Value>) -> Result<Vec<Self>, VectorError> {
        let mut all = Vec::new();
        for (name, value) in asked {
            let values = match value {
                Value::Array(values) => values.as_slice(),
                one => std::slice::from_ref(one),
            };
            for value in values {
                let value = canonical(value).ok_or_else(|| {
                    VectorError::field(
                        format!("attributes.{name}"),
                        "must be a string, a number, a boolean, or a list of these",
                    )
                })?;
                all.push(Self::attribute(name, value));
            }
        }
        Ok(all)
    }
}

/// Equal scalars have equal texts: `1` and `1.0` are the same number, `"1"` is a text.
fn canonical(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(format!("s{text}")),
        Value::Bool(yes) => Some(format!("b{yes}")),
        Value::Number(number) => {
            if let Some(whole) = number.as_i64() {
                return Some(format!("n{whole}"));
            }
            let number = number.as_f64()?;
            let whole = number.fract() == 0.0 && number.abs() < 9e15;
            Some(if whole {
                format!("n{}", number as i64)
            } else {
                format!("n{number:e}")
            })
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A vector to be kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// What it stands for.
    pub subject: Subject,
    /// The chunk it comes from; may be empty.
    pub chunk: String,
    /// Who made it of the chunk, and how; empty where nobody says.
    pub made_by: String,
    /// What searches may ask for.
    pub facets: Facets,
    /// The text that the vector was made of; `None` where nobody says. Of a row its subject has it.
    pub text: Option<String>,
    /// The vector, as its model made it.
    pub vector: Vec<f32>,
}

impl Point {
    /// Checks a point. `field` is the path of its record, e.g. `chunks[2]`.
    ///
    /// # Errors
    /// [`VectorError::Field`] for a vector that cannot be kept, below `field`.
    pub fn new(
        field: &str,
        subject: Subject,
        chunk: String,
        facets: Facets,
        vector: Vec<f32>,
    ) -> Result<Self, VectorError> {
        check_vector(&format!("{field}.vector"), &vector)?;
        let text = match subject {
            Subject::Row { .. } => Some(String::new()),
            Subject::Entity(_) | Subject::Chunk(_) => None,
        };
        Ok(Self {
            subject,
            chunk,
            made_by: String::new(),
            facets,
            text,
            vector,
        })
    }

    /// The same, made by somebody.
    pub fn made_by(self, made_by: String) -> Self {
        Self { made_by, ..self }
    }

    /// The same, made of a text; an empty one says nothing.
    pub fn of_text(self, text: String) -> Self {
        match text.is_empty() {
            true => self,
            false => Self {
                text: Some(text),
                ..self
            },
        }
    }

    /// What it comes from, as one text: of one chunk each maker has its own.
    pub(crate) fn source(&self) -> String {
        match self.made_by.as_str() {
            "" => self.chunk.clone(),
            made_by => format!("{}\n{made_by}", self.chunk),
        }
    }

    /// Tells apart the vectors of one subject from one chunk. An entity may have several (contexts); a
    /// chunk and a row value have one, which a later one replaces.
    pub(crate) fn tag(&self) -> i64 {
        match self.subject {
            Subject::Entity(_) => {
                let mut hash = Sha256::new();
                self.vector
                    .iter()
                    .for_each(|part| hash.update(part.to_le_bytes()));
                let digest: [u8; 32] = hash.finalize().into();
                i64::from_le_bytes(first(&digest))
            }
            Subject::Chunk(_) | Subject::Row { .. } => 0,
        }
    }
}

/// A vector must have parts, all of them numbers.
///
/// # Errors
/// [`VectorError::Field`], which says what is wrong with it.
pub fn check_vector(field: &str, vector: &[f32]) -> Result<(), VectorError> {
    let why = if vector.is_empty() {
        "is empty".to_owned()
    } else if vector.len() > MAX_DIMENSION {
        format!("has more than {MAX_DIMENSION} dimensions")
    } else if !vector.iter().all(|part| part.is_finite()) {
        "holds a value that is not a number".to_owned()
    } else {
        return Ok(());
    };
    Err(VectorError::field(field, why))
}

/// A hash of a text within a space; spaces never share one.
pub(crate) fn hash(space: i64, text: &str) -> [u8; 16] {
    let mut hash = Sha256::new();
    hash.update(space.to_le_bytes());
    hash.update(text.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    first(&digest)
}

fn first<const N: usize>(digest: &[u8; 32]) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&digest[..N]);
    part
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn equal_scalars_match_and_lists_ask_for_all() {
        let facets = Facets::with(map(
            json!({"year": 2024, "tags": ["a", "b"], "ok": true, "doc_id": "x", "none": null}),
        ));
        let held = facets.conditions();
        let matches = |asked: Value| {
            let asked = Condition::of_attributes(&map(asked)).unwrap();
            asked.iter().all(|condition| held.contains(condition))
        };
        assert!(matches(json!({"year": 2024.0, "tags": "b"})));
        assert!(matches(json!({"tags": ["b", "a"], "ok": true})));
        assert!(!matches(json!({"tags": ["a", "c"]})));
        assert!(!matches(json!({"year": "2024"})));
        assert!(!matches(json!({"doc_id": "x"})), "reserved");
        assert!(matches(json!({})));
    }

    #[test]
    fn what_cannot_be_compared_is_refused_by_name() {
        let error = Condition::of_attributes(&map(json!({"a": {"b": 1}}))).unwrap_err();
        assert!(error.to_string().starts_with("attributes.a: must be"));
        let vector = vec![1.0, f32::NAN];
        let error = check_vector("chunks[1].vector", &vector).unwrap_err();
        assert_eq!(
            error.to_string(),
            "chunks[1].vector: holds a value that is not a number"
        );
    }

    #[test]
    fn spaces_never_share_a_hash() {
        assert_ne!(hash(1, "a"), hash(2, "a"));
        assert_eq!(hash(1, "a"), hash(1, "a"));
    }
}
