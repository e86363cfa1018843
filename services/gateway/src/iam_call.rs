//! What is special about operations of the iam service: what they are about, and what it is sent about the caller.

use std::net::IpAddr;

use serde_json::Value;
use tg_schemas::{Error, WorkspaceId};

use crate::auth::{Identity, Resource};
use crate::engine::translate::{Body, Fields};
use crate::error::RequestError;

/// The address that the iam service is told: who guesses at passwords is known by any, who may have the first key by that
/// of a program on this machine only.
pub(crate) fn address(operation: &str, any: Option<IpAddr>, local: Option<IpAddr>) -> String {
    let address = match operation {
        "login" | "change-password" => any,
        _ => local,
    };
    address.map_or_else(String::new, |ip| ip.to_string())
}

/// Flow services that pass on what policies are to know of the user.
const POLICED: [&str; 3] = ["graph-rag", "triples", "sparql"];
/// Where that is in a request, and where in the form of the bus.
const CONTEXT: [&str; 2] = ["user-context", "user_context"];

/// What policies are to know of the user is what their token says, which was minted by somebody who may: what a request
/// says of it itself goes, whoever asks. Where nobody needs a key, everybody may say it. `thru` takes the form of the bus, too.
///
/// Returns what goes with the question and all that it leads to.
pub(crate) fn impose_context(
    identity: &Identity,
    open: bool,
    kind: &str,
    body: &mut Body,
) -> Option<String> {
    let names = match kind {
        "thru" => &CONTEXT[..],
        _ if POLICED.contains(&kind) => &CONTEXT[..1],
        _ => &[],
    };
    let said: Vec<Value> = CONTEXT
        .iter()
        .filter_map(|name| body.remove(*name))
        .collect();
    let context = match &identity.context {
        Some(context) => (**context).clone(),
        None => said.into_iter().find(|said| open && said.is_object())?,
    };
    for name in names {
        body.insert((*name).to_owned(), context.clone());
    }
    carried(identity, context)
}

/// As [`impose_context`] returns it, where there is no body.
pub(crate) fn context(identity: &Identity) -> Option<String> {
    carried(identity, (**identity.context.as_ref()?).clone())
}

/// Who it is that is spoken of is known, unless it is somebody else.
fn carried(identity: &Identity, mut context: Value) -> Option<String> {
    let fields = context.as_object_mut()?;
    let user = fields.entry("user_id").or_insert(Value::Null);
    if user.as_str().is_none_or(str::is_empty) {
        *user = Value::from(identity.id.as_ref());
    }
    Some(context.to_string())
}

/// Operations on users and keys are about a workspace; those on workspaces and signing keys about none.
pub(crate) fn resource(
    service: &str,
    operation: &str,
    body: &Body,
    identity: &Identity,
) -> Result<Resource, RequestError> {
    if service == "audit" {
        return of_audit(body);
    }
    let of_users = ["user", "key", "password", "mint"]
        .iter()
        .any(|word| operation.contains(word));
    if !of_users || operation.contains("signing") {
        return Ok(Resource::default());
    }
    let fields = Fields::new(body);
    let inner = |object: &str, key: &str| match fields.object(object)? {
        Some(fields) => fields.opt_text(key),
        None => Ok(None),
    };
    let named = [
        ("user.workspace", inner("user", "workspace")?),
        ("workspace_record.id", inner("workspace_record", "id")?),
        ("workspace", fields.opt_text("workspace")?),
    ];
    let named = named
        .into_iter()
        .find_map(|(field, text)| Some((field, text.filter(|text| !text.is_empty())?)));
    let about = match named {
        Some((field, text)) => workspace(field, &text)?,
        None => identity.workspace.to_string(),
    };
    Ok(Resource {
        about: Some(about),
        ..Resource::default()
    })
}

/// A name of a workspace. Decisions are remembered by it, so that no other text may be one.
fn workspace(field: &str, text: &str) -> Result<String, RequestError> {
    let id = WorkspaceId::new(text).map_err(|fault| {
        let why = fault.message.trim_start_matches("workspace: ");
        Error::new(fault.code(), format!("{field}: {why}"))
    })?;
    Ok(id.to_string())
}

/// What happened in a workspace; without one in all of them and the system, which takes a grant everywhere.
fn of_audit(body: &Body) -> Result<Resource, RequestError> {
    let named = Fields::new(body).opt_text("workspace")?;
    let named = named.filter(|text| !text.is_empty());
    let about = named.map(|text| workspace("workspace", &text));
    Ok(Resource {
        about: about.transpose()?,
        ..Resource::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn policies_know_what_a_token_says_and_nothing_that_a_request_does() {
        let mut identity = Identity::plain("u", "home");
        let left = |identity: &Identity, open: bool, kind: &str| {
            let said =
                json!({"user-context": {"x": "boss"}, "user_context": {"x": "boss"}, "q": 1});
            let mut body = said.as_object().unwrap().clone();
            let carried = impose_context(identity, open, kind, &mut body);
            (Value::Object(body), carried)
        };
        for kind in ["triples", "sparql", "graph-rag", "thru", "agent", "cloze"] {
            let (body, carried) = left(&identity, false, kind);
            assert_eq!((body, carried), (json!({"q": 1}), None), "{kind}");
        }
        // Where everybody is an administrator, everybody may say it.
        let (body, carried) = left(&identity, true, "triples");
        assert_eq!(body, json!({"q": 1, "user-context": {"x": "boss"}}));
        let carried: Value = serde_json::from_str(&carried.unwrap()).unwrap();
        assert_eq!(carried, json!({"x": "boss", "user_id": "u"}));

        let clerk = json!({"x": "clerk"});
        identity.context = Some(Arc::new(clerk.clone()));
        for open in [false, true] {
            for kind in POLICED {
                let (body, carried) = left(&identity, open, kind);
                assert_eq!(body, json!({"q": 1, "user-context": clerk}));
                assert!(carried.unwrap().contains("clerk"));
            }
            let thru = json!({"q": 1, "user-context": clerk, "user_context": clerk});
            assert_eq!(left(&identity, open, "thru").0, thru);
            // What asks on does not say it, and it goes with the question.
            let (body, carried) = left(&identity, open, "agent");
            assert_eq!(body, json!({"q": 1}));
            assert!(carried.unwrap().contains("clerk"));
        }
    }

    #[test]
    fn iam_operations_are_about_the_first_workspace_named() {
        let about = |operation, value: Value| {
            resource(
                "iam",
                operation,
                value.as_object().unwrap(),
                &Identity::plain("u", "home"),
            )
            .unwrap()
            .about
        };
        assert_eq!(
            about(
                "create-user",
                json!({"user": {"workspace": "a"}, "workspace": "b"})
            ),
            Some("a".into())
        );
        assert_eq!(
            about("list-api-keys", json!({"workspace": "b"})),
            Some("b".into())
        );
        assert_eq!(about("list-users", json!({})), Some("home".into()));
        assert_eq!(about("create-workspace", json!({"workspace": "b"})), None);
        assert_eq!(about("rotate-signing-key", json!({})), None);
    }

    #[test]
    fn no_decision_is_remembered_by_what_is_no_workspace() {
        let long = "x".repeat(1 << 20);
        for (field, value) in [
            ("workspace", json!({"workspace": long})),
            ("user.workspace", json!({"user": {"workspace": "a b\u{0}"}})),
            (
                "workspace_record.id",
                json!({"workspace_record": {"id": long}}),
            ),
        ] {
            let body = value.as_object().unwrap();
            let refused = resource("iam", "list-users", body, &Identity::plain("u", "home"));
            let error = refused.unwrap_err().error();
            assert!(error.message.starts_with(&format!("{field}: ")), "{error}");
            assert!(error.message.len() < 200, "{}", error.message.len());
            assert_eq!(error.code().status(), 400);
        }
    }
}
