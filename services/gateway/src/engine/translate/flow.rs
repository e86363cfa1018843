//! `flow`: blueprints and flows of a workspace, and the operator's questions about them.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tg_schemas::msg::{FlowRequest, FlowResponse};
use tg_schemas::{Error, Message};

use super::fields::{Body, Fields, Reply};
use super::secrets::{mask, masked, masked_at, shown};
use super::{About, Translate};

/// Keys of the operator's operations, beyond the contract type.
const EXTRAS: &[&str] = &["drain", "dry-run", "put-aside-id", "reason", "limit"];

/// Operations whose `limit` and `after` are fields of the contract type.
const LISTINGS: [&str; 3] = ["list-blueprints", "list-flows", "list-put-aside"];

/// `FlowRequest` with the operator's keys beside the contract's fields, which foreign services ignore.
/// They are in `parameters` too, as text: these operations have no parameters of their own.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FlowQuestion {
    #[serde(flatten)]
    request: FlowRequest,
    #[serde(flatten)]
    extras: Body,
}

/// `FlowResponse` with whatever our flow service says beyond the contract type.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FlowAnswer {
    #[serde(flatten)]
    response: FlowResponse,
    #[serde(flatten)]
    extras: Body,
}

impl Message for FlowQuestion {
    const NAME: &'static str = FlowRequest::NAME;
    const AVRO: &'static str = FlowRequest::AVRO;
}

impl Message for FlowAnswer {
    const NAME: &'static str = FlowResponse::NAME;
    const AVRO: &'static str = FlowResponse::AVRO;
}

impl tg_schemas::Reply for FlowAnswer {
    fn is_last(&self) -> bool {
        true
    }
    fn error(&self) -> Option<&Error> {
        self.response.error.as_ref()
    }
    fn failure(error: Error) -> Self {
        Self {
            response: FlowResponse::failure(error),
            extras: Body::new(),
        }
    }
}

/// The `flow` service.
pub struct Flow;

impl Translate for Flow {
    type Question = FlowQuestion;
    type Answer = FlowAnswer;

    fn question(body: &Fields<'_>, about: &About) -> Result<FlowQuestion, Error> {
        let mut parameters = body.text_map("parameters")?;
        let mut extras = Body::new();
        let listing = LISTINGS.contains(&about.operation.as_str());
        let (limit, after) = match listing {
            true => (body.integer_or("limit", 0)?, body.text("after")?),
            false => Default::default(),
        };
        if about.operation != "start-flow" {
            for key in EXTRAS {
                if listing && *key == "limit" {
                    continue;
                }
                if let Some(value) = body.value(key) {
                    let text = value
                        .as_str()
                        .map_or_else(|| value.to_string(), str::to_owned);
                    parameters.insert((*key).to_owned(), text);
                    // The contract type has a field of the name, which is of one type only.
                    if *key != "limit" {
                        extras.insert(key.replace('-', "_"), value.clone());
                    }
                }
            }
        }
        let blueprint_definition = body.text("blueprint-definition")?;
        shown("blueprint-definition", &blueprint_definition)?;
        for value in parameters.values() {
            shown("parameters", value)?;
        }
        Ok(FlowQuestion {
            request: FlowRequest {
                operation: about.operation.clone(),
                blueprint_name: body.text("blueprint-name")?,
                blueprint_definition,
                description: body.text("description")?,
                flow_id: body.text("flow-id")?,
                parameters,
                limit,
                after,
            },
            extras,
        })
    }

    fn part(part: FlowAnswer, about: &About) -> Body {
        let FlowAnswer {
            mut response,
            mut extras,
        } = part;
        if about.masked {
            for text in [&mut response.blueprint_definition, &mut response.flow] {
                *text = masked(std::mem::take(text));
            }
            for (name, value) in &mut response.parameters {
                *value = masked_at(name, std::mem::take(value));
            }
            for value in extras.values_mut() {
                // Some of it is JSON as text.
                match value {
                    Value::String(text) => *text = masked(std::mem::take(text)),
                    other => drop(mask(other)),
                }
            }
        }
        let said = more(&about.operation, &response.flow);
        let mut body = Reply::new()
            .put("blueprint-names", response.blueprint_names)
            .put("flow-ids", response.flow_ids)
            .put("blueprint-definition", response.blueprint_definition)
            .put("flow", response.flow)
            .put("description", response.description)
            .put("parameters", json!(response.parameters))
            .put_truthy("next", response.next)
            .done();
        for (key, value) in extras.into_iter().chain(said) {
            if !value.is_null() {
                body.entry(key.replace('_', "-")).or_insert(opened(value));
            }
        }
        body
    }
}

/// JSON text as the value it holds.
fn opened(value: Value) -> Value {
    match &value {
        Value::String(text) if text.starts_with(['{', '[']) => {
            serde_json::from_slice(text.as_bytes()).unwrap_or(value)
        }
        _ => value,
    }
}

/// What our flow service says beyond the contract's fields: an object in the one free text.
fn more(operation: &str, text: &str) -> Body {
    if operation == "get-flow" {
        return Body::new();
    }
    match serde_json::from_slice(text.as_bytes()) {
        Ok(Value::Object(said)) => said,
        _ => Body::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;

    #[test]
    fn names_are_kebab_outside_and_snake_inside() {
        let start = question::<Flow>(
            json!({"flow-id": "f", "blueprint-name": "b", "description": null,
                   "parameters": {"temperature": 0.3, "model": "m", "off": null}}),
            "start-flow",
        )
        .unwrap()
        .request;
        assert_eq!(
            (start.flow_id.as_str(), start.blueprint_name.as_str()),
            ("f", "b")
        );
        assert_eq!(start.parameters["temperature"], "0.3");
        assert!(!start.parameters.contains_key("off"));
        let error = question::<Flow>(json!({"flow-id": 3}), "stop-flow").unwrap_err();
        assert_eq!(error.message, "flow-id: must be a string");
    }

    #[test]
    fn credentials_of_flows_are_for_who_may_write_them() {
        let answer = || {
            let secret = json!({"parameters": {"api-key": "S3CRET", "model": "seen"}}).to_string();
            FlowAnswer {
                response: FlowResponse {
                    blueprint_definition: secret.clone(),
                    flow: secret.clone(),
                    parameters: [("api-key", "S3CRET"), ("model", "seen")]
                        .map(|(name, value)| (name.to_owned(), value.to_owned()))
                        .into(),
                    ..FlowResponse::default()
                },
                extras: Body::from_iter([("report".to_owned(), json!(secret))]),
            }
        };
        let about = |masked| About {
            operation: "get-flow".to_owned(),
            masked,
            ..About::default()
        };
        let seen = json!(Flow::part(answer(), &about(true))).to_string();
        assert!(!seen.contains("S3CRET") && seen.contains("seen"), "{seen}");
        assert!(
            json!(Flow::part(answer(), &about(false)))
                .to_string()
                .contains("S3CRET")
        );
        let put = json!({"blueprint-name": "b", "blueprint-definition": seen});
        let told = question::<Flow>(put, "put-blueprint").unwrap_err();
        assert!(
            told.message
                .starts_with("blueprint-definition: must not hold"),
            "{told}"
        );
    }

    #[test]
    fn every_key_of_the_reply_is_always_there() {
        assert_eq!(
            part::<Flow>(FlowAnswer::default(), "list-flows"),
            json!({"blueprint-names": [], "flow-ids": [], "blueprint-definition": "", "flow": "",
                   "description": "", "parameters": {}})
        );
    }

    #[test]
    fn pages_of_listings_are_fields_and_the_most_to_replay_is_an_option() {
        let ask = |operation: &str| {
            let page = json!({"limit": 7, "after": "x", "reason": "dead"});
            let asked = question::<Flow>(page, operation).unwrap();
            serde_json::from_value::<FlowRequest>(json!(asked)).unwrap()
        };
        for listing in LISTINGS {
            let listed = ask(listing);
            assert_eq!((listed.limit, listed.after.as_str()), (7, "x"));
            let options = [("reason".to_owned(), "dead".to_owned())];
            assert_eq!(listed.parameters, options.into());
        }
        let replay = ask("replay-put-aside");
        assert_eq!(
            (replay.limit, replay.parameters["limit"].as_str()),
            (0, "7")
        );
        let response = FlowResponse {
            next: "y".into(),
            ..FlowResponse::default()
        };
        let answer = FlowAnswer {
            response,
            extras: Body::new(),
        };
        assert_eq!(part::<Flow>(answer, "list-flows")["next"], "y");
    }

    #[test]
    fn operator_keys_travel_both_ways() {
        let stop = question::<Flow>(
            json!({"flow-id": "f", "drain": "park", "dry-run": true}),
            "stop-flow",
        )
        .unwrap();
        let wire = json!(stop);
        assert_eq!(wire["dry_run"], true);
        assert_eq!(wire["parameters"]["drain"], "park");
        let typed: FlowRequest = serde_json::from_value(wire).unwrap();
        assert_eq!(typed.parameters["dry-run"], "true");

        let extra: FlowAnswer = serde_json::from_value(json!({
            "flow_ids": null, "put_aside": [{"id": "1"}], "receipt": "{\"queues\": []}"
        }))
        .unwrap();
        let body = part::<Flow>(extra, "list-put-aside");
        assert_eq!(body["put-aside"][0]["id"], "1");
        assert_eq!(body["receipt"]["queues"], json!([]));

        let text = FlowAnswer {
            response: FlowResponse {
                flow: r#"{"receipt": {"queues-removed": 3}, "flow-ids": ["not ours"]}"#.into(),
                ..FlowResponse::default()
            },
            extras: Body::new(),
        };
        let body = part::<Flow>(text.clone(), "stop-flow");
        assert_eq!(body["receipt"]["queues-removed"], 3);
        assert_eq!(body["flow-ids"], json!([]));
        assert!(part::<Flow>(text, "get-flow").get("receipt").is_none());
    }
}
