//! `usage`: what runs of the agent used in a workspace.

use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{UsageRequest, UsageResponse};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `usage` service.
pub struct Usage;

impl Translate for Usage {
    type Question = UsageRequest;
    type Answer = UsageResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<Self::Question, Error> {
        Ok(UsageRequest {
            operation: about.operation.clone(),
            by: body.text("by")?,
            since: body.text("since")?,
            until: body.text("until")?,
            limit: body.integer_or("limit", 0)?,
            after: body.text("after")?,
            session: body.text("session")?,
            agent: body.text("agent")?,
            // Services alone have calls counted.
            calls: Vec::new(),
        })
    }

    fn part(part: Self::Answer, _: &About) -> Body {
        let usage = part.usage.into_iter().map(|one| {
            json!({
                "name": one.name,
                "model_calls": one.model_calls,
                "tool_calls": one.tool_calls,
                "in_token": one.in_token,
                "out_token": one.out_token,
                "cache_read": one.cache_read,
                "cache_write": one.cache_write,
                "total": one.total,
                "dollars": one.dollars,
                "duration_ms": one.duration_ms,
            })
        });
        Reply::new()
            .put("usage", usage.collect::<Vec<Value>>())
            .put_truthy("next", part.next)
            .done()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use tg_schemas::msg::UsageTotal;

    #[test]
    fn usage_is_asked_for_and_told() {
        let ask = json!({"by": "run", "since": "2026-11-01", "until": "2026-11-27", "limit": 7, "after": "r", "session": "s", "agent": "a"});
        let ask = question::<Usage>(ask, "list-usage").unwrap();
        assert_eq!(
            (ask.by.as_str(), ask.since.as_str(), ask.until.as_str()),
            ("run", "2026-11-01", "2026-11-27")
        );
        assert_eq!((ask.limit, ask.after.as_str()), (7, "r"));
        assert_eq!((ask.session.as_str(), ask.agent.as_str()), ("s", "a"));
        let reply = UsageResponse {
            usage: vec![UsageTotal {
                name: "r".into(),
                model_calls: 1,
                tool_calls: 2,
                in_token: 3,
                out_token: 4,
                cache_read: 1,
                dollars: 0.5,
                duration_ms: 6,
                cache_write: 2,
                total: 7,
            }],
            next: "r".into(),
            ..UsageResponse::default()
        };
        let told = json!({
            "usage": [{
                "name": "r", "model_calls": 1, "tool_calls": 2, "in_token": 3, "out_token": 4,
                "cache_read": 1, "cache_write": 2, "total": 7, "dollars": 0.5, "duration_ms": 6,
            }],
            "next": "r",
        });
        assert_eq!(part::<Usage>(reply, "list-usage"), told);
    }
}
