//! Writes a JSON tree into Avro binary, led by a schema's plan: one way for all messages of which nobody keeps a body in Avro.

use serde_json::{Map, Value as Json};

use super::plan::{At, Field, Node, Plan, ROOT};
use super::write::{Misfit, length, misfit, null, place, text};

/// Appends the tree's datum.
pub(super) fn write(tree: &Json, plan: &Plan, out: &mut Vec<u8>) -> Result<(), Misfit> {
    at(tree, plan, ROOT, out)
}

/// As deep as the tree is, which was read within the bound of JSON.
fn at(tree: &Json, plan: &Plan, here: At, out: &mut Vec<u8>) -> Result<(), Misfit> {
    let inner = match (tree, plan.node(here)) {
        (Json::Null, _) => return null(plan, here, out),
        (_, Node::Nullable(inner)) => {
            out.push(2);
            *inner
        }
        _ => here,
    };
    match (tree, plan.node(inner)) {
        (Json::Array(items), Node::Array(item)) => {
            if !items.is_empty() {
                length(items.len(), out);
            }
            for one in items {
                at(one, plan, *item, out)?;
            }
            out.push(0);
        }
        (Json::Object(entries), Node::Map(value)) => {
            if !entries.is_empty() {
                length(entries.len(), out);
            }
            for (key, one) in entries {
                text(key, out);
                at(one, plan, *value, out)?;
            }
            out.push(0);
        }
        (Json::Object(entries), Node::Record(fields)) => record(entries, fields, plan, out)?,
        (Json::Array(_) | Json::Object(_), Node::String) => text(&tree.to_string(), out),
        (Json::Array(_), node) => return misfit("a list", node),
        (Json::Object(_), node) => return misfit("an object", node),
        // Numbers, texts and truths are the same either way.
        _ => return place(tree, plan, inner, out),
    }
    Ok(())
}

fn record(
    entries: &Map<String, Json>,
    fields: &[Field],
    plan: &Plan,
    out: &mut Vec<u8>,
) -> Result<(), Misfit> {
    let known = |key: &&String| fields.iter().any(|field| field.name == **key);
    if let Some(key) = entries.keys().find(|key| !known(key)) {
        return Err(Misfit(format!("there is no field {key} here")));
    }
    for field in fields {
        let tree = entries.get(&field.name).unwrap_or(&Json::Null);
        at(tree, plan, field.node, out)?;
    }
    Ok(())
}
