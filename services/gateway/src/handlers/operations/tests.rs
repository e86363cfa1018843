//! What makes a request, and how answers and failures are written.

use tg_schemas::operations::{Compacted, Cost, ListMessages, SendMessage, TurnResult};

use super::*;
use crate::engine::translate::agent::gap;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let name = HeaderName::from_static(name);
        (name, HeaderValue::from_static(value))
    });
    pairs.collect()
}

fn code(failure: &Object) -> &str {
    failure["code"].as_str().unwrap()
}

#[test]
fn the_user_is_the_one_of_the_header_and_not_of_the_body() {
    let mut body = Body::new();
    body.insert("user_id".to_owned(), "eve".into());
    let given = headers(&[("spass-user-id", " ann "), ("spass-caller-depth", "2")]);
    let shape = Shape::of::<SendMessage>();
    shape.beside(&mut body, &given, None).unwrap();
    assert_eq!(body["user_id"], "ann");
    assert_eq!(body["caller_depth"], 2);
    shape.beside(&mut body, &HeaderMap::new(), None).unwrap();
    assert!(!body.contains_key("user_id"));
}

#[test]
fn trailers_name_each_header_of_a_turn() {
    let turn = TurnResult {
        cost: Cost {
            eur: Some(0.5),
            usd: Some(0.5),
            source: "table".to_owned(),
            sub_calls: 1,
        },
        compacted: Some(Compacted::default()),
        ..TurnResult::default()
    };
    let mut sent: Vec<&str> = turn.headers().into_iter().map(|(name, _)| name).collect();
    let mut announced: Vec<&str> = TRAILERS.split(", ").collect();
    sent.sort_unstable();
    announced.sort_unstable();
    assert_eq!(announced, sent);
}

/// 35: the header of the depth.
#[test]
fn line_035_a_depth_that_is_not_a_number_is_refused() {
    let given = headers(&[("spass-caller-depth", "x")]);
    let shape = Shape::of::<SendMessage>();
    let refused = shape.beside(&mut Body::new(), &given, None);
    assert_eq!(code(&refused.unwrap_err()), "invalid_header");
}

#[test]
fn a_query_is_read_in_the_form_of_its_fields() {
    let mut body = Body::new();
    let query = Some("limit=3&cursor=a%20b&live=true&other=1");
    let shape = Shape::of::<ListMessages>();
    shape.beside(&mut body, &HeaderMap::new(), query).unwrap();
    let expected = json!({"limit": 3, "cursor": "a b", "live": true});
    assert_eq!(Value::Object(body), expected);
    let wrong = Some("limit=x");
    let refused = shape.beside(&mut Body::new(), &HeaderMap::new(), wrong);
    assert_eq!(code(&refused.unwrap_err()), "validation_error");
}

/// 23: where an archived session continues.
#[test]
fn line_023_an_archived_session_names_the_place_of_its_successor() {
    let path = [("name", "a"), ("session_id", "1")];
    let path = path.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let failure = Failure::new(FailureCode::SessionArchived, "m").continued_in("2");
    let failure = object_of(&failure);
    let place = continues_at(
        &SendMessage::META,
        SendMessage::META.path,
        path.into(),
        &failure,
    );
    assert_eq!(place.as_deref(), Some("/a1/agents/a/sessions/2/messages"));
    let response = told(&failure, place, ("request_id", "r"));
    assert_eq!(response.status(), StatusCode::PERMANENT_REDIRECT);
    assert!(response.headers().contains_key(header::LOCATION));
}

#[test]
fn a_part_is_an_event_of_its_own_name() {
    let body = |value: Value| value.as_object().cloned().unwrap();
    let part = |value, last, failed| Part::Body {
        body: body(value).into(),
        last,
        failed,
    };
    let told = |part: Part| {
        let (name, data) = named(part);
        event(&name, &data, None)
    };
    let token = json!({"event": "token", "data": {"delta": "a\nb"}});
    let token = told(part(token, false, false));
    assert_eq!(&token[..], b"event: token\ndata: {\"delta\":\"a\\nb\"}\n\n");
    let failed = part(
        json!({"error": {"type": "upstream_error", "message": "m"}}),
        true,
        true,
    );
    let told = String::from_utf8(told(failed).to_vec()).unwrap();
    assert!(told.starts_with("event: error\n") && told.contains("upstream_error"));
}

#[test]
fn an_error_of_the_mesh_says_nothing_of_what_is_inside() {
    let error = Error::new(ErrorCode::Storage, "at /var/lib/x");
    let failure = failed_with(&error);
    assert_eq!(code(&failure), "internal_error");
    assert_eq!(failure["message"], "an internal error");
    let broken = failed_with(&Error::new(ErrorCode::Interrupted, "by a kill"));
    assert_eq!(code(&broken), "agent_unavailable");
    assert_eq!(code(&refused(&RequestError::AuthFailure)), "unauthorized");
    assert_eq!(
        told(&failure, None, ("request_id", "r")).status(),
        StatusCode::INTERNAL_SERVER_ERROR
    );
}

#[test]
fn an_event_of_a_kept_stream_has_its_place() {
    let place = Place {
        run: "r.g1",
        offset: 7,
    };
    let written = event("token", &Object::new(), Some(place));
    assert_eq!(&written[..], b"id: r.g1:7\nevent: token\ndata: {}\n\n");
}

#[test]
fn what_is_not_kept_of_a_stream_is_an_event_of_its_own() {
    let part = |body: Body, last| Part::Body {
        body: body.into(),
        last,
        failed: false,
    };
    let announced = part(gap(2, 5), false);
    assert!(!says_nothing(&announced));
    let (name, data) = named(announced);
    let expected = json!({"first": 2, "next": 5});
    assert_eq!((name.as_str(), Value::Object(data)), ("gap", expected));
    assert!(says_nothing(&part(Body::new(), true)));
}
