//! Passwords, tokens, groups and grants, and who may give what to whom.

use serde_json::Value;
use tg_schemas::msg::{GrantInput, GroupInput};

use super::*;

/// A world with a signing key and an administrator.
fn world() -> (World, String) {
    let mut world = World::new();
    world.ask(&op("rotate-signing-key")).unwrap();
    let admin = world.ask(&op("bootstrap")).unwrap();
    world.workspace("create-workspace", "acme").unwrap();
    (world, admin.bootstrap_admin_user_id)
}

fn by(actor: &str, ask: IamRequest) -> IamRequest {
    IamRequest {
        actor: actor.into(),
        ..ask
    }
}

fn named(username: &str, password: &str, roles: &[&str]) -> IamRequest {
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

fn token(jwt: &str) -> IamRequest {
    IamRequest {
        api_key: jwt.into(),
        ..op("resolve-token")
    }
}

fn grant(operation: &str, holder: &str, capability: &str, workspace: &str) -> IamRequest {
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

fn kind(outcome: Result<IamResponse, Error>) -> String {
    outcome.map_or_else(|error| error.kind, |_| "done".into())
}

impl World {
    fn made(&mut self, ask: &IamRequest) -> String {
        self.ask(ask).unwrap().user.unwrap().id
    }

    fn group(&mut self, name: &str) -> String {
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
    let elsewhere = IamRequest {
        workspace: "default".into(),
        ..login("rita", "horse")
    };
    let jwt = world.ask(&elsewhere).unwrap().jwt;
    assert_eq!(
        world.ask(&token(&jwt)).unwrap().resolved_default_workspace,
        "default"
    );
    assert!(
        !world.allows(&rita, "triples:read", "default"),
        "it grants nothing"
    );
    world.user("acme", "without", &[]);
    let nowhere = IamRequest {
        workspace: "nowhere".into(),
        ..login("rita", "horse")
    };
    let refused = world.ask(&nowhere).unwrap_err();
    assert_eq!(
        (refused.kind.as_str(), refused.message.as_str()),
        ("auth-failed", "auth failure")
    );
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
        (&rita, "", "x", "invalid-argument"),
        (&rita, "", &long, "invalid-argument"),
    ] {
        assert_eq!(kind(world.ask(&mint(id, name, context))), refused);
    }
}

#[test]
fn grants_reach_where_they_say_and_groups_give_theirs() {
    let (mut world, _) = world();
    let rita = world.made(&named("rita", "", &[]));
    let team = world.group("team");
    assert!(!world.allows(&rita, "triples:read", "default"));
    world
        .ask(&grant("add-user-grant", &rita, "triples:read", "default"))
        .unwrap();
    assert!(world.allows(&rita, "triples:read", "default"));
    assert!(!world.allows(&rita, "triples:read", "acme"));
    assert!(!world.allows(&rita, "triples:write", "default"));
    world
        .ask(&grant("add-group-grant", &team, "writer", "acme"))
        .unwrap();
    let member = |operation: &str| IamRequest {
        group_id: team.clone(),
        member_id: rita.clone(),
        ..op(operation)
    };
    world.ask(&member("add-group-member")).unwrap();
    assert!(
        world.allows(&rita, "rows:write", "acme") && !world.allows(&rita, "rows:write", "default")
    );
    let mine = by(&rita, op("list-my-workspaces"));
    assert_eq!(world.ask(&mine).unwrap().workspaces.len(), 2);
    let all = world
        .ask(&about("resolve-effective-permissions", &rita))
        .unwrap();
    let all: Value = serde_json::from_str(&all.effective_permissions_json).unwrap();
    let all = all["permissions"].as_array().unwrap();
    assert!(all.contains(&serde_json::json!({"capability": "triples:read", "workspace": "default", "sources": ["user"]})));
    assert!(all.iter().any(
        |one| one["capability"] == "rows:write" && one["sources"][0] == format!("group:{team}")
    ));
    let members = world
        .ask(&member("list-group-members"))
        .unwrap()
        .members_json;
    assert!(members.contains("rita"), "{members}");
    let off = IamRequest {
        group: Some(GroupInput {
            enabled: false,
            ..GroupInput::default()
        }),
        group_id: team.clone(),
        ..op("update-group")
    };
    world.ask(&off).unwrap();
    assert!(!world.allows(&rita, "rows:write", "acme"));
    let on = GroupInput {
        told: vec!["enabled".into()],
        ..GroupInput::default()
    };
    world
        .ask(&IamRequest {
            group: Some(on),
            ..off
        })
        .unwrap();
    assert!(world.allows(&rita, "rows:write", "acme"));
    world.ask(&member("remove-group-member")).unwrap();
    assert!(!world.allows(&rita, "rows:write", "acme"));
    assert_eq!(kind(world.ask(&member("remove-group-member"))), "not-found");
    world
        .ask(&grant(
            "remove-user-grant",
            &rita,
            "triples:read",
            "default",
        ))
        .unwrap();
    assert!(!world.allows(&rita, "triples:read", "default"));
    let odd = [
        ("nonsense", "acme", "invalid-argument"),
        ("triples:read", "nowhere", "not-found"),
    ];
    for (capability, workspace, refused) in odd {
        let ask = grant("add-user-grant", &rita, capability, workspace);
        assert_eq!(kind(world.ask(&ask)), refused);
    }
}

#[test]
fn a_grant_for_one_workspace_is_none_for_the_system() {
    let (mut world, _) = world();
    let rita = world.made(&named("rita", "", &[]));
    let may = |world: &mut World| {
        let ask = IamRequest {
            capability: "workspaces:admin".into(),
            ..about("authorise", &rita)
        };
        world.ask(&ask).unwrap().decision_allow
    };
    world
        .ask(&grant("add-user-grant", &rita, "workspaces:admin", "acme"))
        .unwrap();
    assert!(!may(&mut world));
    world
        .ask(&grant("add-user-grant", &rita, "workspaces:admin", ""))
        .unwrap();
    assert!(may(&mut world));
    let removed: IamRequest = grant("list-user-grants", &rita, "", "");
    world
        .directory
        .apply(&Change::RemoveWorkspace("acme".into()));
    let left = world.ask(&removed);
    assert_eq!(kind(left), "done");
    assert_eq!(world.directory.grants(&Holder::User(rita)).count(), 1);
}

/// Somebody who manages the users of a workspace, and nobody else.
#[test]
fn nobody_gives_or_manages_more_than_they_may() {
    let (mut world, admin) = world();
    let boss = world.made(&named("boss", "", &["reader"]));
    for capability in [
        "users:admin",
        "users:write",
        "users:read",
        "keys:admin",
        "mint-token",
        "iam:admin",
    ] {
        world
            .ask(&grant("add-user-grant", &boss, capability, "acme"))
            .unwrap();
    }
    let rita = world.made(&named("rita", "", &["reader"]));
    let will = world.made(&named("will", "", &["writer"]));
    let far = world.user("default", "far", &[]);
    let ask = |world: &mut World, ask: IamRequest| kind(world.ask(&by(&boss, ask)));
    assert_eq!(ask(&mut world, named("new", "", &["reader"])), "done");
    for roles in [&["admin"][..], &["writer"], &["reader", "admin"]] {
        assert_eq!(
            ask(&mut world, named("evil", "", roles)),
            "operation-not-permitted"
        );
    }
    let abroad = IamRequest {
        workspace: "default".into(),
        ..named("abroad", "", &[])
    };
    assert_eq!(ask(&mut world, abroad), "not-found");
    let raise = |roles: &str, id: &str| IamRequest {
        user: Some(UserInput {
            roles: vec![roles.into()],
            ..UserInput::default()
        }),
        ..about("update-user", id)
    };
    assert_eq!(
        ask(&mut world, raise("admin", &boss)),
        "operation-not-permitted"
    );
    assert_eq!(
        ask(&mut world, raise("writer", &rita)),
        "operation-not-permitted"
    );
    let key = |id: &str| IamRequest {
        key: Some(ApiKeyInput {
            user_id: id.into(),
            name: "k".into(),
            ..ApiKeyInput::default()
        }),
        ..op("create-api-key")
    };
    for operation in [
        "disable-user",
        "delete-user",
        "reset-password",
        "mint-token",
        "enable-user",
    ] {
        assert_eq!(
            ask(&mut world, about(operation, &far)),
            "not-found",
            "{operation}"
        );
        assert_eq!(
            ask(&mut world, about(operation, &admin)),
            "not-found",
            "{operation}"
        );
        assert_eq!(
            ask(&mut world, about(operation, &will)),
            "operation-not-permitted",
            "{operation}"
        );
    }
    assert_eq!(ask(&mut world, key(&will)), "operation-not-permitted");
    assert_eq!(ask(&mut world, key(&far)), "not-found");
    for operation in ["get-user", "list-api-keys"] {
        assert_eq!(ask(&mut world, about(operation, &far)), "not-found");
        assert_eq!(ask(&mut world, about(operation, &will)), "done");
    }
    let seen = world.ask(&by(&boss, op("list-users"))).unwrap().users;
    assert!(seen.iter().all(|user| user.default_workspace == "acme") && seen.len() == 4);
    // What they have, they may give; what they have not, they may not, by no way around.
    assert_eq!(
        ask(
            &mut world,
            grant("add-user-grant", &rita, "users:read", "acme")
        ),
        "done"
    );
    for (capability, workspace) in [
        ("rows:write", "acme"),
        ("users:read", ""),
        ("users:read", "default"),
        ("admin", "acme"),
    ] {
        let give = grant("add-user-grant", &rita, capability, workspace);
        assert_eq!(
            ask(&mut world, give),
            "operation-not-permitted",
            "{capability}"
        );
    }
    let strong = world.group("strong");
    world
        .ask(&grant("add-group-grant", &strong, "admin", ""))
        .unwrap();
    let join = IamRequest {
        group_id: strong.clone(),
        member_id: boss.clone(),
        ..op("add-group-member")
    };
    assert_eq!(ask(&mut world, join), "operation-not-permitted");
    // Nor may somebody who was disabled go on.
    world.ask(&about("disable-user", &boss)).unwrap();
    assert_eq!(ask(&mut world, about("disable-user", &rita)), "not-found");
    let manage = by(&admin, about("reset-password", &will));
    assert_eq!(kind(world.ask(&manage)), "done");
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
