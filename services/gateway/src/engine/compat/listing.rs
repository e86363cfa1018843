//! What is reported of models and of their use, beside answers.

use serde_json::{Value, json};
use tg_mesh::clock;

use crate::engine::translate::Body;

/// What was used in a workspace, altogether and by session, from the sums of both.
pub(crate) fn used(all: &Body, sessions: &Body) -> Value {
    let sums = |body: &Body| body.get("usage").and_then(Value::as_array).cloned();
    let cumulative = |sum: &Value| {
        let count = |key: &str| sum[key].as_i64().unwrap_or(0);
        let total = count("in_token").saturating_add(count("out_token"));
        json!({
            "input": count("in_token"), "output": count("out_token"),
            "cacheRead": count("cache_read"), "cacheWrite": count("cache_write"), "total": total,
        })
    };
    let aggregate = sums(all).unwrap_or_default();
    let sessions = sums(sessions).unwrap_or_default();
    let sessions = sessions.iter().map(|sum| {
        let name = sum["name"].as_str().unwrap_or_default().to_owned();
        let calls = sum["model_calls"].as_i64().unwrap_or(0);
        (name, json!({"cumulative": cumulative(sum), "calls": calls}))
    });
    json!({
        "aggregate": cumulative(aggregate.first().unwrap_or(&Value::Null)),
        "sessions": Value::Object(sessions.collect()),
    })
}

/// The models of a listing that somebody may ask for, in the order of their ids. Of the `named` ones those are among them
/// that name one as `backend/model`. The `agents` are models, too.
pub(crate) fn models(
    body: &Body,
    named: &[Value],
    agents: &[String],
    may: impl Fn(&str) -> bool,
) -> Value {
    let listed = body.get("models").and_then(Value::as_array);
    let listed: Vec<&Value> = listed.into_iter().flatten().collect();
    let by_backend = named.iter().filter_map(|name| {
        let (_, model) = name.as_str()?.split_once('/')?;
        if listed.iter().any(|one| one["id"] == *name) {
            return None;
        }
        let mut found = (*listed.iter().find(|one| one["id"] == model)?).clone();
        found["id"] = name.clone();
        Some(found)
    });
    let by_backend: Vec<Value> = by_backend.collect();
    let mut models: Vec<Value> = listed
        .into_iter()
        .chain(&by_backend)
        .filter(|model| may(model["id"].as_str().unwrap_or_default()))
        .map(|model| {
            let owner = model["owned_by"].as_str().unwrap_or("unknown");
            let features = model["supported_features"].as_array();
            let has = |features: &Vec<Value>| features.iter().any(|one| one == "tools");
            json!({
                "id": model["id"], "object": "model",
                "created": model["created"].as_i64().unwrap_or(0),
                "owned_by": owner,
                "context_window": model["context_length"],
                // Who says nothing of it is asked with tools; our own reader has none.
                "tools": features.map_or(owner != "threadgraph", has),
            })
        })
        .collect();
    models.extend(agents.iter().map(|agent| {
        json!({
            "id": agent, "object": "model", "created": 0, "owned_by": "threadgraph",
            "context_window": null, "tools": false,
        })
    }));
    models.sort_by(|one, other| one["id"].as_str().cmp(&other["id"].as_str()));
    json!({"object": "list", "data": models})
}

/// A model of such a listing, as clients of messages read it. When it was made nobody may know.
pub(crate) fn of_messages(model: &Value) -> Value {
    let created = model["created"].as_i64().unwrap_or(0);
    json!({
        "type": "model", "id": model["id"], "display_name": model["id"],
        "created_at": clock::rfc3339_of(created.saturating_mul(1_000)),
    })
}

/// The same listing, as clients of messages read it: all on one page.
pub(crate) fn page_of_messages(listed: &Value) -> Value {
    let models = listed["data"].as_array().map_or(&[][..], Vec::as_slice);
    let data: Vec<Value> = models.iter().map(of_messages).collect();
    let id = |model: Option<&Value>| model.map_or(Value::Null, |model| model["id"].clone());
    let (first, last) = (id(data.first()), id(data.last()));
    json!({"data": data, "has_more": false, "first_id": first, "last_id": last})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Body {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn what_was_used_is_told_altogether_and_by_session() {
        let all = body(json!({"usage": [{"name": "w", "in_token": 5, "out_token": 2}]}));
        let one =
            json!({"name": "s", "in_token": 4, "out_token": 1, "cache_read": 3, "model_calls": 2});
        let told = used(&all, &body(json!({"usage": [one]})));
        assert_eq!(told["aggregate"]["total"], 7);
        let cumulative =
            json!({"input": 4, "output": 1, "cacheRead": 3, "cacheWrite": 0, "total": 5});
        assert_eq!(
            told["sessions"],
            json!({"s": {"cumulative": cumulative, "calls": 2}})
        );
        let none = used(&Body::new(), &Body::new());
        assert_eq!(
            (&none["aggregate"]["total"], &none["sessions"]),
            (&json!(0), &json!({}))
        );
    }

    #[test]
    fn clients_of_messages_read_models_in_the_shape_of_their_api() {
        let listed = models(
            &body(json!({"models": [{"id": "b", "created": 86_400}, {"id": "a"}]})),
            &[],
            &[],
            |_| true,
        );
        let page = page_of_messages(&listed);
        assert_eq!(
            page["data"][1],
            json!({"type": "model", "id": "b", "display_name": "b",
                "created_at": "1970-01-02T00:00:00.000Z"})
        );
        assert_eq!(
            (&page["has_more"], &page["first_id"], &page["last_id"]),
            (&json!(false), &json!("a"), &json!("b"))
        );
        let none = page_of_messages(&json!({"data": []}));
        assert_eq!(
            (&none["data"], &none["last_id"]),
            (&json!([]), &Value::Null)
        );
    }

    /// 44: who may ask for one model sees one.
    #[test]
    fn models_are_those_that_may_be_asked_for_in_order() {
        let listed = body(json!({"models": [
            {"id": "b", "context_length": 8, "owned_by": "x"}, {"id": "a"},
            {"id": "c", "owned_by": "threadgraph"},
        ]}));
        let all = models(&listed, &[], &["agent/default".to_owned()], |_| true);
        let ids: Vec<_> = all["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["id"].clone())
            .collect();
        assert_eq!(ids, ["a", "agent/default", "b", "c"]);
        assert_eq!(
            (&all["data"][2]["context_window"], &all["data"][2]["tools"]),
            (&json!(8), &json!(true))
        );
        assert_eq!(all["data"][3]["tools"], false);
        let own = [json!("near/b"), json!("near/nobody"), json!("a")];
        let own = models(&listed, &own, &[], |id| id == "near/b");
        assert_eq!(own["data"][0]["id"], "near/b");
        assert_eq!(own["data"].as_array().unwrap().len(), 1);
        let one = models(&listed, &[], &[], |id| id == "b");
        assert_eq!(one["data"].as_array().unwrap().len(), 1);
    }
}
