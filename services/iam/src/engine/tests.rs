//! Who may do what: keys, roles, users and workspaces in memory.

use chrono::{DateTime, Utc};
use tg_schemas::Error;
use tg_schemas::msg::{ApiKeyInput, IamRequest, IamResponse, UserInput, WorkspaceInput};

use super::*;
use crate::password::{PasswordHash, Proof, Temporary};
use crate::secret::ApiKey;

mod access;
mod external;
mod grants;
mod held;
mod pages;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

/// A directory with a counter instead of randomness.
struct World {
    directory: Directory,
    made: u8,
    now: DateTime<Utc>,
}

impl World {
    fn new() -> Self {
        let mut directory = Directory::default();
        directory.apply(&Change::PutWorkspace(Workspace {
            id: DEFAULT_WORKSPACE.into(),
            name: "default".into(),
            enabled: true,
            created: at("2026-01-01T00:00:00Z"),
            restoring: String::new(),
            generation: None,
        }));
        Self {
            directory,
            made: 0,
            now: at("2026-08-01T12:00:00Z"),
        }
    }

    fn call(&mut self, question: &str, ask: &IamRequest) -> Call {
        self.made += 1;
        Call {
            now: self.now,
            question: question.into(),
            named: None,
            vouched: true,
            workspace_users: 8,
            external: None,
            proof: self.proof(ask),
            fresh: Fresh {
                user_id: format!("user-{}", self.made),
                key_id: format!("key-{}", self.made),
                key: ApiKey::from_random([self.made; 24]),
                password: set(ask),
                temporary: Some(Temporary::random()),
                signing: tg_jwt::SigningKey::generate().ok(),
            },
        }
    }

    fn asked(&mut self, question: &str, ask: &IamRequest) -> Result<IamResponse, Error> {
        let call = self.call(question, ask);
        let effect = run(&self.directory, &call, ask)?;
        for change in &effect.changes {
            self.directory.apply(change);
        }
        Ok(effect.answer)
    }

    /// Who knows a password is shown to do so, without the work.
    fn proof(&self, ask: &IamRequest) -> Option<Proof> {
        let user = match ask.operation.as_str() {
            "login" => self.directory.named(&ask.username),
            _ => self.directory.user(&ask.actor),
        }?;
        let against = user.password.clone()?;
        (against.reveal() == ask.password).then(|| Proof {
            user_id: user.id.clone(),
            against,
        })
    }

    fn ask(&mut self, ask: &IamRequest) -> Result<IamResponse, Error> {
        let question = format!("q-{}", self.made);
        self.asked(&question, ask)
    }

    fn user(&mut self, workspace: &str, username: &str, roles: &[&str]) -> String {
        let ask = IamRequest {
            workspace: workspace.into(),
            user: Some(UserInput {
                username: username.into(),
                roles: roles.iter().map(|role| (*role).into()).collect(),
                ..UserInput::default()
            }),
            ..op("create-user")
        };
        self.ask(&ask).unwrap().user.unwrap().id
    }

    fn key(&mut self, user_id: &str, expires: &str) -> Result<IamResponse, Error> {
        self.ask(&IamRequest {
            key: Some(ApiKeyInput {
                user_id: user_id.into(),
                name: "laptop".into(),
                expires: expires.into(),
                ..ApiKeyInput::default()
            }),
            ..op("create-api-key")
        })
    }

    fn resolve(&mut self, api_key: &str) -> Result<IamResponse, Error> {
        self.ask(&IamRequest {
            api_key: api_key.into(),
            ..op("resolve-api-key")
        })
    }

    fn workspace(&mut self, operation: &str, id: &str) -> Result<IamResponse, Error> {
        self.ask(&IamRequest {
            workspace_record: Some(WorkspaceInput {
                id: id.into(),
                ..WorkspaceInput::default()
            }),
            ..op(operation)
        })
    }

    fn allows(&mut self, user_id: &str, capability: &str, workspace: &str) -> bool {
        let resource = serde_json::json!({"workspace": workspace}).to_string();
        self.ask(&IamRequest {
            user_id: user_id.into(),
            capability: capability.into(),
            resource_json: resource,
            ..op("authorise")
        })
        .unwrap()
        .decision_allow
    }
}

/// What is kept of the password that a request sets: here, the password.
fn set(ask: &IamRequest) -> Option<PasswordHash> {
    let made = (ask.operation == "reset-password").then_some("made");
    let given = to_hash(ask).ok().flatten();
    PasswordHash::stored(made.or(given)?.to_owned())
}

fn op(operation: &str) -> IamRequest {
    IamRequest {
        operation: operation.into(),
        ..IamRequest::default()
    }
}

fn about(operation: &str, user_id: &str) -> IamRequest {
    IamRequest {
        user_id: user_id.into(),
        ..op(operation)
    }
}

#[test]
fn bootstrap_works_once_and_its_key_opens_everything() {
    let mut world = World::new();
    assert!(
        world
            .ask(&op("bootstrap-status"))
            .unwrap()
            .bootstrap_available
    );
    let first = world.ask(&op("bootstrap")).unwrap();
    assert_eq!(world.ask(&op("bootstrap")).unwrap_err().kind, "auth-failed");
    assert!(
        !world
            .ask(&op("bootstrap-status"))
            .unwrap()
            .bootstrap_available
    );
    let who = world.resolve(&first.bootstrap_admin_api_key).unwrap();
    assert_eq!(who.resolved_user_id, first.bootstrap_admin_user_id);
    assert_eq!(who.resolved_default_workspace, "default");
    assert_eq!(who.resolved_roles, ["admin"]);
    assert!(world.allows(&who.resolved_user_id, "config:write", "elsewhere"));
    let me = IamRequest {
        actor: who.resolved_user_id,
        ..op("whoami")
    };
    assert_eq!(world.ask(&me).unwrap().user.unwrap().username, "admin");
}

#[test]
fn roles_hold_in_the_home_workspace_and_admin_everywhere() {
    let mut world = World::new();
    world.workspace("create-workspace", "acme").unwrap();
    let reader = world.user("acme", "rita", &["reader"]);
    let writer = world.user("acme", "walt", &["writer"]);
    let admin = world.user("acme", "ada", &["admin"]);
    let cases = [
        (&reader, "agent", "acme", true),
        (&reader, "agent", "default", false),
        (&reader, "agent", "", true),
        (&reader, "documents:write", "acme", false),
        (&writer, "documents:write", "acme", true),
        (&writer, "agent", "acme", true),
        (&writer, "flows:write", "acme", false),
        (&admin, "flows:write", "default", true),
        (&admin, "rows:write", "acme", true),
        (&admin, "no-such-capability", "acme", false),
        (&"nobody".to_owned(), "agent", "acme", false),
    ];
    for (user, capability, workspace, allowed) in cases {
        assert_eq!(
            world.allows(user, capability, workspace),
            allowed,
            "{user} {capability} {workspace}"
        );
    }
    let many = IamRequest {
        authorise_checks: serde_json::json!([
            {"capability": "agent", "resource": {"workspace": "acme", "flow": "f"}},
            {"capability": "agent", "resource": {}, "parameters": {"workspace": "default"}},
        ])
        .to_string(),
        ..about("authorise-many", &reader)
    };
    let decisions: serde_json::Value =
        serde_json::from_str(&world.ask(&many).unwrap().decisions_json).unwrap();
    assert_eq!(decisions[0]["allow"], true);
    assert_eq!(decisions[1]["allow"], false);
    world.ask(&about("disable-user", &reader)).unwrap();
    assert!(!world.allows(&reader, "agent", "acme"));
}

#[test]
fn a_key_is_good_until_it_ends_is_revoked_or_its_owner_is_closed() {
    let mut world = World::new();
    world.workspace("create-workspace", "acme").unwrap();
    let user = world.user("acme", "rita", &["reader"]);
    let short = world.key(&user, "2026-09-01T00:00:00Z").unwrap();
    assert_eq!(
        short.api_key.as_ref().unwrap().expires,
        "2026-09-01T00:00:00+00:00"
    );
    let long = world.key(&user, "").unwrap();
    assert!(world.resolve(&short.api_key_plaintext).is_ok());
    world.now = at("2026-09-01T00:00:00Z");
    assert_eq!(
        world.resolve(&short.api_key_plaintext).unwrap_err().message,
        "auth failure"
    );
    assert!(world.resolve(&long.api_key_plaintext).is_ok());

    world.workspace("disable-workspace", "acme").unwrap();
    assert!(world.resolve(&long.api_key_plaintext).is_err());
    world.workspace("enable-workspace", "acme").unwrap();
    assert!(world.resolve(&long.api_key_plaintext).is_ok());

    let revoke = IamRequest {
        key_id: long.api_key.unwrap().id,
        ..op("revoke-api-key")
    };
    world.ask(&revoke).unwrap();
    assert!(world.resolve(&long.api_key_plaintext).is_err());
    assert_eq!(world.ask(&revoke).unwrap_err().kind, "not-found");
    let left = world.ask(&about("list-api-keys", &user)).unwrap().api_keys;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].prefix, short.api_key_plaintext[..7]);
}

#[test]
fn a_bad_expiry_is_refused_not_read_as_never() {
    let mut world = World::new();
    let user = world.user("default", "rita", &[]);
    for bad in ["tomorrow", "2026-13-01", "1999-01-01T00:00:00Z"] {
        let error = world.key(&user, bad).unwrap_err();
        assert_eq!(error.kind, "invalid-argument");
        assert!(error.message.starts_with("key.expires: "), "{error:?}");
    }
    for good in [
        "2030-01-01",
        "2030-01-01T10:00:00",
        "2030-01-01T10:00:00+02:00",
    ] {
        assert!(world.key(&user, good).is_ok(), "{good}");
    }
}

#[test]
fn a_question_asked_twice_makes_one_thing() {
    let mut world = World::new();
    let ask = IamRequest {
        workspace: "default".into(),
        user: Some(UserInput {
            username: "rita".into(),
            ..UserInput::default()
        }),
        ..op("create-user")
    };
    let first = world.asked("q", &ask).unwrap().user.unwrap();
    assert_eq!(world.asked("q", &ask).unwrap().user.unwrap(), first);
    assert_eq!(world.asked("other", &ask).unwrap_err().kind, "duplicate");
    let key = IamRequest {
        key: Some(ApiKeyInput {
            user_id: first.id.clone(),
            name: "laptop".into(),
            ..ApiKeyInput::default()
        }),
        ..op("create-api-key")
    };
    let lost = world.asked("k", &key).unwrap().api_key_plaintext;
    let seen = world.asked("k", &key).unwrap().api_key_plaintext;
    assert!(world.resolve(&lost).is_err());
    assert!(world.resolve(&seen).is_ok());
    assert_eq!(
        world
            .ask(&about("list-api-keys", &first.id))
            .unwrap()
            .api_keys
            .len(),
        1
    );
}

#[test]
fn a_key_is_made_once_for_a_request_that_its_client_names() {
    let mut world = World::new();
    let user = world.user("default", "rita", &["reader"]);
    let admin = world.user("default", "ada", &["admin"]);
    let make = |world: &mut World, request: &str, name: &str, actor: &str| {
        let ask = IamRequest {
            actor: actor.into(),
            key: Some(ApiKeyInput {
                user_id: user.clone(),
                name: name.into(),
                ..ApiKeyInput::default()
            }),
            ..op("create-api-key")
        };
        // Each of them is a question of its own.
        let question = format!("q-{}", world.made);
        let call = Call {
            named: (!request.is_empty()).then(|| request.into()),
            ..world.call(&question, &ask)
        };
        let effect = run(&world.directory, &call, &ask).unwrap();
        for change in &effect.changes {
            world.directory.apply(change);
        }
        effect.answer.api_key_plaintext
    };
    let lost = make(&mut world, "r", "laptop", "");
    let seen = make(&mut world, "r", "laptop", "");
    assert!(world.resolve(&lost).is_err() && world.resolve(&seen).is_ok());
    // Another request, another key, another caller, and one that has no name.
    for (request, name, actor) in [
        ("s", "laptop", ""),
        ("r", "phone", ""),
        ("r", "laptop", admin.as_str()),
        ("", "laptop", ""),
        ("", "laptop", ""),
    ] {
        let other = make(&mut world, request, name, actor);
        assert!(world.resolve(&other).is_ok() && world.resolve(&seen).is_ok());
    }
    world.now += chrono::Duration::days(1);
    let later = make(&mut world, "r", "laptop", "");
    assert!(world.resolve(&later).is_ok() && world.resolve(&seen).is_ok());
}

#[test]
fn an_update_keeps_what_is_not_told() {
    let mut world = World::new();
    let id = world.user("default", "rita", &["reader"]);
    world.ask(&about("disable-user", &id)).unwrap();
    let update = IamRequest {
        user: Some(UserInput {
            email: "rita@example.org".into(),
            ..UserInput::default()
        }),
        ..about("update-user", &id)
    };
    let user = world.ask(&update).unwrap().user.unwrap();
    assert_eq!(user.email, "rita@example.org");
    assert_eq!((user.name.as_str(), user.roles.len()), ("rita", 1));
    assert!(!user.enabled, "only enable-user enables");
    assert!(
        world
            .ask(&about("enable-user", &id))
            .unwrap()
            .user
            .unwrap()
            .enabled
    );
}

#[test]
fn nobody_locks_everybody_out() {
    let mut world = World::new();
    let admin = world.ask(&op("bootstrap")).unwrap().bootstrap_admin_user_id;
    let demote = IamRequest {
        user: Some(UserInput {
            roles: vec!["reader".into()],
            ..UserInput::default()
        }),
        ..about("update-user", &admin)
    };
    for ask in [
        about("disable-user", &admin),
        about("delete-user", &admin),
        demote,
    ] {
        assert_eq!(world.ask(&ask).unwrap_err().kind, "operation-not-permitted");
    }
    let error = world.workspace("disable-workspace", "default").unwrap_err();
    assert_eq!(error.kind, "operation-not-permitted");
    world.workspace("create-workspace", "acme").unwrap();
    let ada = world.user("acme", "ada", &["admin"]);
    let error = world.workspace("disable-workspace", "default").unwrap_err();
    assert_eq!(error.kind, "operation-not-permitted", "nobody can be ada");
    world.key(&ada, "").unwrap();
    world.workspace("disable-workspace", "default").unwrap();
}

#[test]
fn a_workspace_takes_its_users_and_keys_along() {
    let mut world = World::new();
    world.workspace("create-workspace", "acme").unwrap();
    let gone = world.user("acme", "rita", &["reader"]);
    let stays = world.user("default", "walt", &["reader"]);
    let key = world.key(&gone, "").unwrap().api_key_plaintext;
    let ask = IamRequest {
        workspace_record: Some(WorkspaceInput {
            id: "acme".into(),
            ..WorkspaceInput::default()
        }),
        ..op("delete-workspace")
    };
    for change in remove(&world.directory, &ask).unwrap().changes {
        world.directory.apply(&change);
    }
    assert!(world.directory.workspace("acme").is_none());
    assert!(world.directory.user(&gone).is_none() && world.directory.named("rita").is_none());
    assert!(world.directory.user(&stays).is_some());
    assert!(world.resolve(&key).is_err());
}

#[test]
fn creating_a_workspace_is_idempotent_and_ids_are_checked() {
    let mut world = World::new();
    let first = world.workspace("create-workspace", "acme").unwrap();
    world.now = at("2027-01-01T00:00:00Z");
    assert_eq!(world.workspace("create-workspace", "acme").unwrap(), first);
    let long = "x".repeat(93);
    for bad in ["", "_sys", "a:b", "a--b", "a/b", "ü", &long] {
        let error = world.workspace("create-workspace", bad).unwrap_err();
        assert_eq!(error.kind, "invalid-argument");
        assert!(
            error.message.starts_with("workspace_record.id: "),
            "{error:?}"
        );
    }
    assert_eq!(
        world.workspace("get-workspace", "nope").unwrap_err().kind,
        "not-found"
    );
}

#[test]
fn users_of_other_workspaces_are_not_there() {
    let mut world = World::new();
    world.workspace("create-workspace", "acme").unwrap();
    let id = world.user("acme", "rita", &[]);
    let seen_from = |workspace: &str| IamRequest {
        workspace: workspace.into(),
        ..about("get-user", &id)
    };
    assert!(world.ask(&seen_from("acme")).is_ok());
    assert!(world.ask(&seen_from("")).is_ok());
    let hidden = world.ask(&seen_from("default")).unwrap_err();
    let absent = world.ask(&about("get-user", "nobody")).unwrap_err();
    assert_eq!(hidden, absent);
    let list = IamRequest {
        workspace: "default".into(),
        ..op("list-users")
    };
    assert!(world.ask(&list).unwrap().users.is_empty());
}

#[test]
fn without_users_everybody_is_one_administrator() {
    let mut world = World::new();
    let mut ask = |request: &IamRequest| {
        let call = Call {
            now: at("2026-08-01T12:00:00Z"),
            question: "q".into(),
            named: None,
            vouched: true,
            workspace_users: 8,
            proof: None,
            external: None,
            fresh: Fresh {
                user_id: "u".into(),
                key_id: "k".into(),
                key: ApiKey::from_random([7; 24]),
                password: None,
                temporary: None,
                signing: None,
            },
        };
        let effect = crate::engine::anonymous::run(&world.directory, &call, request)?;
        for change in &effect.changes {
            world.directory.apply(change);
        }
        Ok::<_, Error>(effect.answer)
    };
    let who = ask(&op("whoami")).unwrap().user.unwrap();
    assert_eq!(
        (who.id.as_str(), who.default_workspace.as_str()),
        ("anonymous", "default")
    );
    assert_eq!(who.roles, ["admin"]);
    let identity = ask(&op("authenticate-anonymous")).unwrap();
    assert_eq!(identity.resolved_user_id, "anonymous");
    assert!(
        ask(&about("authorise", "anonymous"))
            .unwrap()
            .decision_allow
    );
    for operation in [
        "create-user",
        "create-api-key",
        "bootstrap",
        "login",
        "mint-token",
        "rotate-signing-key",
        "revoke-signing-key",
        "create-group",
        "add-user-grant",
        "resolve-effective-permissions",
    ] {
        assert_eq!(
            ask(&op(operation)).unwrap_err().kind,
            "operation-not-permitted"
        );
    }
    let on = |operation: &str, id: &str| IamRequest {
        workspace_record: Some(WorkspaceInput {
            id: id.into(),
            ..WorkspaceInput::default()
        }),
        ..op(operation)
    };
    ask(&on("create-workspace", "acme")).unwrap();
    assert_eq!(ask(&op("list-my-workspaces")).unwrap().workspaces.len(), 2);
    assert!(
        !ask(&on("disable-workspace", "acme"))
            .unwrap()
            .workspace
            .unwrap()
            .enabled
    );
    let error = ask(&on("disable-workspace", "default")).unwrap_err();
    assert_eq!(error.kind, "operation-not-permitted");
}
