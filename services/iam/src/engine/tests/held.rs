//! What those who manage some may not take from others, nor see of them.

use tg_schemas::msg::GroupInput;

use super::access::{by, grant, kind, named, token, world};
use super::grants::managed;
use super::*;

const REFUSED: &str = "operation-not-permitted";

fn revoke(id: &str) -> IamRequest {
    IamRequest {
        key_id: id.into(),
        ..op("revoke-api-key")
    }
}

fn closing(operation: &str, id: &str) -> IamRequest {
    IamRequest {
        workspace_record: Some(WorkspaceInput {
            id: id.into(),
            enabled: false,
            ..WorkspaceInput::default()
        }),
        ..op(operation)
    }
}

impl World {
    /// Id and text of a new key.
    fn held_key(&mut self, user: &str, expires: &str) -> (String, String) {
        let made = self.key(user, expires).unwrap();
        (made.api_key.unwrap().id, made.api_key_plaintext)
    }
}

#[test]
fn nobody_revokes_keys_of_who_may_more() {
    let (mut world, _, boss) = managed();
    let (will, rita) = (
        world.made(&named("will", "", &["writer"])),
        world.made(&named("rita", "", &["reader"])),
    );
    let far = world.user("default", "far", &[]);
    let keys = [&will, &rita, &far, &boss].map(|user| world.held_key(user, "").0);
    let told = keys.map(|id| kind(world.ask(&by(&boss, revoke(&id)))));
    assert_eq!(told, [REFUSED, "done", "not-found", "done"]);
}

#[test]
fn the_last_way_in_of_the_last_administrator_stays() {
    let mut world = World::new();
    let admin = world.ask(&op("bootstrap")).unwrap().bootstrap_admin_user_id;
    let first = world.directory.keys_of(&admin).next().unwrap().id.clone();
    let ada = world.user("default", "ada", &["admin"]);
    assert_eq!(
        kind(world.ask(&revoke(&first))),
        REFUSED,
        "ada has no way in"
    );
    assert_eq!(kind(world.ask(&about("delete-user", &admin))), REFUSED);
    let scoped = IamRequest {
        key: Some(ApiKeyInput {
            user_id: admin.clone(),
            name: "k".into(),
            scopes: vec!["triples:read".into()],
            ..ApiKeyInput::default()
        }),
        ..op("create-api-key")
    };
    world.ask(&scoped).unwrap();
    let (short, _) = world.held_key(&admin, "2026-08-02");
    world.now = at("2026-08-02T00:00:00Z");
    assert_eq!(
        kind(world.ask(&revoke(&first))),
        REFUSED,
        "one may little, one has ended"
    );
    assert_eq!(kind(world.ask(&revoke(&short))), "done");
    let (of_ada, _) = world.held_key(&ada, "");
    assert_eq!(kind(world.ask(&revoke(&first))), "done");
    assert_eq!(kind(world.ask(&revoke(&of_ada))), REFUSED);
    world.ask(&about("reset-password", &admin)).unwrap();
    assert_eq!(kind(world.ask(&revoke(&of_ada))), "done");
    assert_eq!(kind(world.ask(&about("disable-user", &admin))), REFUSED);
    assert_eq!(kind(world.ask(&about("disable-user", &ada))), "done");
}

#[test]
fn nobody_takes_back_what_they_could_not_give() {
    let (mut world, _, boss) = managed();
    let rita = world.made(&named("rita", "", &["reader"]));
    let ask = |world: &mut World, ask: IamRequest| kind(world.ask(&by(&boss, ask)));
    for (capability, workspace) in [("rows:write", "acme"), ("users:read", "acme")] {
        world
            .ask(&grant("add-user-grant", &boss, capability, workspace))
            .unwrap();
    }
    let will = world.made(&named("will", "", &["writer"]));
    world
        .ask(&grant("add-user-grant", &will, "rows:write", "acme"))
        .unwrap();
    for (user, capability, told) in [
        (&will, "rows:write", REFUSED),
        (&rita, "users:read", "not-found"),
        (&rita, "graph:write", REFUSED),
    ] {
        let take = grant("remove-user-grant", user, capability, "acme");
        assert_eq!(ask(&mut world, take), told, "{capability}");
    }
    let strong = world.group("strong");
    world
        .ask(&grant("add-group-grant", &strong, "admin", ""))
        .unwrap();
    let group = |operation: &str| IamRequest {
        group_id: strong.clone(),
        member_id: rita.clone(),
        ..op(operation)
    };
    world.ask(&group("add-group-member")).unwrap();
    let off = IamRequest {
        group: Some(GroupInput {
            enabled: false,
            ..GroupInput::default()
        }),
        ..group("update-group")
    };
    for refused in [
        group("remove-group-member"),
        group("delete-group"),
        off,
        grant("remove-group-grant", &strong, "admin", ""),
        // Whether there is such a workspace is not told.
        grant("add-group-grant", &strong, "users:read", "nowhere"),
        grant("add-group-grant", &strong, "users:read", "default"),
    ] {
        assert_eq!(ask(&mut world, refused.clone()), REFUSED, "{refused:?}");
    }
    assert_eq!(world.directory.members(&strong).count(), 1);
}

#[test]
fn grants_of_other_workspaces_are_not_there() {
    let (mut world, _, boss) = managed();
    let rita = world.made(&named("rita", "", &[]));
    for workspace in ["acme", "default", ""] {
        world
            .ask(&grant("add-user-grant", &rita, "agent", workspace))
            .unwrap();
    }
    let list = about("list-user-grants", &rita);
    let seen = world.ask(&by(&boss, list.clone())).unwrap().grants_json;
    assert_eq!(seen, r#"[{"capability":"agent","workspace":"acme"}]"#);
    let all = world.ask(&list).unwrap().grants_json;
    assert_eq!(all.matches("capability").count(), 3);
}

#[test]
fn a_workspace_is_closed_by_who_manages_its_users() {
    let (mut world, admin, boss) = managed();
    world
        .ask(&grant("add-user-grant", &boss, "workspaces:admin", ""))
        .unwrap();
    for id in ["full", "empty"] {
        world.workspace("create-workspace", id).unwrap();
    }
    world.user("full", "will", &["writer"]);
    for operation in ["disable-workspace", "delete-workspace", "update-workspace"] {
        let close =
            |world: &mut World, id: &str| kind(world.ask(&by(&boss, closing(operation, id))));
        assert_eq!(close(&mut world, "full"), REFUSED, "{operation}");
        assert_eq!(close(&mut world, "empty"), "done", "{operation}");
    }
    let close = by(&admin, closing("disable-workspace", "acme"));
    assert_eq!(kind(world.ask(&close)), "done");
}

#[test]
fn a_context_is_no_wider_than_the_right_to_mint() {
    let (mut world, _, boss) = managed();
    let rita = world.made(&named("rita", "", &["reader"]));
    let mint = |user: &str| by(&boss, about("mint-token", user));
    for user in ["", &boss, &rita] {
        assert_eq!(kind(world.ask(&mint(user))), "done");
    }
    // What they may elsewhere policies would judge by what they said of themselves.
    for user in [&boss, &rita] {
        world
            .ask(&grant("add-user-grant", user, "agent", "default"))
            .unwrap();
    }
    for user in ["", &boss, &rita] {
        assert_eq!(kind(world.ask(&mint(user))), REFUSED, "{user}");
    }
    world
        .ask(&grant("add-user-grant", &boss, "mint-token", ""))
        .unwrap();
    for user in ["", &boss, &rita] {
        assert_eq!(kind(world.ask(&mint(user))), "done");
    }
}

#[test]
fn a_key_that_was_retired_signs_nothing_new() {
    let (mut world, _) = world();
    let rita = world.made(&named("rita", "", &["reader"]));
    let old = world.directory.signing().next().unwrap().key.clone();
    world.ask(&op("rotate-signing-key")).unwrap();
    let retired = world.now.timestamp();
    world.now += chrono::Duration::seconds(1800);
    for (after, told) in [(0, "done"), (60, "done"), (61, "auth-failed")] {
        let claims = tg_jwt::Claims::new(&rita, "acme", 0, retired + after);
        let jwt = old.sign(&claims).unwrap();
        assert_eq!(kind(world.ask(&token(&jwt))), told, "{after}");
    }
}

#[test]
fn one_workspace_does_not_take_the_places_of_all() {
    let (mut world, _) = world();
    for user in 0..8 {
        world.user("acme", &format!("u{user}"), &[]);
    }
    let refused = world.ask(&named("more", "", &[])).unwrap_err();
    assert!(refused.message.contains("iam.workspace_users"), "{refused}");
    world.user("default", "more", &[]);
}

#[test]
fn another_name_is_nothing_that_others_look_at_anew() {
    let (mut world, _) = world();
    let rita = world.made(&named("rita", "", &["reader"]));
    let update = |input: UserInput| IamRequest {
        user: Some(input),
        ..about("update-user", &rita)
    };
    let name = UserInput {
        name: "Rita".into(),
        email: "r@example.org".into(),
        ..UserInput::default()
    };
    let roles = UserInput {
        roles: vec!["writer".into()],
        ..UserInput::default()
    };
    let disabled = UserInput {
        enabled: false,
        ..UserInput::default()
    };
    for (input, quiet) in [(name, true), (roles, false), (disabled, false)] {
        let call = world.call("q", &update(input.clone()));
        let effect = run(&world.directory, &call, &update(input)).unwrap();
        assert_eq!((effect.quiet, effect.changes.len()), (quiet, 1));
    }
}
