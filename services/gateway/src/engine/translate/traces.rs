//! `traces`: the signed heads of a workspace's traces.

use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{TracesRequest, TracesResponse};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `traces` service.
pub struct Traces;

impl Translate for Traces {
    type Question = TracesRequest;
    type Answer = TracesResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<Self::Question, Error> {
        Ok(TracesRequest {
            operation: about.operation.clone(),
            day: body.text("day")?,
            limit: body.integer_or("limit", 0)?,
            after: body.text("after")?,
            key_id: body.text("key-id")?,
            revoked_from: body.text("revoked-from")?,
        })
    }

    fn part(part: Self::Answer, about: &About) -> Body {
        let reply = Reply::new()
            .put_truthy("head", part.head)
            .put_truthy("signature", part.signature)
            .put_truthy("key", part.key);
        if about.operation != "list-ended-runs" {
            return reply.done();
        }
        let runs = part
            .runs
            .into_iter()
            .map(|one| json!({"run": one.run, "collection": one.collection, "hash": one.hash}));
        reply
            .put("runs", runs.collect::<Vec<Value>>())
            .put_truthy("next", part.next)
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use tg_schemas::msg::EndedRun;

    #[test]
    fn heads_and_runs_are_told() {
        let ask = json!({"key-id": "8f", "revoked-from": "2026-11-25T00:00:00Z"});
        let ask = question::<Traces>(ask, "revoke-signing-key").unwrap();
        assert_eq!(
            (ask.key_id.as_str(), ask.revoked_from.as_str()),
            ("8f", "2026-11-25T00:00:00Z")
        );
        let ask = json!({"day": "2026-11-25", "limit": 7, "after": "3"});
        let ask = question::<Traces>(ask, "list-ended-runs").unwrap();
        assert_eq!(
            (ask.day.as_str(), ask.limit, ask.after.as_str()),
            ("2026-11-25", 7, "3")
        );
        let run = EndedRun {
            run: "urn:r".into(),
            collection: "c".into(),
            hash: "ab".into(),
        };
        let reply = TracesResponse {
            runs: vec![run],
            next: "4".into(),
            ..TracesResponse::default()
        };
        assert_eq!(
            part::<Traces>(reply, "list-ended-runs"),
            json!({"runs": [{"run": "urn:r", "collection": "c", "hash": "ab"}], "next": "4"})
        );
        let head = TracesResponse {
            head: "h".into(),
            signature: "s".into(),
            key: "k".into(),
            ..TracesResponse::default()
        };
        assert_eq!(
            part::<Traces>(head, "sign-traces"),
            json!({"head": "h", "signature": "s", "key": "k"})
        );
    }
}
