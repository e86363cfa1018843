//! Frames of the multiplexed socket: what clients send, what they get. Pure.
//!
//! A frame is read in two steps: its envelope, which costs nothing however large the frame is, and, once there is
//! memory for it, the request inside.

use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::read;
use crate::ask::Part;
use crate::call::{Leave, Target};
use crate::engine::translate::{Body, Fields, PartBody, error_body};
use crate::error::{RequestError, error_frame};
use crate::registry;
use crate::rejoin;
use crate::running::Place;

/// Longest id of a request, as JSON.
const MAX_ID: usize = 4 << 10;
/// Longest token, as JSON, and longest other field of an envelope.
const MAX_FIELD: usize = 64 << 10;

/// A field that is there, even if it is `null`.
#[derive(Default)]
struct Raw<'a>(Option<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(from).map(|raw| Self(Some(raw)))
    }
}

/// The keys of a frame; what they hold is not looked at.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope<'a> {
    #[serde(borrow)]
    r#type: Raw<'a>,
    #[serde(borrow)]
    token: Raw<'a>,
    #[serde(borrow)]
    id: Raw<'a>,
    #[serde(borrow)]
    service: Raw<'a>,
    #[serde(borrow)]
    flow: Raw<'a>,
    #[serde(borrow)]
    workspace: Raw<'a>,
    #[serde(borrow)]
    timeout: Raw<'a>,
    #[serde(borrow)]
    detach: Raw<'a>,
    #[serde(borrow, rename = "on-disconnect")]
    on_disconnect: Raw<'a>,
    #[serde(borrow)]
    resume: Raw<'a>,
    #[serde(borrow)]
    request: Raw<'a>,
}

/// What a frame is.
#[derive(Debug)]
pub(crate) enum Incoming {
    /// `{"type": "auth", "token"}`.
    Auth(String),
    /// `{"type": "cancel", "id"}`: ends every request with that id.
    Cancel(Value),
    /// A request, by its id; the rest is read by [`question`].
    Ask(Value),
}

/// A request of the envelope.
pub(crate) struct Question {
    pub(crate) target: Target,
    pub(crate) body: Body,
    pub(crate) workspace: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) leave: Leave,
}

/// A frame that cannot be answered otherwise, with the id it had.
pub(crate) struct Refused {
    pub(crate) id: Option<Value>,
    pub(crate) fault: RequestError,
}

/// Reads a frame's envelope. `known` says whether the caller is: to strangers every request gets the same answer.
pub(crate) fn parse(bytes: &[u8], known: bool) -> Result<Incoming, Box<Refused>> {
    let frame = envelope(bytes).map_err(|fault| refused(None, fault))?;
    // A type that is no text is none.
    let kind: Option<String> = frame
        .r#type
        .0
        .filter(|raw| raw.get().len() <= MAX_ID)
        .and_then(|raw| serde_json::from_slice(raw.get().as_bytes()).ok());
    let id = match frame.id.0 {
        Some(raw) if raw.get().len() > MAX_ID => {
            let why = "id: must not be longer than 4096 bytes";
            return Err(refused(None, RequestError::BadMessage(why)));
        }
        Some(raw) => serde_json::from_slice::<Value>(raw.get().as_bytes()).ok(),
        None => None,
    };
    match (kind.as_deref(), id) {
        (Some("auth"), _) => {
            let token = small([("token", &frame.token)])
                .and_then(|fields| Ok(Fields::new(&fields).text("token")?));
            token
                .map(Incoming::Auth)
                .map_err(|fault| refused(None, fault))
        }
        (_, None) => Err(refused(None, RequestError::BadMessage("id: is required"))),
        (Some("cancel"), Some(id)) => Ok(Incoming::Cancel(id)),
        (_, Some(id)) if !known => Err(refused(Some(id), RequestError::AuthFailure)),
        (_, Some(id)) => Ok(Incoming::Ask(id)),
    }
}

/// Reads the request of a frame.
pub(crate) fn question(bytes: &[u8]) -> Result<Question, RequestError> {
    let frame = envelope(bytes)?;
    let resume = small([("resume", &frame.resume)])?;
    let resumed = Fields::new(&resume).object("resume")?;
    let body = match frame.request.0 {
        None if let Some(place) = resumed => joined(&place)?,
        Some(_) if resumed.is_some() => {
            return Err(RequestError::BadMessage(
                "resume: must not come with a request",
            ));
        }
        None => return Err(RequestError::BadMessage("request: is required")),
        Some(raw) => match serde_json::from_slice(raw.get().as_bytes()) {
            Ok(Value::Object(body)) => body,
            Err(detail) => return Err(RequestError::InvalidJson(detail.to_string())),
            Ok(_) => return Err(RequestError::BadMessage("request: must be an object")),
        },
    };
    let fields = small([
        ("service", &frame.service),
        ("flow", &frame.flow),
        ("workspace", &frame.workspace),
        ("timeout", &frame.timeout),
        ("detach", &frame.detach),
        ("on-disconnect", &frame.on_disconnect),
    ])?;
    let fields = Fields::new(&fields);
    let service = fields.text("service")?;
    let flow = fields.text("flow")?;
    let workspace = fields.opt_text("workspace")?;
    let timeout = read::seconds("timeout", fields.integer_or("timeout", 0)?)?;
    let leave = match (fields.opt_text("on-disconnect")?, fields.flag("detach")?) {
        (Some(text), _) => read::on_disconnect("on-disconnect", &text)?,
        (None, true) => Leave::Detach,
        (None, false) => Leave::Cancel,
    };
    let target = if frame.request.0.is_none() {
        Target::service(registry::REQUESTS, &body)?
    } else if flow.is_empty() {
        Target::service(&service, &body)?
    } else {
        Target::kind(&service, &flow)?
    };
    Ok(Question {
        target,
        body,
        workspace,
        timeout,
        leave,
    })
}

/// The request that a run is joined with, behind the part that the client has.
fn joined(place: &Fields<'_>) -> Result<Body, RequestError> {
    let run = place.required_text("run")?;
    let offset = match place.value("offset") {
        None => None,
        Some(_) => match u64::try_from(place.integer_or("offset", 0)?) {
            Ok(offset) => Some(offset),
            Err(_) => return Err(place.fault("offset", "must not be negative").into()),
        },
    };
    let mut request = rejoin::request(&run, offset);
    request.insert("all".to_owned(), place.flag("all")?.into());
    Ok(request)
}

fn envelope(bytes: &[u8]) -> Result<Envelope<'_>, RequestError> {
    let invalid = |detail: serde_json::Error| RequestError::InvalidJson(detail.to_string());
    if bytes.trim_ascii_start().first() == Some(&b'{') {
        return serde_json::from_slice(bytes).map_err(invalid);
    }
    serde_json::from_slice::<IgnoredAny>(bytes).map_err(invalid)?;
    Err(RequestError::NotAnObject)
}

/// Fields that are short, as values.
fn small<const N: usize>(fields: [(&'static str, &Raw<'_>); N]) -> Result<Body, RequestError> {
    let mut body = Body::new();
    for (name, raw) in fields {
        let Some(raw) = raw.0 else { continue };
        if raw.get().len() > MAX_FIELD {
            return Err(RequestError::BadMessage(
                "a field of the envelope is too long",
            ));
        }
        let value = serde_json::from_slice(raw.get().as_bytes());
        body.insert(
            name.to_owned(),
            value.map_err(|detail| RequestError::InvalidJson(detail.to_string()))?,
        );
    }
    Ok(body)
}

fn refused(id: Option<Value>, fault: RequestError) -> Box<Refused> {
    Box::new(Refused { id, fault })
}

/// A part of an answer, as it is written.
#[derive(Serialize)]
struct PartFrame<'a> {
    id: &'a Value,
    response: &'a PartBody,
    complete: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
}

/// The text of a part of an answer, with its place in the run.
pub(crate) fn part(id: &Value, part: Part, place: Option<Place<'_>>) -> String {
    match part {
        Part::Body { body, last, .. } => text(&PartFrame {
            id,
            response: &body,
            complete: last,
            run: place.map(|place| place.run),
            offset: place.map(|place| place.offset),
        }),
        Part::Error(error) => text(&failure(id, &RequestError::Service(error))),
    }
}

/// The text of a frame. Written to a buffer at once: by way of a formatter each token of it would be a call of its own.
pub(crate) fn text(frame: &impl Serialize) -> String {
    // What has texts for keys can always be written.
    serde_json::to_string(frame).unwrap_or_default()
}

/// A failure of a request that was under way or about to be. Some clients look for the error beside
/// `id`, some inside `response`: it is in both places.
pub(crate) fn failure(id: &Value, fault: &RequestError) -> Value {
    let RequestError::Service(error) = fault else {
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

    fn ask(frame: Value) -> Result<(Value, Question), Value> {
        let bytes = frame.to_string();
        let read = parse(bytes.as_bytes(), true);
        match read.map_err(|one| one.fault.frame(one.id.as_ref()))? {
            Incoming::Ask(id) => match question(bytes.as_bytes()) {
                Ok(question) => Ok((id, question)),
                Err(fault) => Err(failure(&id, &fault)),
            },
            other => panic!("{other:?}"),
        }
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
            let Ok((echoed, question)) = ask(frame) else {
                panic!("refused");
            };
            assert_eq!(echoed, id);
            assert_eq!(question.timeout, Some(Duration::from_secs(30)));
            assert_eq!(question.target.name(), "agent");
        }
    }

    #[test]
    fn a_run_is_resumed_alone_and_from_a_part_that_there_may_be() {
        let message = |frame: Value| error(frame)["error"]["message"].clone();
        let both = json!({"id": "1", "service": "agent", "flow": "f",
            "request": {"question": "q"}, "resume": {"run": "r"}});
        assert_eq!(
            message(both),
            "Bad message: resume: must not come with a request"
        );
        let before = json!({"id": "1", "resume": {"run": "r", "offset": -1}});
        assert_eq!(message(before), "resume.offset: must not be negative");
        let whole = ask(json!({"id": "1", "resume": {"run": "r", "offset": 0}}));
        assert_eq!(whole.ok().unwrap().1.body["offset"], 0);
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
            "service: must be a string"
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
    fn an_envelope_is_read_without_what_it_holds() {
        let long = "[0],".repeat(2000);
        let frame = format!("{{\"id\": [{long}0], \"request\": {{}}}}");
        let refused = parse(frame.as_bytes(), true).err().unwrap();
        assert!(refused.id.is_none() && refused.fault.error().message.contains("id: "));
        let frame = format!("{{\"type\": \"cancel\", \"id\": 7, \"x\": [{long}0]}}");
        assert!(matches!(
            parse(frame.as_bytes(), true),
            Ok(Incoming::Cancel(id)) if id == 7
        ));
    }

    #[test]
    fn strangers_learn_nothing_about_services() {
        for service in ["config", "nothing"] {
            let frame = json!({"id": 1, "request": {"operation": "x"}, "service": service});
            let refused = parse(frame.to_string().as_bytes(), false).err().unwrap();
            assert_eq!(refused.fault, RequestError::AuthFailure);
        }
        assert!(matches!(
            parse(br#"{"type": "auth", "token": null}"#, false),
            Ok(Incoming::Auth(token)) if token.is_empty()
        ));
    }

    #[test]
    fn a_part_has_its_place_behind_what_it_says() {
        let body = |last| Part::Body {
            body: Body::from_iter([("b".to_owned(), json!(1)), ("a".to_owned(), json!("x"))])
                .into(),
            last,
            failed: false,
        };
        assert_eq!(
            part(&json!({"z": 1, "y": [2]}), body(true), None),
            r#"{"id":{"z":1,"y":[2]},"response":{"b":1,"a":"x"},"complete":true}"#
        );
        let place = Place {
            run: "r",
            offset: 0,
        };
        assert_eq!(
            part(&json!("a"), body(false), Some(place)),
            r#"{"id":"a","response":{"b":1,"a":"x"},"complete":false,"run":"r","offset":0}"#
        );
    }

    #[test]
    fn failures_are_found_wherever_a_client_looks() {
        let fault = Part::Error(Error::new(ErrorCode::Busy, "later"));
        let frame = part(&json!("a"), fault, None);
        let frame: Value = serde_json::from_str(&frame).unwrap();
        assert_eq!(frame["error"], frame["response"]["error"]);
        assert_eq!(frame["error"]["type"], "busy");
        assert_eq!(frame["complete"], true);
        assert!(
            failure(&json!(1), &RequestError::AccessDenied)
                .get("response")
                .is_none()
        );
    }
}
