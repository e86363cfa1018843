//! What is special about operations of the iam service: what they are about, and what it is told of who asks.

use std::net::IpAddr;

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
const POLICED: [&str; 4] = ["graph-rag", "triples", "sparql", "thru"];
/// Where that is in a request.
const CONTEXT: &str = "user-context";

/// What a token says of its user for policies takes the place of what the request says: it was minted by somebody who
/// may, and cannot be put off.
pub(crate) fn impose_context(identity: &Identity, service: &str, body: &mut Body) {
    if let Some(context) = &identity.context
        && POLICED.contains(&service)
    {
        body.insert(CONTEXT.to_owned(), (**context).clone());
    }
}

/// Operations on users and keys are about a workspace; those on workspaces and signing keys about none.
pub(crate) fn resource(
    operation: &str,
    body: &Body,
    identity: &Identity,
) -> Result<Resource, RequestError> {
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
        .filter_map(|(field, text)| Some((field, text.filter(|text| !text.is_empty())?)))
        .next();
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::sync::Arc;

    #[test]
    fn what_a_token_says_for_policies_is_not_replaced_by_a_request() {
        let mut identity = Identity::plain("u", "home");
        let asked = |identity: &Identity, service: &str| {
            let mut body = Body::from_iter([(CONTEXT.to_owned(), json!({"roles": ["boss"]}))]);
            impose_context(identity, service, &mut body);
            body[CONTEXT]["roles"][0].clone()
        };
        assert_eq!(asked(&identity, "triples"), "boss");
        identity.context = Some(Arc::new(json!({"roles": ["clerk"]})));
        for service in POLICED {
            assert_eq!(asked(&identity, service), "clerk");
        }
        assert_eq!(asked(&identity, "embeddings"), "boss");
    }

    #[test]
    fn iam_operations_are_about_the_first_workspace_named() {
        let about = |operation, value: Value| {
            resource(
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
            let refused = resource("list-users", body, &Identity::plain("u", "home"));
            let error = refused.unwrap_err().error();
            assert!(error.message.starts_with(&format!("{field}: ")), "{error}");
            assert!(error.message.len() < 200, "{}", error.message.len());
            assert_eq!(error.code().status(), 400);
        }
    }
}
