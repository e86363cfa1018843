//! `iam`: users, keys, workspaces. Who asks is never taken from the body.

use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{
    ApiKeyInput, ApiKeyRecord, GrantInput, GroupInput, IamRequest, IamResponse, UserInput,
    UserRecord, WorkspaceInput, WorkspaceRecord,
};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `iam` service.
pub struct Iam;

impl Translate for Iam {
    type Question = IamRequest;
    type Answer = IamResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<IamRequest, Error> {
        Ok(IamRequest {
            operation: about.operation.clone(),
            actor: about.actor.clone(),
            workspace: body.text("workspace")?,
            user_id: body.text("user_id")?,
            username: body.text("username")?,
            key_id: body.text("key_id")?,
            api_key: body.text("api_key")?,
            password: match about.operation.as_str() {
                // The one-time code of a fresh system travels where a secret of the caller's does.
                "bootstrap" => body.text("code")?,
                _ => body.text("password")?,
            },
            new_password: body.text("new_password")?,
            user: user(body)?,
            workspace_record: workspace(body)?,
            key: key(body)?,
            group_id: body.text("group_id")?,
            member_type: body.text("member_type")?,
            member_id: body.text("member_id")?,
            group: group(body)?,
            grant: grant(body)?,
            request_id: about.request_id.clone(),
            client_ip: about.client_ip.clone(),
            user_context_json: body.text("user_context_json")?,
            capability: body.text("capability")?,
            resource_json: body.text("resource_json")?,
            parameters_json: body.text("parameters_json")?,
            authorise_checks: body.text("authorise_checks")?,
            limit: body.integer_or("limit", 0)?,
            after: body.text("after")?,
            credential: about.credential.clone(),
            address: about.address.clone(),
        })
    }

    fn part(part: IamResponse, _about: &About) -> Body {
        let users: Vec<Value> = part.users.iter().map(user_value).collect();
        let workspaces: Vec<Value> = part.workspaces.iter().map(workspace_value).collect();
        let keys: Vec<Value> = part.api_keys.iter().map(key_value).collect();
        Reply::new()
            .put_some("user", part.user.as_ref().map(user_value))
            .put_truthy("users", users)
            .put_some("workspace", part.workspace.as_ref().map(workspace_value))
            .put_truthy("workspaces", workspaces)
            .put_truthy("api_key_plaintext", part.api_key_plaintext)
            .put_some("api_key", part.api_key.as_ref().map(key_value))
            .put_truthy("api_keys", keys)
            .put_truthy("jwt", part.jwt)
            .put_truthy("jwt_expires", part.jwt_expires)
            .put_truthy("signing_key_public", part.signing_key_public)
            .put_truthy("resolved_user_id", part.resolved_user_id)
            .put_truthy(
                "resolved_default_workspace",
                part.resolved_default_workspace,
            )
            .put_truthy("resolved_roles", part.resolved_roles)
            .put_truthy("resolved_scopes", part.resolved_scopes)
            .put_truthy("resolved_key_id", part.resolved_key_id)
            .put_truthy("temporary_password", part.temporary_password)
            .put_truthy("bootstrap_admin_user_id", part.bootstrap_admin_user_id)
            .put_truthy("bootstrap_admin_api_key", part.bootstrap_admin_api_key)
            .put("bootstrap_available", part.bootstrap_available)
            .put_truthy("decision_allow", part.decision_allow)
            .put_truthy("decision_ttl_seconds", part.decision_ttl_seconds)
            .put_truthy("decisions_json", part.decisions_json)
            .put_truthy("group_json", part.group_json)
            .put_truthy("groups_json", part.groups_json)
            .put_truthy("members_json", part.members_json)
            .put_truthy("grants_json", part.grants_json)
            .put_truthy(
                "effective_permissions_json",
                part.effective_permissions_json,
            )
            .put_truthy("next", part.next)
            .done()
    }
}

fn user(body: &Fields<'_>) -> Result<Option<UserInput>, Error> {
    let Some(user) = body.object("user")? else {
        return Ok(None);
    };
    Ok(Some(UserInput {
        username: user.text("username")?,
        name: user.text("name")?,
        email: user.text("email")?,
        password: user.text("password")?,
        roles: user.texts("roles")?,
        enabled: user.flag_or("enabled", true)?,
        must_change_password: user.flag("must_change_password")?,
        told: told(&user, &["enabled", "must_change_password"]),
    }))
}

fn workspace(body: &Fields<'_>) -> Result<Option<WorkspaceInput>, Error> {
    let Some(record) = body.object("workspace_record")? else {
        return Ok(None);
    };
    Ok(Some(WorkspaceInput {
        id: record.text("id")?,
        name: record.text("name")?,
        enabled: record.flag_or("enabled", true)?,
    }))
}

fn key(body: &Fields<'_>) -> Result<Option<ApiKeyInput>, Error> {
    let Some(key) = body.object("key")? else {
        return Ok(None);
    };
    Ok(Some(ApiKeyInput {
        user_id: key.text("user_id")?,
        name: key.text("name")?,
        expires: key.text("expires")?,
        scopes: key.texts("scopes")?,
    }))
}

fn group(body: &Fields<'_>) -> Result<Option<GroupInput>, Error> {
    let Some(group) = body.object("group")? else {
        return Ok(None);
    };
    Ok(Some(GroupInput {
        name: group.text("name")?,
        description: group.text("description")?,
        enabled: group.flag_or("enabled", true)?,
        told: told(&group, &["enabled"]),
    }))
}

fn grant(body: &Fields<'_>) -> Result<Option<GrantInput>, Error> {
    let Some(grant) = body.object("grant")? else {
        return Ok(None);
    };
    Ok(Some(GrantInput {
        capability: grant.text("capability")?,
        workspace: grant.text("workspace")?,
    }))
}

/// Which flags were said: an omitted one stays as it is.
fn told(fields: &Fields<'_>, names: &[&str]) -> Vec<String> {
    let told = names.iter().filter(|name| fields.value(name).is_some());
    told.map(|name| (*name).to_owned()).collect()
}

/// `workspace` repeats `default_workspace`: the official whoami command prints that key.
fn user_value(user: &UserRecord) -> Value {
    json!({
        "id": user.id,
        "default_workspace": user.default_workspace,
        "workspace": user.default_workspace,
        "username": user.username,
        "name": user.name,
        "email": user.email,
        "roles": user.roles,
        "enabled": user.enabled,
        "must_change_password": user.must_change_password,
        "created": user.created,
    })
}

fn workspace_value(record: &WorkspaceRecord) -> Value {
    json!({
        "id": record.id,
        "name": record.name,
        "enabled": record.enabled,
        "created": record.created,
    })
}

fn key_value(key: &ApiKeyRecord) -> Value {
    let mut value = json!({
        "id": key.id,
        "user_id": key.user_id,
        "name": key.name,
        "prefix": key.prefix,
        "expires": key.expires,
        "created": key.created,
        "last_used": key.last_used,
    });
    if !key.scopes.is_empty() {
        value["scopes"] = json!(key.scopes);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;

    #[test]
    fn the_actor_comes_from_the_caller_never_from_the_body() {
        let request = question::<Iam>(
            json!({"actor": "admin", "workspace_record": {"id": "acme"}, "user": null}),
            "create-workspace",
        )
        .unwrap();
        assert_eq!(request.actor, "caller");
        let record = request.workspace_record.unwrap();
        assert!(record.enabled && record.id == "acme");
    }

    #[test]
    fn nothing_but_the_bootstrap_flag_is_in_an_empty_reply() {
        assert_eq!(
            part::<Iam>(IamResponse::default(), "whoami"),
            json!({"bootstrap_available": false})
        );
        let reply = IamResponse {
            user: Some(UserRecord {
                default_workspace: "acme".into(),
                ..UserRecord::default()
            }),
            ..IamResponse::default()
        };
        assert_eq!(part::<Iam>(reply, "whoami")["user"]["workspace"], "acme");
    }

    #[test]
    fn pages_are_asked_for_and_told() {
        let page = json!({"limit": 7, "after": "x"});
        let page = question::<Iam>(page, "list-users").unwrap();
        assert_eq!((page.limit, page.after.as_str()), (7, "x"));
        let reply = IamResponse {
            next: "y".into(),
            ..IamResponse::default()
        };
        assert_eq!(part::<Iam>(reply, "list-users")["next"], "y");
    }

    #[test]
    fn wrong_types_are_named_with_their_path() {
        let error =
            question::<Iam>(json!({"user": {"roles": "admin"}}), "create-user").unwrap_err();
        assert_eq!(error.message, "user.roles: must be a list");
    }
}
