//! A schema made ready for walking: every name resolved, one flat list of nodes.

use std::collections::HashMap;

use apache_avro::Schema;
use serde_json::Value as Json;

/// Index of a node.
pub(super) type At = usize;

/// What stands at one place of a body.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Boolean,
    Long,
    Float,
    Double,
    String,
    /// `null` or the other.
    Nullable(At),
    Array(At),
    Map(At),
    Record(Vec<Field>),
}

/// A field of a record.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) node: At,
    /// JSON of unknown shape, carried as text.
    pub(super) free: bool,
}

/// A schema's nodes; the first is the root.
#[derive(Debug)]
pub(super) struct Plan {
    nodes: Vec<Node>,
}

/// The root.
pub(super) const ROOT: At = 0;

impl Plan {
    /// `None` if the schema has a construct that no message of ours uses.
    pub(super) fn new(schema: &Schema) -> Option<Self> {
        let mut plan = Self { nodes: Vec::new() };
        plan.add(schema, &mut HashMap::new())?;
        Some(plan)
    }

    pub(super) fn node(&self, at: At) -> &Node {
        &self.nodes[at]
    }

    fn add(&mut self, schema: &Schema, known: &mut HashMap<String, At>) -> Option<At> {
        if let Schema::Ref { name } = schema {
            return known.get(&name.fullname(None)).copied();
        }
        let at = self.nodes.len();
        self.nodes.push(Node::Null);
        let node = match schema {
            Schema::Null => Node::Null,
            Schema::Boolean => Node::Boolean,
            Schema::Long => Node::Long,
            Schema::Float => Node::Float,
            Schema::Double => Node::Double,
            Schema::String => Node::String,
            Schema::Array(array) => Node::Array(self.add(&array.items, known)?),
            Schema::Map(map) => Node::Map(self.add(&map.types, known)?),
            Schema::Union(union) => match union.variants() {
                [Schema::Null, other] => Node::Nullable(self.add(other, known)?),
                _ => return None,
            },
            Schema::Record(record) => {
                known.insert(record.name.fullname(None), at);
                let mut fields = Vec::with_capacity(record.fields.len());
                for field in &record.fields {
                    fields.push(Field {
                        name: field.name.clone(),
                        node: self.add(&field.schema, known)?,
                        free: field.custom_attributes.get("free") == Some(&Json::Bool(true)),
                    });
                }
                Node::Record(fields)
            }
            _ => return None,
        };
        self.nodes[at] = node;
        Some(at)
    }
}
