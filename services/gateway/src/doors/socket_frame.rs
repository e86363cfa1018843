//! Frames of the multiplexed socket: what clients send, what they get. Pure.

use std::time::Duration;

use serde_json::{Value, json};

use super::read;
use crate::ask::Part;
use crate::dispatch::Target;
use crate::fault::{Fault, error_frame};
use crate::translate::{Body, Fields, error_body};

/// A frame from a client.
pub(crate) enum Incoming {
    /// `{"type": "auth", "token"}`.
    Auth(String),
    /// `{"type": "cancel", "id"}`: ends every request with that id.
    Cancel(Value),
    /// A request.
    Ask(Box<Question>),
}

/// A request of the envelope.
pub(crate) struct Question {
    /// Echoed, whatever it is.
    pub(crate) id: Value,
    pub(crate) target: Target,
    pub(crate) body: Body,
    pub(crate) workspace: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) detach: bool,
}

/// A frame that cannot be answered otherwise, with the id it had.
pub(crate) struct Refused {
    pub(crate) id: Option<Value>,
    pub(crate) fault: Fault,
}

/// Reads a frame. `known` says whether the caller is: to strangers every request gets the same answer.
pub(crate) fn parse(bytes: &[u8], known: bool) -> Result<Incoming, Box<Refused>> {
    let mut frame = match serde_json::from_slice(bytes) {
        Ok(Value::Object(frame)) => frame,
        Ok(_) => return Err(refused(None, Fault::NotAnObject)),
        Err(detail) => return Err(refused(None, Fault::InvalidJson(detail.to_string()))),
    };
    match frame.get("type").and_then(Value::as_str) {
        Some("auth") => {
            let token = Fields::new(&frame).text("token");
            return token
                .map(Incoming::Auth)
                .map_err(|error| refused(None, error.into()));
        }
        Some("cancel") => {
            return match frame.remove("id") {
                Some(id) => Ok(Incoming::Cancel(id)),
                None => Err(refused(None, Fault::BadMessage("id: is required"))),
            };
        }
        _ => {}
    }
    let Some(id) = frame.remove("id") else {
        return Err(refused(None, Fault::BadMessage("id: is required")));
    };
    if !known {
        return Err(refused(Some(id), Fault::AuthFailure));
    }
    question(id.clone(), frame).map_err(|fault| refused(Some(id), fault))
}

fn refused(id: Option<Value>, fault: Fault) -> Box<Refused> {
    Box::new(Refused { id, fault })
}

fn question(id: Value, mut frame: Body) -> Result<Incoming, Fault> {
    let body = match frame.remove("request") {
        Some(Value::Object(body)) => body,
        Some(_) => return Err(Fault::BadMessage("request: must be an object")),
        None => return Err(Fault::BadMessage("request: is required")),
    };
    let fields = Fields::new(&frame);
    let service = fields.text("service")?;
    let flow = fields.text("flow")?;
    let workspace = fields.opt_text("workspace")?;
    let timeout = read::seconds("timeout", fields.integer_or("timeout", 0)?)?;
    let detach = fields.flag("detach")?;
    let target = if flow.is_empty() {
        Target::service(&service, &body)?
    } else {
        Target::kind(&service, &flow)?
    };
    Ok(Incoming::Ask(Box::new(Question {
        id,
        target,
        body,
        workspace,
        timeout,
        detach,
    })))
}

/// A part of an answer.
pub(crate) fn part(id: &Value, part: Part) -> Value {
    match part {
        Part::Body { body, last, .. } => json!({"id": id, "response": body, "complete": last}),
        Part::Fault(error) => failure(id, &Fault::Service(error)),
    }
}

/// A failure of a request that was under way or about to be. Some clients look for the error beside
/// `id`, some inside `response`: it is in both places.
pub(crate) fn failure(id: &Value, fault: &Fault) -> Value {
    let Fault::Service(error) = fault else {
        return fault.frame(Some(id));
    };
    let mut frame = error_frame(error, Some(id));
    frame["response"] = Value::Object(error_body(error));
    frame
}

/// `auth-ok`.
pub(crate) fn auth_ok(workspace: &str) -> Value {
    json!({"type": "auth-ok", "default_workspace": workspace})
}

/// `auth-failed`; the reason is never told.
pub(crate) fn auth_failed() -> Value {
    json!({"type": "auth-failed", "error": "auth failure"})
}

#[cfg(test)]
mod tests {
    use super::*;
    use tg_schemas::{Error, ErrorCode};

    fn ask(frame: Value) -> Result<Incoming, Value> {
        parse(frame.to_string().as_bytes(), true).map_err(|one| one.fault.frame(one.id.as_ref()))
    }

    fn error(frame: Value) -> Value {
        match ask(frame) {
            Err(frame) => frame,
            Ok(_) => panic!("was accepted"),
        }
    }

    #[test]
    fn requests_are_read_with_any_id() {
        for id in [json!("req-1"), json!(0), json!(null), json!({"a": [1]})] {
            let frame = json!({"id": id, "service": "agent", "flow": "f", "workspace": null,
                               "request": {"question": "q"}, "timeout": 30});
            let Ok(Incoming::Ask(question)) = ask(frame) else {
                panic!("refused");
            };
            assert_eq!(question.id, id);
            assert_eq!(question.timeout, Some(Duration::from_secs(30)));
            assert_eq!(question.target.name(), "agent");
        }
    }

    #[test]
    fn every_malformed_frame_gets_an_error_that_names_the_field() {
        assert_eq!(
            error(json!({"request": {}}))["error"]["message"],
            "Bad message: id: is required"
        );
        let missing = error(json!({"id": "1"}));
        assert_eq!(missing["id"], "1");
        assert_eq!(missing["complete"], true);
        assert_eq!(
            missing["error"]["message"],
            "Bad message: request: is required"
        );
        assert_eq!(
            error(json!({"id": 1, "request": []}))["error"]["message"],
            "Bad message: request: must be an object"
        );
        assert_eq!(
            error(json!({"id": 1, "request": {}, "service": 3}))["error"]["message"],
            "service: must be text"
        );
        assert_eq!(
            error(json!({"id": 1, "request": {}, "service": "agent", "flow": "f", "timeout": -1}))
                ["error"]["message"],
            "timeout: must be from 1 to 3600 seconds"
        );
        assert_eq!(
            error(json!({"id": 1, "request": {}, "service": "config"}))["error"]["type"],
            "unknown-service"
        );
        for noise in [&b"{"[..], b"", b"\xff\x00", b"[1]", b"null"] {
            let refused = parse(noise, true).err().unwrap();
            let frame = refused.fault.frame(refused.id.as_ref());
            assert_eq!(frame["error"]["type"], "error");
            assert_eq!(frame["complete"], true);
        }
    }

    #[test]
    fn strangers_learn_nothing_about_services() {
        for service in ["config", "nothing"] {
            let frame = json!({"id": 1, "request": {"operation": "x"}, "service": service});
            let refused = parse(frame.to_string().as_bytes(), false).err().unwrap();
            assert_eq!(refused.fault, Fault::AuthFailure);
        }
        assert!(matches!(
            parse(br#"{"type": "auth", "token": null}"#, false),
            Ok(Incoming::Auth(token)) if token.is_empty()
        ));
    }

    #[test]
    fn failures_are_found_wherever_a_client_looks() {
        let fault = Part::Fault(Error::new(ErrorCode::Busy, "later"));
        let frame = part(&json!("a"), fault);
        assert_eq!(frame["error"], frame["response"]["error"]);
        assert_eq!(frame["error"]["type"], "busy");
        assert_eq!(frame["complete"], true);
        assert!(
            failure(&json!(1), &Fault::AccessDenied)
                .get("response")
                .is_none()
        );
    }
}
