//! Which documents a listing shows.

use std::cmp::Ordering;

use tg_schemas::Error;
use tg_schemas::msg::{Criteria, DocumentMetadata};

use crate::error::invalid;

#[derive(Debug, Clone, Copy)]
enum Operator {
    Is,
    IsNot,
    Contains,
    Begins,
    Below,
    Above,
}

#[derive(Debug, Clone, Copy)]
enum Key {
    Id,
    Title,
    Comments,
    Kind,
    Type,
    Parent,
    Time,
    Tags,
}

/// A checked criterion.
#[derive(Debug, Clone)]
pub(crate) struct Criterion {
    key: Key,
    operator: Operator,
    value: String,
}

/// Reads criteria. The error names the field.
pub(crate) fn read(criteria: Vec<Criteria>) -> Result<Vec<Criterion>, Error> {
    let one = |(at, given): (usize, Criteria)| {
        let key = match given.key.as_str() {
            "id" | "document-id" => Key::Id,
            "title" => Key::Title,
            "comments" => Key::Comments,
            "kind" => Key::Kind,
            "type" | "document-type" => Key::Type,
            "parent-id" => Key::Parent,
            "time" => Key::Time,
            "tags" | "tag" => Key::Tags,
            _ => {
                return Err(invalid(format!(
                    "criteria[{at}].key: must be id, title, comments, kind, document-type, parent-id, \
                     time or tags"
                )));
            }
        };
        let operator = match given.operator.as_str() {
            "" | "=" | "==" | "eq" => Operator::Is,
            "!=" | "ne" => Operator::IsNot,
            "contains" => Operator::Contains,
            "starts-with" | "startswith" => Operator::Begins,
            "<" | "lt" => Operator::Below,
            ">" | "gt" => Operator::Above,
            _ => {
                return Err(invalid(format!(
                    "criteria[{at}].operator: must be eq, ne, contains, starts-with, lt or gt"
                )));
            }
        };
        Ok(Criterion {
            key,
            operator,
            value: given.value,
        })
    };
    criteria.into_iter().enumerate().map(one).collect()
}

impl Criterion {
    /// The id of the one document that may be meant, if the criterion names one.
    pub(crate) fn id(&self) -> Option<&str> {
        match (self.key, self.operator) {
            (Key::Id, Operator::Is) => Some(&self.value),
            _ => None,
        }
    }

    /// Whether a document is meant.
    pub(crate) fn holds(&self, document: &DocumentMetadata) -> bool {
        let text = match self.key {
            Key::Id => &document.id,
            Key::Title => &document.title,
            Key::Comments => &document.comments,
            Key::Kind => &document.kind,
            Key::Type => &document.document_type,
            Key::Parent => &document.parent_id,
            Key::Time => return self.compare(&document.time.to_string()),
            Key::Tags => return self.any(&document.tags),
        };
        self.compare(text)
    }

    fn any(&self, tags: &[String]) -> bool {
        match self.operator {
            Operator::IsNot => tags.iter().all(|tag| self.compare(tag)),
            _ => tags.iter().any(|tag| self.compare(tag)),
        }
    }

    fn compare(&self, text: &str) -> bool {
        let value = self.value.as_str();
        match self.operator {
            Operator::Is => text == value,
            Operator::IsNot => text != value,
            Operator::Contains => text.to_lowercase().contains(&value.to_lowercase()),
            Operator::Begins => text.starts_with(value),
            Operator::Below => order(text, value).is_lt(),
            Operator::Above => order(text, value).is_gt(),
        }
    }
}

/// As numbers where both are.
fn order(a: &str, b: &str) -> Ordering {
    match (a.parse::<i64>(), b.parse::<i64>()) {
        (Ok(a), Ok(b)) => a.cmp(&b),
        _ => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn criterion(key: &str, operator: &str, value: &str) -> Criterion {
        let criteria = vec![Criteria {
            key: key.into(),
            operator: operator.into(),
            value: value.into(),
        }];
        read(criteria).unwrap().remove(0)
    }

    fn holds(key: &str, operator: &str, value: &str) -> bool {
        let document = DocumentMetadata {
            id: "urn:d".into(),
            time: 99,
            title: "A Guide to Ships".into(),
            kind: "text/plain".into(),
            tags: vec!["sea".into(), "old".into()],
            ..DocumentMetadata::default()
        };
        criterion(key, operator, value).holds(&document)
    }

    #[test]
    fn only_the_same_id_names_one_document() {
        for (key, operator, id) in [
            ("id", "eq", Some("urn:d")),
            ("document-id", "", Some("urn:d")),
            ("id", "ne", None),
            ("id", "starts-with", None),
            ("parent-id", "eq", None),
        ] {
            let found = criterion(key, operator, "urn:d");
            assert_eq!(found.id(), id, "{key} {operator}");
        }
    }

    #[test]
    fn criteria_choose() {
        assert!(holds("kind", "eq", "text/plain") && !holds("kind", "", "text"));
        assert!(holds("title", "contains", "ships") && holds("id", "starts-with", "urn:"));
        assert!(holds("time", "lt", "100") && !holds("time", ">", "100"));
        assert!(holds("tags", "eq", "sea") && !holds("tag", "!=", "sea"));
        assert!(holds("document-type", "ne", "answer"));
        let unknown = read(vec![Criteria::default()]).unwrap_err();
        assert!(unknown.message.starts_with("criteria[0].key: "));
    }
}
