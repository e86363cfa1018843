//! What every adapter of [`DirectoryStore`] and [`AuditStore`] does. A new one is added by one line at the end.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::DateTime;

use super::*;
use crate::engine::{Grant, Grantee, Group, Signing};
use crate::password::PasswordHash;
use audit::*;

mod audit;

type Store = Arc<dyn DirectoryStore>;

fn workspace(id: &str) -> Workspace {
    Workspace {
        id: id.into(),
        name: format!("name of {id}"),
        enabled: true,
        created: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        restoring: "q".into(),
        generation: Some(7),
    }
}

fn user(id: &str) -> User {
    User {
        id: id.into(),
        home: "acme".into(),
        username: format!("{id} name"),
        name: "Rita".into(),
        email: "rita@example.org".into(),
        roles: BTreeSet::from(["reader".into(), "writer".into()]),
        enabled: true,
        must_change_password: false,
        password: PasswordHash::stored("hash".into()),
        session: 3,
        created: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        made_by: "q".into(),
    }
}

fn key(id: &str) -> Key {
    Key {
        id: id.into(),
        user_id: "u".into(),
        name: "laptop".into(),
        prefix: "tg_1".into(),
        hash: format!("hash of {id}"),
        expires: DateTime::from_timestamp(1_900_000_000, 0),
        scopes: BTreeSet::from(["rows:read".into(), "triples:read".into()]),
        created: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        made_by: "q".into(),
    }
}

async fn a_fresh_store_has_the_first_workspace_once(store: Store) {
    let first = store.workspaces("", 9).await.unwrap();
    assert_eq!(first.len(), 1);
    assert_eq!((first[0].id.as_str(), first[0].enabled), ("default", true));
    let gone = [Change::RemoveWorkspace("default".into())];
    for _ in 0..2 {
        store.commit(&gone, false, &[]).await.unwrap();
        assert!(store.workspaces("", 9).await.unwrap().is_empty());
    }
}

async fn what_is_put_is_there_until_it_is_removed(store: Store) {
    let (mut u, k) = (user("u"), key("k"));
    let puts = [
        Change::PutWorkspace(workspace("acme")),
        Change::PutUser(u.clone()),
        Change::PutKey(k.clone()),
    ];
    for _ in 0..2 {
        store.commit(&puts, false, &[]).await.unwrap();
        let found = store.workspaces("", 9).await.unwrap();
        assert_eq!(found[0], workspace("acme"));
        assert_eq!(store.users("", 9).await.unwrap(), std::slice::from_ref(&u));
        assert_eq!(store.keys("", 9).await.unwrap(), std::slice::from_ref(&k));
    }
    u.enabled = false;
    u.roles.remove("writer");
    (u.password, u.session) = (None, 4);
    let changed = [Change::PutUser(u.clone())];
    store.commit(&changed, false, &[]).await.unwrap();
    assert_eq!(store.users("", 9).await.unwrap(), [u]);
    let removes = [
        Change::RemoveKey("k".into()),
        Change::RemoveUser("u".into()),
        Change::RemoveWorkspace("acme".into()),
    ];
    for _ in 0..2 {
        store.commit(&removes, false, &[]).await.unwrap();
        assert!(store.users("", 9).await.unwrap().is_empty());
        assert!(store.keys("", 9).await.unwrap().is_empty());
        assert_eq!(store.workspaces("", 9).await.unwrap().len(), 1);
    }
}

async fn changes_are_stored_all_or_none(store: Store) {
    let first = [Change::PutUser(user("one"))];
    store.commit(&first, false, &[]).await.unwrap();
    let mut other = user("two");
    other.username = user("one").username;
    let both = [
        Change::PutWorkspace(workspace("acme")),
        Change::PutUser(other),
    ];
    store.commit(&both, true, &[]).await.unwrap_err();
    assert_eq!(store.workspaces("", 9).await.unwrap().len(), 1);
    assert_eq!(store.users("", 9).await.unwrap().len(), 1);
    assert!(!store.revocations().await.unwrap().are_owed());
}

fn group(id: &str) -> Group {
    Group {
        id: id.into(),
        name: format!("group {id}"),
        description: "they read".into(),
        enabled: true,
        created: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        made_by: "q".into(),
    }
}

fn grant(workspace: &str) -> Grant {
    Grant {
        capability: "rows:read".into(),
        workspace: workspace.into(),
    }
}

async fn keys_that_sign_are_kept_and_retired(store: Store) {
    let mut signing = Signing {
        key: tg_jwt::SigningKey::generate().unwrap(),
        created: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        retired: None,
    };
    for retired in [None, DateTime::from_timestamp(1_800_000_009, 0)] {
        signing.retired = retired;
        let put = [Change::PutSigning(signing.clone())];
        for _ in 0..2 {
            store.commit(&put, false, &[]).await.unwrap();
            assert_eq!(store.access().await.unwrap(), put);
        }
    }
    let gone = [Change::RemoveSigning(signing.key.public().kid())];
    for _ in 0..2 {
        store.commit(&gone, false, &[]).await.unwrap();
        assert!(store.access().await.unwrap().is_empty());
    }
}

async fn groups_members_and_grants_go_with_what_they_are_of(store: Store) {
    let (of_user, of_group) = (Grantee::User("u".into()), Grantee::Group("g".into()));
    let all = [
        Change::PutGroup(group("g")),
        Change::PutMember("g".into(), "u".into()),
        Change::PutMember("g".into(), "v".into()),
        Change::PutGrant(of_group.clone(), grant("acme")),
        Change::PutGrant(of_user.clone(), grant("")),
        Change::PutGrant(of_user.clone(), grant("acme")),
    ];
    for _ in 0..2 {
        store.commit(&all, false, &[]).await.unwrap();
        assert_eq!(store.access().await.unwrap(), all);
    }
    let mut other = group("g");
    (other.enabled, other.name) = (false, "other".into());
    let changed = [
        Change::PutGroup(other.clone()),
        Change::RemoveMember("g".into(), "v".into()),
        Change::RemoveGrant(of_user, grant("acme")),
    ];
    let now = [
        Change::PutGroup(other),
        all[1].clone(),
        all[3].clone(),
        all[4].clone(),
    ];
    for _ in 0..2 {
        store.commit(&changed, false, &[]).await.unwrap();
        assert_eq!(store.access().await.unwrap(), now);
    }
    // Who makes a workspace or a user of the same id later finds nothing.
    for (gone, left) in [
        (Change::RemoveWorkspace("acme".into()), &[0, 1, 3][..]),
        (Change::RemoveWorkspace(String::new()), &[0, 1, 3]),
        (Change::RemoveUser("u".into()), &[0]),
    ] {
        store.commit(&[gone], false, &[]).await.unwrap();
        let left: Vec<Change> = left.iter().map(|at| now[*at].clone()).collect();
        assert_eq!(store.access().await.unwrap(), left);
    }
    let again = [
        all[1].clone(),
        all[3].clone(),
        Change::RemoveGroup("g".into()),
    ];
    store.commit(&again, false, &[]).await.unwrap();
    assert!(store.access().await.unwrap().is_empty());
}

async fn names_of_groups_are_unique(store: Store) {
    let mut twin = group("other");
    twin.name = group("g").name;
    let both = [Change::PutGroup(group("g")), Change::PutGroup(twin)];
    store.commit(&both, false, &[]).await.unwrap_err();
    assert!(store.access().await.unwrap().is_empty());
}

async fn rows_come_in_pages_by_id(store: Store) {
    let ids: Vec<String> = (0..5).map(|at| format!("i{at}")).collect();
    let all = ids.iter().rev();
    let puts: Vec<Change> = all
        .flat_map(|id| {
            [
                Change::PutWorkspace(workspace(id)),
                Change::PutUser(user(id)),
                Change::PutKey(key(id)),
            ]
        })
        .collect();
    store.commit(&puts, false, &[]).await.unwrap();
    let (mut users, mut keys, mut workspaces) = (Vec::new(), Vec::new(), Vec::new());
    let mut after = String::from("default");
    while users.len() < ids.len() {
        let page = store.users(&after, 2).await.unwrap();
        assert!(!page.is_empty() && page.len() <= 2);
        users.extend(page.into_iter().map(|one| one.id));
        let page = store.keys(&after, 2).await.unwrap();
        keys.extend(page.into_iter().map(|one| one.id));
        let page = store.workspaces(&after, 2).await.unwrap();
        workspaces.extend(page.into_iter().map(|one| one.id));
        after.clone_from(users.last().unwrap());
    }
    assert_eq!((&users, &keys, &workspaces), (&ids, &ids, &ids));
    assert!(store.users(&after, 2).await.unwrap().is_empty());
}

async fn a_revocation_is_owed_with_its_change_until_it_is_told(store: Store) {
    let change = [Change::PutWorkspace(workspace("acme"))];
    assert_eq!(store.revocations().await.unwrap(), Revocations::default());
    let standing = store.commit(&change, false, &[]).await.unwrap();
    assert!(!standing.are_owed());
    for made in 1..=2 {
        let standing = store.commit(&change, true, &[]).await.unwrap();
        assert_eq!((standing.made, standing.told), (made, 0));
        assert!(standing.are_owed());
    }
    // In whatever order it is told, and never more than was made.
    for (up_to, told) in [(1, 1), (2, 2), (1, 2), (99, 2)] {
        store.told(up_to).await.unwrap();
        assert_eq!(store.revocations().await.unwrap().told, told);
    }
    assert!(store.commit(&[], true, &[]).await.unwrap().are_owed());
}

/// Every promise, kept by one adapter.
macro_rules! suite {
    ($adapter:ident, $open:expr) => {
        mod $adapter {
            use super::*;

            suite!(@ $open;
                a_fresh_store_has_the_first_workspace_once,
                what_is_put_is_there_until_it_is_removed,
                changes_are_stored_all_or_none,
                rows_come_in_pages_by_id,
                keys_that_sign_are_kept_and_retired,
                groups_members_and_grants_go_with_what_they_are_of,
                names_of_groups_are_unique,
                a_revocation_is_owed_with_its_change_until_it_is_told,
                a_batch_is_kept_once_and_what_is_the_same_counts,
                a_count_beyond_all_counts_stays_readable,
                what_happened_is_found_by_what_it_is,
                a_change_and_what_is_written_of_it_are_one,
                who_floods_makes_room_by_their_own,
                who_does_much_pushes_out_no_other_keys,
                what_is_about_no_workspace_has_one_room,
                all_of_it_has_a_bound,
                what_is_too_old_goes,
            );
        }
    };
    (@ $open:expr; $($promise:ident,)+) => {
        $(
            #[tokio::test]
            async fn $promise() {
                super::$promise(Arc::new($open)).await;
            }
        )+
    };
}

suite!(
    sqlite,
    SqliteDirectory::in_memory(AuditBounds::default()).unwrap()
);
