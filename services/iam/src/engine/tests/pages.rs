//! Listings page by page: users by name, workspaces by id, keys by age.

use serde_json::Value;
use tg_schemas::msg::GrantInput;

use super::*;

#[test]
fn more_than_ten_thousand_permissions_come_in_pages() {
    let mut world = World::new();
    let rita = world.user("default", "rita", &["reader"]);
    // A workspace's grants are for each of its capabilities.
    let grants: Vec<Change> = (0..256)
        .map(|at| {
            let id = format!("w{at:03}");
            let grant = Grant {
                capability: "admin".into(),
                workspace: id,
            };
            Change::PutGrant(Grantee::User(rita.clone()), grant)
        })
        .collect();
    grants.iter().for_each(|grant| world.directory.apply(grant));
    let mut ask = IamRequest {
        user_id: rita,
        limit: 700,
        ..op("resolve-effective-permissions")
    };
    let mut read = |ask: &IamRequest| {
        let answer = world.ask(ask).unwrap();
        let page: Value = serde_json::from_str(&answer.effective_permissions_json).unwrap();
        let rows = page["permissions"].as_array().unwrap().clone();
        (rows, answer.next)
    };
    let (whole, next) = read(&IamRequest {
        limit: 0,
        ..ask.clone()
    });
    assert!(whole.len() > 10_000 && next.is_empty(), "{}", whole.len());
    let mut paged = Vec::new();
    loop {
        let (rows, next) = read(&ask);
        assert!(rows.len() <= 700);
        paged.extend(rows);
        if next.is_empty() {
            break;
        }
        ask.after = next;
    }
    assert_eq!(paged, whole);
    assert!(paged.iter().any(|one| one["workspace"] == "w255"));
}

/// What a listing names, and where its next page begins.
fn named(answer: IamResponse) -> (Vec<String>, String) {
    let users = answer.users.into_iter().map(|user| user.username);
    let workspaces = answer.workspaces.into_iter().map(|one| one.id);
    let keys = answer.api_keys.into_iter().map(|key| key.id);
    (users.chain(workspaces).chain(keys).collect(), answer.next)
}

/// Each page of a listing, `between` them something else happens.
fn walk(
    world: &mut World,
    ask: &IamRequest,
    mut between: impl FnMut(&mut World),
) -> Vec<Vec<String>> {
    let (mut pages, mut ask) = (Vec::new(), ask.clone());
    loop {
        let (names, next) = named(world.ask(&ask).unwrap());
        pages.push(names);
        if next.is_empty() {
            return pages;
        }
        ask.after = next;
        between(world);
    }
}

fn limited(limit: i64, ask: IamRequest) -> IamRequest {
    IamRequest { limit, ..ask }
}

#[test]
fn users_come_by_name_and_nobody_twice() {
    let mut world = World::new();
    let ids = ["c", "a", "d", "b"].map(|name| world.user("default", name, &["reader"]));
    let list = limited(2, op("list-users"));
    assert_eq!(walk(&mut world, &list, |_| ()), [["a", "b"], ["c", "d"]]);
    // The last one seen is deleted, others come before and after it.
    let pages = walk(&mut world, &list, |world| {
        let delete = IamRequest {
            user_id: ids[3].clone(),
            ..op("delete-user")
        };
        if world.ask(&delete).is_ok() {
            world.user("default", "aa", &["reader"]);
            world.user("default", "bb", &["reader"]);
        }
    });
    assert_eq!(pages, [vec!["a", "b"], vec!["bb", "c"], vec!["d"]]);
    let one = limited(1, op("list-users"));
    assert_eq!(walk(&mut world, &one, |_| ()).len(), 5);
    let all = limited(0, op("list-users"));
    assert_eq!(walk(&mut world, &all, |_| ()).len(), 1);
}

#[test]
fn workspaces_come_by_id_and_mine_are_among_them() {
    let mut world = World::new();
    for id in ["acme", "beta", "gamma"] {
        world.workspace("create-workspace", id).unwrap();
    }
    let list = limited(3, op("list-workspaces"));
    let both = [vec!["acme", "beta", "default"], vec!["gamma"]];
    assert_eq!(walk(&mut world, &list, |_| ()), both);
    let actor = world.user("default", "root", &["admin"]);
    let mine = IamRequest {
        actor,
        ..limited(3, op("list-my-workspaces"))
    };
    assert_eq!(walk(&mut world, &mine, |_| ()), both);
    let actor = world.user("beta", "ann", &["reader"]);
    let mine = IamRequest { actor, ..mine };
    assert_eq!(walk(&mut world, &mine, |_| ()), [["beta"]]);
    // Where there are no users, they are everybody's.
    let call = |ask: &IamRequest| {
        let call = Call {
            now: world.now,
            question: String::new(),
            named: None,
            vouched: false,
            workspace_users: 10_000,
            proof: None,
            external: None,
            fresh: Fresh {
                user_id: String::new(),
                key_id: String::new(),
                key: ApiKey::from_random([0; 24]),
                password: None,
                temporary: None,
                signing: None,
            },
        };
        run_anonymous(&world.directory, &call, ask).map(|effect| named(effect.answer))
    };
    let (first, next) = call(&limited(3, op("list-my-workspaces"))).unwrap();
    assert_eq!(first, both[0]);
    let more = IamRequest {
        after: next,
        ..op("list-my-workspaces")
    };
    assert_eq!(
        call(&more).unwrap(),
        (vec!["gamma".to_owned()], String::new())
    );
    let users = call(&limited(1, op("list-users"))).unwrap();
    assert_eq!(users, (vec!["anonymous".to_owned()], String::new()));
}

#[test]
fn keys_come_by_age() {
    let mut world = World::new();
    let user = world.user("default", "ann", &["reader"]);
    let mut ids = Vec::new();
    for minute in 0..3 {
        world.now = at("2026-08-01T12:00:00Z") + chrono::TimeDelta::minutes(minute);
        ids.push(world.key(&user, "").unwrap().api_key.unwrap().id);
    }
    let list = IamRequest {
        user_id: user,
        ..limited(1, op("list-api-keys"))
    };
    let revoked = ids[0].clone();
    let pages = walk(&mut world, &list, |world| {
        let revoke = IamRequest {
            key_id: revoked.clone(),
            ..op("revoke-api-key")
        };
        let _ = world.ask(&revoke);
    });
    assert_eq!(pages.concat(), ids);
}

#[test]
fn what_is_no_page_is_refused_by_name() {
    let mut world = World::new();
    let user = world.user("default", "ann", &["reader"]);
    world.user("default", "bob", &["reader"]);
    let (_, users) = named(world.ask(&limited(1, op("list-users"))).unwrap());
    for operation in [
        "list-users",
        "list-workspaces",
        "list-my-workspaces",
        "list-api-keys",
    ] {
        let mut refused = |limit, after: &str| {
            let ask = IamRequest {
                user_id: user.clone(),
                actor: user.clone(),
                after: after.to_owned(),
                ..limited(limit, op(operation))
            };
            world.ask(&ask).map_err(|error| error.message)
        };
        assert_eq!(
            refused(-1, "").unwrap_err(),
            "limit: must not be negative",
            "{operation}"
        );
        let wrong = "after: is not the 'next' of an earlier page";
        assert_eq!(refused(1, "nonsense").unwrap_err(), wrong, "{operation}");
        // Nor is that of another listing.
        let others = refused(1, &users);
        assert_eq!(others.is_ok(), operation == "list-users", "{operation}");
    }
}

#[test]
fn grants_come_by_name_and_workspace() {
    let mut world = World::new();
    for id in ["acme", "beta"] {
        world.workspace("create-workspace", id).unwrap();
    }
    let ann = world.user("default", "ann", &["reader"]);
    let grants = [
        ("rows:read", "beta"),
        ("agent", ""),
        ("rows:read", ""),
        ("rows:read", "acme"),
        ("rows:write", "acme"),
    ];
    for (capability, workspace) in grants {
        let grant = GrantInput {
            capability: capability.into(),
            workspace: workspace.into(),
        };
        let add = IamRequest {
            user_id: ann.clone(),
            grant: Some(grant),
            ..op("add-user-grant")
        };
        world.ask(&add).unwrap();
    }
    let mut list = IamRequest {
        user_id: ann,
        ..op("list-user-grants")
    };
    let whole = world.ask(&list).unwrap();
    assert!(whole.next.is_empty());
    let parsed = |answer: &IamResponse| -> Vec<serde_json::Value> {
        serde_json::from_str(&answer.grants_json).unwrap()
    };
    assert_eq!(parsed(&whole).len(), grants.len());
    for limit in 1..=6 {
        let mut pages = Vec::new();
        (list.limit, list.after) = (limit, String::new());
        loop {
            let page = world.ask(&list).unwrap();
            assert!(parsed(&page).len() <= limit as usize);
            pages.extend(parsed(&page));
            list.after = page.next;
            if list.after.is_empty() {
                break;
            }
        }
        assert_eq!(pages, parsed(&whole), "in pages of {limit}");
    }
    list.after = "nonsense".into();
    assert!(world.ask(&list).unwrap_err().message.starts_with("after: "));
}
