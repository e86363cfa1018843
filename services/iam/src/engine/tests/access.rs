//! Passwords, tokens and what is said of users.

use serde_json::Value;
use tg_schemas::msg::{GrantInput, GroupInput};

use super::*;

/// A world with a signing key and an administrator.
pub(super) fn world() -> (World, String) {
    let mut world = World::new();
    world.ask(&op("rotate-signing-key")).unwrap();
    let admin = world.ask(&op("bootstrap")).unwrap();
    world.workspace("create-workspace", "acme").unwrap();
    (world, admin.bootstrap_admin_user_id)
}

pub(super) fn by(actor: &str, ask: IamRequest) -> IamRequest {
    IamRequest {
        actor: actor.into(),
        ..ask
    }
}

pub(super) fn named(username: &str, password: &str, roles: &[&str]) -> IamRequest {
    IamRequest {
        workspace: "acme".into(),
        user: Some(UserInput {
            username: username.into(),
            password: password.into(),
            roles: roles.iter().map(|role| (*role).into()).collect(),
            ..UserInput::default()
        }),
        ..op("create-user")
    }
}

fn login(username: &str, password: &str) -> IamRequest {
    IamRequest {
        username: username.into(),
        password: password.into(),
        ..op("login")
    }
}

pub(super) fn token(jwt: &str) -> IamRequest {
    IamRequest {
        api_key: jwt.into(),
        ..op("resolve-token")
    }
}

pub(super) fn grant(
    operation: &str,
    holder: &str,
    capability: &str,
    workspace: &str,
) -> IamRequest {
    IamRequest {
        user_id: holder.into(),
        group_id: holder.into(),
        grant: Some(GrantInput {
            capability: capability.into(),
            workspace: workspace.into(),
        }),
        ..op(operation)
    }
}

pub(super) fn kind(outcome: Result<IamResponse, Error>) -> String {
    outcome.map_or_else(|error| error.kind, |_| "done".into())
}

impl World {
    pub(super) fn made(&mut self, ask: &IamRequest) -> String {
        self.ask(ask).unwrap().user.unwrap().id
    }

    pub(super) fn group(&mut self, name: &str) -> String {
        let ask = IamRequest {
            group: Some(GroupInput {
                name: name.into(),
                ..GroupInput::default()
            }),
            ..op("create-group")
        };
        let group: Value = serde_json::from_str(&self.ask(&ask).unwrap().group_json).unwrap();
        group["id"].as_str().unwrap().to_owned()
    }
}

#[test]
fn a_password_gives_a_token_and_every_refusal_reads_the_same() {
    let (mut world, _) = world();
    let rita = world.made(&named("rita", "horse", &["reader"]));
    let given = world.ask(&login("rita", "horse")).unwrap();
    assert_eq!(given.jwt_expires, "2026-08-01T13:00:00+00:00");
    let who = world.ask(&token(&given.jwt)).unwrap();
    assert_eq!(
        (who.resolved_user_id, who.decision_ttl_seconds),
        (rita.clone(), 60)
    );
    assert_eq!(who.resolved_default_workspace, "acme");
    world.user("acme", "without", &[]);
    // A workspace in which she may do nothing reads as one that is not there.
    assert!(!world.allows(&rita, "triples:read", "default"));
    let of = |workspace: &str| IamRequest {
        workspace: workspace.into(),
        ..login("rita", "horse")
    };
    let refused = world.ask(&of("nowhere")).unwrap_err();
    assert_eq!(
        (refused.kind.as_str(), refused.message.as_str()),
        ("auth-failed", "auth failure")
    );
    assert_eq!(world.ask(&of("default")), Err(refused.clone()));
    for (name, password) in [
        ("rita", "hors"),
        ("rita", ""),
        ("nobody", "horse"),
        ("without", ""),
    ] {
        assert_eq!(
            world.ask(&login(name, password)),
            Err(refused.clone()),
            "{name}"
        );
    }
    world.now += chrono::Duration::seconds(3599);
    assert_eq!(
        world.ask(&token(&given.jwt)).unwrap().decision_ttl_seconds,
        1
    );
    world.now += chrono::Duration::seconds(1);
    assert_eq!(world.ask(&token(&given.jwt)), Err(refused));
}

#[test]
fn sessions_end_with_the_password_and_the_user() {
    let (mut world, _) = world();
    let rita = world.made(&named("rita", "one", &["reader"]));
    let enter =
        |world: &mut World, password: &str| world.ask(&login("rita", password)).unwrap().jwt;
    let first = enter(&mut world, "one");
    let change = |old: &str, new: &str| IamRequest {
        password: old.into(),
        new_password: new.into(),
        ..by(&rita, op("change-password"))
    };
    assert_eq!(kind(world.ask(&change("wrong", "two"))), "auth-failed");
    assert_eq!(kind(world.ask(&change("one", ""))), "invalid-argument");
    assert_eq!(
        kind(world.ask(&change("one", &"x".repeat(1025)))),
        "invalid-argument"
    );
    assert!(world.ask(&token(&first)).is_ok());
    assert_eq!(
        world.ask(&change("one", "two")).unwrap(),
        IamResponse::default()
    );
    assert_eq!(kind(world.ask(&token(&first))), "auth-failed");
    let second = enter(&mut world, "two");
    let reset = world.ask(&about("reset-password", &rita)).unwrap();
    assert_eq!(reset.temporary_password.len(), 16);
    assert_eq!(kind(world.ask(&token(&second))), "auth-failed");
    let user = world.ask(&about("get-user", &rita)).unwrap().user.unwrap();
    assert!(user.must_change_password);
    let third = enter(&mut world, "made");
    world.ask(&change("made", "three")).unwrap();
    let user = world.ask(&about("get-user", &rita)).unwrap().user.unwrap();
    assert!(!user.must_change_password);
    assert_eq!(kind(world.ask(&token(&third))), "auth-failed");
    let fourth = enter(&mut world, "three");
    world.ask(&about("disable-user", &rita)).unwrap();
    assert_eq!(kind(world.ask(&token(&fourth))), "auth-failed");
    assert_eq!(kind(world.ask(&login("rita", "three"))), "auth-failed");
    world.ask(&about("enable-user", &rita)).unwrap();
    assert_eq!(
        kind(world.ask(&token(&fourth))),
        "auth-failed",
        "old ones stay ended"
    );
    let fifth = enter(&mut world, "three");
    world.workspace("disable-workspace", "acme").unwrap();
    assert_eq!(kind(world.ask(&token(&fifth))), "auth-failed");
    world.workspace("enable-workspace", "acme").unwrap();
    world.ask(&about("delete-user", &rita)).unwrap();
    assert_eq!(kind(world.ask(&token(&fifth))), "auth-failed");
    let (other, other_id) = (world.user("acme", "other", &[]), rita);
    let foreign = IamRequest {
        user_id: other,
        password: "x".into(),
        new_password: "y".into(),
        ..by(&other_id, op("change-password"))
    };
    assert_eq!(kind(world.ask(&foreign)), "operation-not-permitted");
}

#[test]
fn a_new_key_signs_and_the_one_before_verifies_for_an_hour() {
    let (mut world, _) = world();
    world.made(&named("rita", "one", &[]));
    let old = world.ask(&login("rita", "one")).unwrap().jwt;
    let told = world
        .ask(&op("rotate-signing-key"))
        .unwrap()
        .signing_key_public;
    let all = world
        .ask(&op("get-signing-key-public"))
        .unwrap()
        .signing_key_public;
    assert!(all.starts_with(&told) && all.matches("BEGIN").count() == 2);
    let new = world.ask(&login("rita", "one")).unwrap().jwt;
    assert_ne!(old.split('.').next(), new.split('.').next());
    for jwt in [&old, &new] {
        world.ask(&token(jwt)).unwrap();
    }
    world.now += chrono::Duration::seconds(3600);
    let all = world
        .ask(&op("get-signing-key-public"))
        .unwrap()
        .signing_key_public;
    assert_eq!(all, told);
    for _ in 0..15 {
        world.ask(&op("rotate-signing-key")).unwrap();
    }
    assert_eq!(
        world.directory.signing().count(),
        16,
        "what ended is removed"
    );
    assert_eq!(
        kind(world.ask(&op("rotate-signing-key"))),
        "too-many-requests"
    );
}

#[test]
fn tokens_of_a_revoked_key_are_refused_and_others_are_not() {
    let (mut world, _) = world();
    world.made(&named("rita", "one", &[]));
    let revoke = |kid: &str| IamRequest {
        key_id: kid.into(),
        ..op("revoke-signing-key")
    };
    let kids = |world: &World| -> Vec<String> {
        let all = world.directory.signing();
        all.map(|one| one.key.public().kid()).collect()
    };
    let first = world.ask(&login("rita", "one")).unwrap().jwt;
    let leaked = kids(&world).remove(0);
    world.ask(&op("rotate-signing-key")).unwrap();
    let second = world.ask(&login("rita", "one")).unwrap().jwt;
    // The one before is revoked: the one that signs stays.
    let told = world.ask(&revoke(&leaked)).unwrap().signing_key_public;
    assert!(world.ask(&token(&first)).is_err() && world.ask(&token(&second)).is_ok());
    assert_eq!(kind(world.ask(&revoke(&leaked))), "not-found");
    let public = op("get-signing-key-public");
    assert_eq!(world.ask(&public).unwrap().signing_key_public, told);
    // All of them: another signs.
    assert_eq!(kind(world.ask(&revoke(""))), "invalid-argument");
    let new = world.ask(&revoke("*")).unwrap().signing_key_public;
    assert_ne!(new, told);
    assert_eq!(world.ask(&public).unwrap().signing_key_public, new);
    assert!(world.ask(&token(&second)).is_err());
    let third = world.ask(&login("rita", "one")).unwrap().jwt;
    world.ask(&token(&third)).unwrap();
    assert_eq!(kids(&world).len(), 1);
}

#[test]
fn a_login_is_for_a_workspace_in_which_its_user_may_do_something() {
    let (mut world, admin) = world();
    let rita = world.made(&named("rita", "horse", &["reader"]));
    let elsewhere = || IamRequest {
        workspace: "default".into(),
        ..login("rita", "horse")
    };
    assert_eq!(kind(world.ask(&elsewhere())), "auth-failed");
    let mint = |actor: &str, workspace: &str| IamRequest {
        user_id: rita.clone(),
        workspace: workspace.into(),
        ..by(actor, op("mint-token"))
    };
    let gives = grant("add-user-grant", &rita, "mint-token", "acme");
    world.ask(&gives).unwrap();
    assert_eq!(kind(world.ask(&mint(&rita, "acme"))), "done");
    for workspace in ["default", "nowhere"] {
        assert_eq!(kind(world.ask(&mint(&rita, workspace))), "not-found");
    }
    assert_eq!(kind(world.ask(&mint(&admin, "default"))), "done");
    let reads = grant("add-user-grant", &rita, "triples:read", "default");
    world.ask(&reads).unwrap();
    let jwt = world.ask(&elsewhere()).unwrap().jwt;
    let told = world.ask(&token(&jwt)).unwrap();
    assert_eq!(told.resolved_default_workspace, "default");
}

#[test]
fn a_minted_token_says_what_policies_are_to_know() {
    let (mut world, admin) = world();
    let rita = world.made(&named("rita", "", &["reader"]));
    let mint = |user_id: &str, username: &str, context: &str| IamRequest {
        user_id: user_id.into(),
        username: username.into(),
        user_context_json: context.into(),
        workspace: "default".into(),
        ..by(&admin, op("mint-token"))
    };
    for (id, name, who) in [
        (rita.as_str(), "", &rita),
        ("", "rita", &rita),
        ("", "", &admin),
    ] {
        let jwt = world
            .ask(&mint(id, name, r#"{"team": ["a"]}"#))
            .unwrap()
            .jwt;
        let told = world.ask(&token(&jwt)).unwrap();
        assert_eq!(
            (
                &told.resolved_user_id,
                told.resolved_default_workspace.as_str()
            ),
            (who, "default")
        );
        let keys = world
            .ask(&op("get-signing-key-public"))
            .unwrap()
            .signing_key_public;
        let keys = tg_jwt::PublicKeys::from_pem(&keys);
        let claims = keys.verify(&jwt, world.now.timestamp()).unwrap();
        assert_eq!(claims.user_context.unwrap()["team"][0], "a");
    }
    let long = format!(r#"{{"a": "{}"}}"#, "x".repeat(5000));
    for (id, name, context, refused) in [
        (rita.as_str(), "rita", "", "invalid-argument"),
        ("", "nobody", "", "not-found"),
        (&rita, "", "[]", "invalid-argument"),
        (&rita, "", r#"{"roles": 3}"#, "invalid-argument"),
        (&rita, "", "x", "invalid-argument"),
        (&rita, "", &long, "invalid-argument"),
    ] {
        assert_eq!(kind(world.ask(&mint(id, name, context))), refused);
    }
}

#[test]
fn what_an_update_does_not_say_stays() {
    let (mut world, _) = world();
    let rita = world.made(&named("rita", "one", &["reader"]));
    let update = |input: UserInput| IamRequest {
        user: Some(input),
        ..about("update-user", &rita)
    };
    let said = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mail = UserInput {
        email: "r@example.org".into(),
        ..UserInput::default()
    };
    world.ask(&about("disable-user", &rita)).unwrap();
    let user = world.ask(&update(mail)).unwrap().user.unwrap();
    assert!(!user.enabled && user.email == "r@example.org" && user.roles == ["reader"]);
    let on = UserInput {
        told: said(&["enabled", "must_change_password"]),
        must_change_password: true,
        ..UserInput::default()
    };
    let user = world.ask(&update(on.clone())).unwrap().user.unwrap();
    assert!(user.enabled && user.must_change_password && user.email == "r@example.org");
    let kept = world
        .ask(&update(UserInput::default()))
        .unwrap()
        .user
        .unwrap();
    assert_eq!(kept, user);
    let off = UserInput {
        must_change_password: false,
        ..on
    };
    assert!(
        !world
            .ask(&update(off))
            .unwrap()
            .user
            .unwrap()
            .must_change_password
    );
    let secret = UserInput {
        password: "two".into(),
        ..UserInput::default()
    };
    assert_eq!(kind(world.ask(&update(secret))), "invalid-argument");
    let jwt = world.ask(&login("rita", "one")).unwrap().jwt;
    let closed = UserInput {
        enabled: false,
        told: said(&["enabled"]),
        ..UserInput::default()
    };
    world.ask(&update(closed)).unwrap();
    assert_eq!(kind(world.ask(&token(&jwt))), "auth-failed");
}

#[test]
fn keys_may_have_less_than_their_user_and_names_are_seen() {
    let (mut world, _) = world();
    let rita = world.made(&named("rita", "", &["reader"]));
    let key = |scopes: &[&str]| IamRequest {
        key: Some(ApiKeyInput {
            user_id: rita.clone(),
            name: "k".into(),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            ..ApiKeyInput::default()
        }),
        ..op("create-api-key")
    };
    let made = world.ask(&key(&["triples:read"])).unwrap();
    assert_eq!(made.api_key.unwrap().scopes, ["triples:read"]);
    let who = world.resolve(&made.api_key_plaintext).unwrap();
    assert_eq!(who.resolved_scopes, ["triples:read"]);
    // 44: a key that is held to a model.
    let made = world.ask(&key(&["llm", "model:openai/gpt-5"])).unwrap();
    assert_eq!(made.api_key.unwrap().scopes, ["llm", "model:openai/gpt-5"]);
    // What agents may do for a key: use tools without asking, count as a role.
    let more = ["agent", "role:writer", "tool:pay", "tool:send mail"];
    let made = world.ask(&key(&more)).unwrap();
    assert_eq!(made.api_key.unwrap().scopes, more);
    for scope in ["role:", "role:root", "tool:", "tool: pay", "tool:a\nb"] {
        assert_eq!(
            kind(world.ask(&key(&[scope]))),
            "invalid-argument",
            "{scope}"
        );
    }
    for scope in ["model:", "model:a b", "model:a\n"] {
        assert_eq!(kind(world.ask(&key(&[scope]))), "invalid-argument");
    }
    for scope in [
        "nonsense",
        "",
        "reader",
        "admin",
        "users:admin",
        "mint-token",
        "keys:admin",
    ] {
        assert_eq!(
            kind(world.ask(&key(&[scope]))),
            "invalid-argument",
            "{scope}"
        );
    }
    for name in [
        "",
        " x",
        "x ",
        "a\u{200b}b",
        "a\u{202e}b",
        "e\u{301}",
        "a\tb",
        "a\u{a0}b",
        "\u{feff}x",
    ] {
        assert_eq!(
            kind(world.ask(&named(name, "", &[]))),
            "invalid-argument",
            "{name:?}"
        );
    }
    for name in ["größe", "Владимир", "山田 太郎"] {
        assert_eq!(kind(world.ask(&named(name, "", &[]))), "done", "{name}");
    }
    assert_eq!(
        kind(world.ask(&named("rita", &"p".repeat(1025), &[]))),
        "duplicate"
    );
}
