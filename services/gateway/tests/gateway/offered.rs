//! The tools, resources and prompts that the conformance suite of the Model Context Protocol asks for, as `offered.json` lists
//! them: what is told or asked before an answer, what is asked for by an answer, and the answer.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{ClientCapabilities, ErrorData};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use tg_gateway::{Client, Offers};

/// All of them.
#[derive(Debug)]
pub struct Offered(Value);

impl Offered {
    /// As listed.
    pub fn all() -> Arc<Self> {
        let all = serde_json::from_str(include_str!("offered.json"));
        Arc::new(Self(all.expect("a list")))
    }

    /// The entry of a list whose `kind` has this under a key.
    fn find(&self, list: &str, kind: &str, key: &str, wanted: &Value) -> Option<Value> {
        let all = self.0[list].as_array()?;
        let found = all.iter().find(|one| one[kind][key] == *wanted);
        found.cloned()
    }

    /// The content of a resource.
    fn content(&self, uri: &Value) -> Option<Value> {
        if let Some(found) = self.find("resources", "resource", "uri", uri) {
            let mut content = found["content"].clone();
            content["uri"] = uri.clone();
            content["mimeType"] = found["resource"]["mimeType"].clone();
            return Some(content);
        }
        let template = &self.0["template"];
        let id = uri.as_str()?.strip_prefix(template["before"].as_str()?)?;
        let id = id.strip_suffix(template["behind"].as_str()?)?;
        let text = template["content"]["text"].as_str()?.replace("{id}", id);
        let kind = &template["template"]["mimeType"];
        Some(json!({"uri": uri, "mimeType": kind, "text": text}))
    }
}

impl Offers for Offered {
    fn add(&self, method: &str, result: &mut Value) {
        let (list, kind) = match method {
            "tools/list" => ("tools", "tool"),
            "resources/list" => ("resources", "resource"),
            "prompts/list" => ("prompts", "prompt"),
            "resources/templates/list" => {
                let listed = result["resourceTemplates"].as_array_mut().unwrap();
                listed.push(self.0["template"]["template"].clone());
                return;
            }
            "initialize" => {
                result["capabilities"]["resources"]["subscribe"] = true.into();
                return;
            }
            _ => return,
        };
        let own = self.0[list].as_array().unwrap().iter();
        let own: Vec<Value> = own.map(|one| one[kind].clone()).collect();
        let listed = result[list].as_array_mut().unwrap();
        // First: the suite reads the first resource that is listed.
        listed.splice(0..0, own);
    }

    fn answer(
        &self,
        method: &str,
        params: &Map<String, Value>,
        client: Client,
    ) -> Option<BoxFuture<'static, Result<Value, ErrorData>>> {
        let (list, kind) = match method {
            "tools/call" => ("tools", "tool"),
            "prompts/get" => ("prompts", "prompt"),
            "resources/read" => {
                let content = self.content(params.get("uri")?)?;
                return Some(at_once(json!({"contents": [content]})));
            }
            "resources/subscribe" | "resources/unsubscribe" => {
                // Only the older revisions have these.
                let here = client.is_asked_by_messages();
                self.content(params.get("uri")?).filter(|_| here)?;
                return Some(at_once(json!({})));
            }
            "completion/complete" => {
                let name = &params.get("ref")?["name"];
                self.find("prompts", "prompt", "name", name)?;
                return Some(at_once(json!({"completion": {"values": []}})));
            }
            _ => return None,
        };
        let one = self.find(list, kind, "name", params.get("name")?)?;
        Some(called(one, params.clone(), client).boxed())
    }
}

fn at_once(result: Value) -> BoxFuture<'static, Result<Value, ErrorData>> {
    std::future::ready(Ok(result)).boxed()
}

/// Does what a tool or prompt is listed with.
async fn called(
    one: Value,
    params: Map<String, Value>,
    client: Client,
) -> Result<Value, ErrorData> {
    if let Some(needed) = one["needs"].as_str()
        && !client.takes(needed)
    {
        let required: ClientCapabilities = serde_json::from_value(json!({"sampling": {}})).unwrap();
        return Err(ErrorData::missing_required_client_capability(required));
    }
    if let Some(asked) = asked_for(&one, &params, &client)? {
        return Ok(asked);
    }
    let mut answer = Value::Null;
    for step in one["steps"].as_array().into_iter().flatten() {
        if let Some(text) = step["log"].as_str() {
            client.log("info", text).await;
        }
        if let Some(done) = step["progress"].as_u64() {
            client.progress(done, 100).await;
        }
        if let Some(method) = step["ask"].as_str() {
            let details = filled(&step["params"], &params, &answer);
            answer = client.ask(method, details).await?;
        }
    }
    Ok(filled(&one["result"], &params, &answer))
}

/// What is asked for next by a result; `None`: all of it is known.
fn asked_for(
    one: &Value,
    params: &Map<String, Value>,
    client: &Client,
) -> Result<Option<Value>, ErrorData> {
    let Some(rounds) = one["rounds"].as_array() else {
        return Ok(None);
    };
    let sealed = one["sealed"] == true;
    let given = params.get("inputResponses");
    let (at, given) = match params.get("requestState").filter(|_| sealed) {
        Some(state) => (opened(state, rounds.len())?, given),
        // A first call, whatever else it says.
        None if sealed => (0, None),
        None => (0, given),
    };
    let asks = |round: &Value| -> Map<String, Value> {
        let all = round.as_object().unwrap().iter();
        let asked = all.filter(|(_, ask)| client.takes(ask["method"].as_str().unwrap()));
        asked.map(|(key, ask)| (key.clone(), ask.clone())).collect()
    };
    let is_given = |key: &String| given.is_some_and(|given| given[key.as_str()].is_object());
    let answered = asks(&rounds[at]).keys().all(is_given);
    let next = at + usize::from(answered);
    let Some(round) = rounds.get(next) else {
        return Ok(None);
    };
    let mut result = json!({"resultType": "input_required", "inputRequests": asks(round)});
    if sealed {
        result["requestState"] = seal(next).into();
    }
    Ok(Some(result))
}

/// The state of a call that waits for the answers of a round: its number, and what nobody else can write.
fn seal(round: usize) -> String {
    let proof = Sha256::digest(format!("known to this test alone {round}").as_bytes());
    format!("{round}.{}", hex::encode(proof))
}

fn opened(state: &Value, rounds: usize) -> Result<usize, ErrorData> {
    let found = (0..rounds).find(|round| *state == seal(*round));
    found.ok_or_else(|| ErrorData::invalid_params("requestState: is not one of this server", None))
}

/// A value with the arguments of a call and an answer in its texts.
fn filled(value: &Value, params: &Map<String, Value>, answer: &Value) -> Value {
    match value {
        Value::String(text) => {
            let mut text = text.replace("{answer}", &answer.to_string());
            let arguments = params.get("arguments").and_then(Value::as_object);
            for (name, given) in arguments.into_iter().flatten() {
                let given = given.as_str().unwrap_or_default();
                text = text.replace(&format!("{{argument:{name}}}"), given);
            }
            text.into()
        }
        Value::Array(all) => all.iter().map(|one| filled(one, params, answer)).collect(),
        Value::Object(all) => {
            let all = all.iter();
            let all = all.map(|(key, one)| (key.clone(), filled(one, params, answer)));
            Value::Object(all.collect())
        }
        other => other.clone(),
    }
}
