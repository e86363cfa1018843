//! `violations`: statements that fit no ontology.

use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{Violation, ViolationsRequest, ViolationsResponse};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `violations` service.
pub struct Violations;

impl Translate for Violations {
    type Question = ViolationsRequest;
    type Answer = ViolationsResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<Self::Question, Error> {
        Ok(ViolationsRequest {
            operation: about.operation.clone(),
            id: body.text("id")?,
            flow: body.text("flow")?,
            collection: body.text("collection")?,
            limit: body.integer_or("limit", 0)?,
            after: body.text("after")?,
        })
    }

    fn part(part: Self::Answer, about: &About) -> Body {
        let reply = Reply::new();
        let reply = match about.operation.as_str() {
            "list-violations" => reply
                .put("violations", shown(part.violations))
                .put_truthy("dropped", part.dropped),
            "replay-violations" => reply
                .put("replayed", part.replayed)
                .put("kept", part.kept)
                .put("discarded", part.discarded),
            _ => reply.put("discarded", part.discarded),
        };
        reply.put_truthy("next", part.next).done()
    }
}

fn shown(violations: Vec<Violation>) -> Vec<Value> {
    let one = |one: Violation| {
        let statement: Value =
            serde_json::from_slice(one.statement.as_bytes()).unwrap_or(Value::Null);
        json!({
            "id": one.id, "flow": one.flow, "collection": one.collection, "document": one.document,
            "chunk": one.chunk, "statement": statement, "reason": one.reason, "model": one.model,
            "asked-at": one.asked_at,
        })
    };
    violations.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;

    #[test]
    fn a_statement_is_shown_as_it_was_said() {
        let reply = ViolationsResponse {
            violations: vec![Violation {
                id: "7".into(),
                statement: r#"{"type": "entity", "entity": "Sell"}"#.into(),
                reason: "unknown class 'Brook'".into(),
                ..Violation::default()
            }],
            dropped: 2,
            ..ViolationsResponse::default()
        };
        let shown = part::<Violations>(reply.clone(), "list-violations");
        assert_eq!(shown["violations"][0]["statement"]["entity"], "Sell");
        assert_eq!(shown["dropped"], 2);
        let done = part::<Violations>(reply, "replay-violations");
        assert_eq!(done, json!({"replayed": 0, "kept": 0, "discarded": 0}));
        let asked = question::<Violations>(json!({"flow": "f", "limit": "3"}), "list-violations");
        let asked = asked.unwrap();
        assert_eq!((asked.flow.as_str(), asked.limit), ("f", 3));
    }
}
