//! Reading whole replies: of definitions, of relationships, or of both mixed (what an agent found).

use serde_json::Value;

use super::found::Found;
use super::items::{Items, field};
use super::relationships::EntityDescriptions;
use super::{definitions, relationships};

/// What the items of a reply are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// `{entity, definition}`.
    Definitions,
    /// `{subject, predicate, object, object-entity}`.
    Relationships,
    /// Either, told apart by `type`.
    Mixed,
}

/// Reads a reply. What is bad is counted and left out.
pub fn read(content: Content, items: &Items) -> Found {
    let mut found = Found::default();
    found.bad = items.bad;
    let mut told = EntityDescriptions::default();
    for item in &items.values {
        let definition = match content {
            Content::Definitions => true,
            Content::Relationships => false,
            Content::Mixed => is_definition(item),
        };
        let good = if definition {
            definitions::read(item, &mut found)
        } else {
            relationships::read(item, &mut found, &mut told)
        };
        found.bad += usize::from(!good);
    }
    told.tell(&mut found);
    found
}

/// Whether an item of a reply says anything of the kind.
pub fn usable(content: Content) -> fn(&Value) -> bool {
    fn one(content: Content, item: &Value) -> bool {
        let items = Items {
            values: vec![item.clone()],
            bad: 0,
        };
        !read(content, &items).is_empty()
    }
    match content {
        Content::Definitions => |item| one(Content::Definitions, item),
        Content::Relationships => |item| one(Content::Relationships, item),
        Content::Mixed => |item| one(Content::Mixed, item),
    }
}

fn is_definition(item: &Value) -> bool {
    match field(item, &["type"]).and_then(Value::as_str) {
        Some(kind) => kind.eq_ignore_ascii_case("definition"),
        None => item.get("definition").is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::items::of_text;
    use super::*;

    #[test]
    fn good_lines_survive_bad_ones() {
        let items = of_text(
            "{\"type\": \"definition\", \"entity\": \"Tarn\", \"definition\": \"A town.\"}\n\
             {\"type\": \"relationship\", \"subject\": \"Tarn\", \"predicate\": \"lies on\", \"object\": \"Sell\"}\n\
             {\"entity\": \"Sell\", \"definition\": \"A river.\"}\n\
             {\"type\": \"poem\", \"text\": \"la\"}\nnot json\n",
        );
        let found = read(Content::Mixed, &items);
        assert_eq!((found.facts().len(), found.bad), (3, 2));
        let found = read(Content::Definitions, &items);
        assert_eq!((found.facts().len(), found.bad), (2, 3));
        let found = read(Content::Relationships, &items);
        assert_eq!((found.facts().len(), found.bad), (1, 4));
    }
}
