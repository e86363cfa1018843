//! Workspaces as clients of `/api/v1/workspaces` write and read them: fields in camel case, and pages from the oldest to the newest. The
//! iam service has the workspaces.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tg_schemas::operations::{Failure, FailureCode};
use tg_schemas::paging::{Asked, Page};
use tg_schemas::{Error, ErrorCode};

use super::translate::Body;

/// Entries of a page where nobody says how many.
const USUAL: i64 = 50;
/// The most that a page may have.
const MOST: i64 = 200;
/// What its cursors belong to.
const LISTING: &str = "workspaces";
/// The only kind of workspaces.
const KIND: &str = "mesh";
/// Longest id, in bytes.
const LONGEST: usize = 63;
/// Length of a UUID in its usual form.
const UUID: usize = 36;

/// A text of a body. A field that is left out or `null` has none.
fn text<'a>(body: &'a Body, field: &str) -> Result<Option<&'a str>, Failure> {
    match body.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Failure::invalid(field, "must be a text")),
    }
}

/// An id that a new workspace may have. A UUID may be in capitals, too.
fn id(text: &str) -> Result<String, Failure> {
    let id = match uuid::Uuid::parse_str(text) {
        Ok(id) if text.len() == UUID => id.hyphenated().to_string(),
        _ => text.to_owned(),
    };
    let is_first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let begins = id.bytes().next().is_some_and(is_first);
    let rest = |byte: u8| is_first(byte) || matches!(byte, b'_' | b'-');
    match begins && id.len() <= LONGEST && id.bytes().all(rest) {
        true => Ok(id),
        false => Err(Failure::invalid(
            "workspaceId",
            "must have 1 to 63 small letters, digits, '_' and '-', and begin with a letter or a digit",
        )),
    }
}

/// A name for people.
fn name(body: &Body) -> Result<&str, Failure> {
    match text(body, "name")? {
        Some(name) if !name.trim().is_empty() => Ok(name),
        _ => Err(Failure::invalid("name", "is required")),
    }
}

/// The record of a workspace that somebody wants. Without an id of its own it has the other one.
///
/// # Errors
/// The first field that does not fit.
pub(crate) fn wanted(body: &Body, other: &str) -> Result<Value, Failure> {
    let name = name(body)?;
    if text(body, "kind")?.is_some_and(|kind| kind != KIND) {
        return Err(Failure::invalid("kind", "must be mesh"));
    }
    let id = id(text(body, "workspaceId")?.unwrap_or(other))?;
    Ok(json!({"id": id, "name": name}))
}

/// The record that changes a workspace: its name, where the body has one. Any other field is refused.
///
/// # Errors
/// The first field that does not fit.
pub(crate) fn changed(body: &Body, id: &str) -> Result<Value, Failure> {
    if let Some(other) = body.keys().find(|key| *key != "name") {
        return Err(Failure::invalid(other, "is not what can be changed"));
    }
    match body.is_empty() {
        true => Ok(json!({"id": id})),
        false => Ok(json!({"id": id, "name": name(body)?})),
    }
}

/// Which page is asked for.
#[derive(Debug)]
pub(crate) struct Which {
    limit: i64,
    cursor: String,
}

/// Reads which page the parameters of a query ask for.
///
/// # Errors
/// The limit is not one.
pub(crate) fn which(query: impl Iterator<Item = (String, String)>) -> Result<Which, Failure> {
    let mut which = Which {
        limit: USUAL,
        cursor: String::new(),
    };
    for (name, text) in query {
        match name.as_str() {
            "limit" => which.limit = text.trim().parse().unwrap_or_default(),
            "cursor" => which.cursor = text,
            _ => {}
        }
    }
    match (1..=MOST).contains(&which.limit) {
        true => Ok(which),
        false => Err(Failure::invalid(
            "limit",
            "must be a whole number from 1 to 200",
        )),
    }
}

/// A page of all workspaces, the oldest first.
///
/// # Errors
/// The cursor belongs to no page.
pub(crate) fn page(all: &[Value], which: &Which) -> Result<Value, Failure> {
    let asked = Asked::read(LISTING, which.limit, &which.cursor);
    let asked = asked.map_err(|_| {
        let text = "cursor: is not the nextCursor of an earlier page";
        Failure::new(FailureCode::InvalidCursor, text)
    })?;
    let key = |one: &Value| {
        let part = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
        format!("{} {}", part("created"), part("id"))
    };
    let sorted: BTreeMap<String, &Value> = all.iter().map(|one| (key(one), one)).collect();
    let page = Page::of(asked, sorted, |one| one.0.clone(), |one| shown(one.1));
    let page = page.map_err(|error| Failure::new(FailureCode::InternalError, error.message))?;
    let next = Some(page.next).filter(|next| !next.is_empty());
    Ok(json!({"items": page.entries, "nextCursor": next}))
}

/// A workspace as clients read it. The iam service keeps when it was made, and not when it changed.
pub(crate) fn shown(record: &Value) -> Value {
    let made = record["created"].as_str().unwrap_or_default();
    let made = match made.strip_suffix("+00:00") {
        Some(seconds) => format!("{seconds}.000Z"),
        None => made.to_owned(),
    };
    json!({
        "workspaceId": record["id"],
        "name": record["name"],
        "kind": KIND,
        "createdAt": made,
        "updatedAt": null,
    })
}

/// There is a workspace of this id.
pub(crate) fn taken() -> Failure {
    let text = "workspaceId: there is a workspace of this id";
    Failure::new(FailureCode::Conflict, text)
}

/// An error of the iam service in the words of this surface. `None`: it is as everywhere.
pub(crate) fn failure(error: &Error) -> Option<Failure> {
    let code = match error.code() {
        ErrorCode::NotFound => FailureCode::WorkspaceNotFound,
        ErrorCode::Conflict => FailureCode::Conflict,
        ErrorCode::BadRequest => FailureCode::ValidationError,
        _ => return None,
    };
    let text = error.message.replace("workspace_record.id", "workspaceId");
    Some(Failure::new(
        code,
        text.replace("workspace_record.name", "name"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(value: Value) -> Body {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_workspace_is_wanted_by_an_id_a_name_and_the_one_kind() {
        let wanted = |value| wanted(&body(value), "other");
        assert_eq!(
            wanted(json!({"name": "A", "kind": "mesh", "odd": 1})),
            Ok(json!({"id": "other", "name": "A"}))
        );
        let capitals = "0A1B2C3D-0000-4000-8000-00000000000F";
        assert_eq!(
            wanted(json!({"workspaceId": capitals, "name": "A"})).unwrap()["id"],
            capitals.to_lowercase()
        );
        for (value, field) in [
            (json!({}), "name: "),
            (json!({"name": " "}), "name: "),
            (json!({"name": 5}), "name: "),
            (json!({"name": "A", "kind": "mock"}), "kind: "),
            (json!({"name": "A", "workspaceId": "_a"}), "workspaceId: "),
            (json!({"name": "A", "workspaceId": "Acme"}), "workspaceId: "),
            (json!({"name": "A", "workspaceId": ""}), "workspaceId: "),
            (
                json!({"name": "A", "workspaceId": "a".repeat(64)}),
                "workspaceId: ",
            ),
        ] {
            let refused = wanted(value).unwrap_err();
            assert_eq!(refused.code, FailureCode::ValidationError);
            assert!(refused.message.starts_with(field), "{}", refused.message);
        }
    }

    #[test]
    fn a_name_changes_and_nothing_else() {
        let changed = |value| changed(&body(value), "a");
        assert_eq!(changed(json!({})), Ok(json!({"id": "a"})));
        let named = json!({"name": "B"});
        assert_eq!(changed(named), Ok(json!({"id": "a", "name": "B"})));
        for refused in [
            json!({"kind": "mesh"}),
            json!({"name": null}),
            json!({"workspaceId": "b", "name": "B"}),
        ] {
            assert!(changed(refused).is_err());
        }
    }

    #[test]
    fn pages_go_from_the_oldest_to_the_newest() {
        let one = |id: &str, second: u8| {
            let created = format!("2026-01-01T00:00:0{second}+00:00");
            json!({"id": id, "name": id, "enabled": true, "created": created})
        };
        let all = [one("a", 3), one("b", 1), one("c", 1)];
        let asked = |limit: &str, cursor: &str| {
            let query = [("limit", limit), ("cursor", cursor)];
            which(
                query
                    .into_iter()
                    .map(|(name, text)| (name.to_owned(), text.to_owned())),
            )
        };
        let first = page(&all, &asked("2", "").unwrap()).unwrap();
        let ids = |page: &Value| {
            let items = page["items"].as_array().unwrap().iter();
            let ids = items.map(|one| one["workspaceId"].as_str().unwrap().to_owned());
            ids.collect::<Vec<_>>()
        };
        assert_eq!(ids(&first), ["b", "c"]);
        assert_eq!(first["items"][0]["createdAt"], "2026-01-01T00:00:01.000Z");
        let next = first["nextCursor"].as_str().unwrap();
        let last = page(&all, &asked("2", next).unwrap()).unwrap();
        assert_eq!(
            (ids(&last), &last["nextCursor"]),
            (vec!["a".to_owned()], &Value::Null)
        );
        let wrong = page(&all, &asked("2", "zzz").unwrap()).unwrap_err();
        assert_eq!(wrong.code, FailureCode::InvalidCursor);
        for limit in ["0", "201", "x", "-1"] {
            let refused = asked(limit, "").unwrap_err();
            assert_eq!(refused.code, FailureCode::ValidationError, "{limit}");
        }
    }

    #[test]
    fn an_error_names_the_fields_of_the_surface() {
        let error = Error::new(ErrorCode::BadRequest, "workspace_record.id: is too long");
        let failure = failure(&error).unwrap();
        assert_eq!(failure.message, "workspaceId: is too long");
        assert_eq!(super::failure(&Error::new(ErrorCode::Storage, "m")), None);
    }
}
