//! What a run of the agent asks before it uses a tool, as a question to the user of a client, and what they answer. The id of
//! the question names the run and what it asks, so whichever gateway the answer comes to can pass it on.

use rmcp::model::RequestId;
use serde_json::{Value, json};

use crate::engine::translate::Body;

/// The operation that passes an answer on.
pub(crate) const OPERATION: &str = "confirm-run";
/// The field of the form.
const ALLOW: &str = "allow";
/// What ids of questions begin with.
const BEGINNING: &str = "confirm";
/// Longest text of the arguments that is shown: nobody is asked about what they do not see.
const SHOWN_BYTES: usize = 2 << 10;

/// The question of a part; `None`: it asks nothing, or does not say what, or more than a form shows.
pub(crate) fn question(run: &str, part: &Body) -> Option<Value> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    if text("message_type") != Some("confirm") {
        return None;
    }
    let asked = text("message_id").filter(|id| !id.is_empty())?;
    let content: Value = serde_json::from_slice(text("content")?.as_bytes()).ok()?;
    let tool = content["tool"].as_str()?;
    let arguments = content["arguments"].to_string();
    if arguments.len() > SHOWN_BYTES {
        return None;
    }
    Some(json!({
        "jsonrpc": "2.0",
        "id": format!("{BEGINNING} {run} {asked}"),
        "method": "elicitation/create",
        "params": {
            "message": format!("May the agent use the tool {tool}, with {arguments}?"),
            "requestedSchema": {
                "type": "object",
                "properties": {ALLOW: {"type": "boolean", "title": "Allow it"}},
                "required": [ALLOW],
            },
        },
    }))
}

/// The operation that an answer is; `None`: it answers no such question, or leaves it open.
pub(crate) fn answer(id: &RequestId, result: &Value) -> Option<Body> {
    let RequestId::String(id) = id else {
        return None;
    };
    let mut parts = id.splitn(3, ' ');
    let (beginning, run, asked) = (parts.next()?, parts.next()?, parts.next()?);
    if beginning != BEGINNING {
        return None;
    }
    let answer = match result["action"].as_str()? {
        "accept" if result["content"][ALLOW] == Value::Bool(true) => "yes",
        "accept" | "decline" => "no",
        // Closed without a word: it can still be answered elsewhere.
        _ => return None,
    };
    let mut body = Body::new();
    body.insert("operation".to_owned(), OPERATION.into());
    body.insert("run".to_owned(), run.into());
    body.insert("message_id".to_owned(), asked.into());
    body.insert("answer".to_owned(), answer.into());
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(content: &str) -> Body {
        let part = json!({"message_type": "confirm", "message_id": "urn:m", "content": content});
        part.as_object().cloned().unwrap()
    }

    #[test]
    fn a_question_is_answered_by_its_id_alone() {
        let asked = question(
            "r",
            &part(r#"{"tool": "pay", "arguments": {"bill": "7"}, "until-ms": 1}"#),
        );
        let asked = asked.unwrap();
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(
            message.contains("pay") && message.contains(r#"{"bill":"7"}"#),
            "{message}"
        );
        let id: RequestId = serde_json::from_value(asked["id"].clone()).unwrap();
        for (result, said) in [
            (
                json!({"action": "accept", "content": {"allow": true}}),
                Some("yes"),
            ),
            (
                json!({"action": "accept", "content": {"allow": false}}),
                Some("no"),
            ),
            (
                json!({"action": "accept", "content": {"allow": "true"}}),
                Some("no"),
            ),
            (json!({"action": "accept"}), Some("no")),
            (json!({"action": "decline"}), Some("no")),
            (json!({"action": "cancel"}), None),
            (json!({}), None),
        ] {
            let body = answer(&id, &result).map(Value::Object);
            let wanted = said.map(|said| {
                json!({"operation": "confirm-run", "run": "r", "message_id": "urn:m", "answer": said})
            });
            assert_eq!(body, wanted, "{result}");
        }
    }

    #[test]
    fn what_asks_nothing_is_no_question() {
        assert!(question("r", &part("no JSON")).is_none());
        assert!(question("r", &part(r#"{"arguments": {}}"#)).is_none());
        let mut thought = part(r#"{"tool": "pay"}"#);
        thought.insert("message_type".to_owned(), "thought".into());
        assert!(question("r", &thought).is_none());
        let long = format!(
            r#"{{"tool": "pay", "arguments": "{}"}}"#,
            "ä".repeat(SHOWN_BYTES)
        );
        assert!(question("r", &part(&long)).is_none());
        let accepted = json!({"action": "accept", "content": {"allow": true}});
        for other in ["confirm r", "r", "sample r m", ""] {
            assert!(answer(&RequestId::String(other.into()), &accepted).is_none());
        }
        assert!(answer(&RequestId::Number(1), &accepted).is_none());
    }
}
