//! Groups and grants, and who may give what to whom.

use serde_json::Value;
use tg_schemas::msg::GroupInput;

use super::access::{by, grant, kind, named, world};
use super::*;

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
    assert_eq!(world.directory.grants(&Grantee::User(rita)).count(), 1);
}

/// An administrator, and somebody who manages the users of a workspace, and nobody else.
pub(super) fn managed() -> (World, String, String) {
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
    (world, admin, boss)
}

#[test]
fn nobody_gives_or_manages_more_than_they_may() {
    let (mut world, admin, boss) = managed();
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
    // Nor may somebody who was disabled go on.
    world.ask(&about("disable-user", &boss)).unwrap();
    assert_eq!(ask(&mut world, about("disable-user", &rita)), "not-found");
    let manage = by(&admin, about("reset-password", &will));
    assert_eq!(kind(world.ask(&manage)), "done");
}

#[test]
fn what_somebody_has_not_they_give_by_no_way_around() {
    let (mut world, _, boss) = managed();
    let rita = world.made(&named("rita", "", &["reader"]));
    let ask = |world: &mut World, ask: IamRequest| kind(world.ask(&by(&boss, ask)));
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
}

#[test]
fn a_role_is_had_where_all_that_it_stands_for_may_be_done() {
    let (mut world, admin) = world();
    let rita = world.made(&named("rita", "", &["reader"]));
    let has = |world: &mut World, user: &str, role: &str, workspace: &str| {
        world.allows(user, &format!("role:{role}"), workspace)
    };
    assert!(has(&mut world, &rita, "reader", "acme"));
    assert!(!has(&mut world, &rita, "reader", "default"));
    assert!(!has(&mut world, &rita, "writer", "acme"));
    for role in ["reader", "writer", "admin"] {
        assert!(has(&mut world, &admin, role, "acme"), "{role}");
    }
    for none in ["", "root", "triples:read", "role:reader"] {
        assert!(!has(&mut world, &admin, none, "acme"), "{none}");
    }
    world
        .ask(&grant("add-user-grant", &rita, "writer", "default"))
        .unwrap();
    assert!(has(&mut world, &rita, "writer", "default"));
    assert!(has(&mut world, &rita, "reader", "default"));
    assert!(!has(&mut world, &rita, "admin", "default"));
    // The capability stands for a question, and cannot be given.
    let given = world.ask(&grant("add-user-grant", &rita, "role:admin", "acme"));
    assert_eq!(kind(given), "invalid-argument");
}
