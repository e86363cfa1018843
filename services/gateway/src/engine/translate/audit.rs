//! `audit`: what happened. Who asks is never taken from the body.

use serde_json::{Value, json};
use tg_mesh::clock;
use tg_schemas::Error;
use tg_schemas::msg::{AuditDropped, AuditEntry, AuditRequest, AuditResponse};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `audit` service.
pub struct Audit;

impl Translate for Audit {
    type Question = AuditRequest;
    type Answer = AuditResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<AuditRequest, Error> {
        Ok(AuditRequest {
            operation: about.operation.clone(),
            asker: about.actor.clone(),
            workspace: body.text("workspace")?,
            actor: body.text("actor")?,
            kind: body.text("kind")?,
            since: body.text("since")?,
            until: body.text("until")?,
            limit: body.integer_or("limit", 0)?,
            after: body.text("after")?,
            ..AuditRequest::default()
        })
    }

    fn part(part: AuditResponse, _about: &About) -> Body {
        let entries: Vec<Value> = part.entries.into_iter().map(entry).collect();
        let dropped: Vec<Value> = part.dropped.into_iter().map(dropped).collect();
        Reply::new()
            .put("entries", entries)
            .put_truthy("dropped", dropped)
            .put_truthy("next", part.next)
            .done()
    }
}

/// What is empty is left out.
fn entry(entry: AuditEntry) -> Value {
    let mut shown = Reply::new()
        .put("id", entry.id)
        .put("time", clock::rfc3339_of(entry.time))
        .put("kind", entry.kind)
        .put("count", entry.count)
        .put_truthy("workspace", entry.workspace)
        .put_truthy("actor", entry.actor)
        .put_truthy("credential", entry.credential)
        .put_truthy("door", entry.door)
        .put_truthy("address", entry.address)
        .put("operation", entry.operation)
        .put_truthy("target-kind", entry.target_kind)
        .put_truthy("target", entry.target)
        .put_truthy("reason", entry.reason)
        .put_truthy("changes", entry.changes)
        .put_truthy("request-id", entry.request_id)
        .put_truthy("client-request-id", entry.client_request_id)
        .done();
    if entry.count > 1 {
        shown.insert("until".to_owned(), clock::rfc3339_of(entry.until).into());
    }
    Value::Object(shown)
}

fn dropped(one: AuditDropped) -> Value {
    json!({
        "kind": one.kind,
        "workspace": one.workspace,
        "count": one.count,
        "until": clock::rfc3339_of(one.until),
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;

    #[test]
    fn who_asks_is_not_taken_from_the_body_and_nothing_is_kept_for_clients() {
        let body = json!({"asker": "boss", "workspace": "acme", "actor": "u", "limit": 3,
            "entries": [{"kind": "change"}], "source": "x", "sequence": 9});
        let asked = question::<Audit>(body, "list-events").unwrap();
        assert_eq!(
            (asked.asker.as_str(), asked.actor.as_str()),
            ("caller", "u")
        );
        assert!(asked.entries.is_empty() && asked.source.is_empty());
    }

    #[test]
    fn an_entry_is_shown_with_what_it_has() {
        let answer = AuditResponse {
            entries: vec![AuditEntry {
                id: 7,
                time: 1_800_000_000_123,
                until: 1_800_000_001_000,
                count: 2,
                kind: "change".into(),
                operation: "iam/update-user".into(),
                changes: json!({"name": {"before": "a", "after": "b"}})
                    .as_object()
                    .cloned()
                    .unwrap(),
                ..AuditEntry::default()
            }],
            ..AuditResponse::default()
        };
        assert_eq!(
            part::<Audit>(answer, "list-events"),
            json!({"entries": [{"id": 7, "time": "2027-01-15T08:00:00.123Z", "kind": "change", "count": 2,
                "operation": "iam/update-user", "until": "2027-01-15T08:00:01.000Z",
                "changes": {"name": {"before": "a", "after": "b"}}}]})
        );
    }
}
