//! The directory in memory with its store: what survives, and what is never on the disk.

use chrono::DateTime;
use tg_schemas::msg::{ApiKeyInput, UserInput, UserRecord, WorkspaceInput};
use tg_storage::Durability;

use super::*;
use crate::engine::Fresh;
use crate::password::{PasswordHash, Temporary};
use crate::secret::ApiKey;
use crate::store::{AuditBounds, SqliteDirectory};

fn call(n: u8) -> Call {
    Call {
        now: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        question: format!("q{n}"),
        named: None,
        vouched: true,
        workspace_users: 10_000,
        proof: None,
        external: None,
        fresh: Fresh {
            user_id: format!("u{n}"),
            key_id: format!("k{n}"),
            key: ApiKey::from_random([n; 24]),
            password: None,
            temporary: None,
            signing: None,
        },
    }
}

fn op(operation: &str) -> IamRequest {
    IamRequest {
        operation: operation.into(),
        ..IamRequest::default()
    }
}

/// A temporary password of a user, and a token.
async fn password_and_token(service: &CachedDirectory, user_id: &str) -> (String, String) {
    let temporary = Temporary::random();
    let with_password = Call {
        fresh: Fresh {
            password: PasswordHash::stored("of a password".into()),
            temporary: Some(temporary.clone()),
            ..call(4).fresh
        },
        ..call(4)
    };
    let reset = IamRequest {
        user_id: user_id.into(),
        ..op("reset-password")
    };
    let changed = service.change(engine::run, &with_password, &reset).await;
    assert_eq!(changed.unwrap().0.temporary_password, temporary.reveal());
    let mint = IamRequest {
        username: "rita".into(),
        ..op("mint-token")
    };
    let minted = service.read(engine::run, &call(5), &mint).unwrap().unwrap();
    (temporary.reveal().to_owned(), minted.jwt)
}

#[tokio::test]
async fn users_keys_and_workspaces_survive_a_restart_and_no_key_is_on_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("iam.sqlite");
    let open = || {
        Arc::new(SqliteDirectory::open(&file, Durability::Process, AuditBounds::default()).unwrap())
    };
    let service = CachedDirectory::load(open()).await.unwrap();
    let change = async |n: u8, ask: &IamRequest| {
        let changed = service.change(engine::run, &call(n), ask).await;
        changed.map(|(answer, _)| answer)
    };
    let admin = change(1, &op("bootstrap")).await.unwrap();
    let create = IamRequest {
        workspace: "default".into(),
        user: Some(UserInput {
            username: "rita".into(),
            roles: vec!["reader".into(), "writer".into()],
            ..UserInput::default()
        }),
        ..op("create-user")
    };
    let user = change(2, &create).await.unwrap().user.unwrap();
    let key = IamRequest {
        key: Some(ApiKeyInput {
            user_id: user.id.clone(),
            name: "laptop".into(),
            expires: "2030-01-01".into(),
            ..ApiKeyInput::default()
        }),
        ..op("create-api-key")
    };
    let key = change(3, &key).await.unwrap();
    let (temporary, minted) = password_and_token(&service, &user.id).await;
    drop(service);

    let service = CachedDirectory::load(open()).await.unwrap();
    let read = |ask: IamRequest| {
        service
            .read(engine::run, &call(9), &ask)
            .unwrap()
            .expect("changes nothing")
    };
    let get = IamRequest {
        user_id: user.id.clone(),
        ..op("get-user")
    };
    let kept = read(get).user.unwrap();
    assert!(kept.must_change_password);
    assert_eq!(
        UserRecord {
            must_change_password: false,
            ..kept
        },
        user
    );
    let own = IamRequest {
        api_key: minted.clone(),
        ..op("resolve-token")
    };
    assert_eq!(read(own).resolved_user_id, user.id, "by the same key");
    let list = IamRequest {
        user_id: user.id,
        ..op("list-api-keys")
    };
    assert_eq!(read(list).api_keys, [key.api_key.unwrap()]);
    let resolve = IamRequest {
        api_key: admin.bootstrap_admin_api_key.clone(),
        ..op("resolve-api-key")
    };
    assert_eq!(
        read(resolve).resolved_user_id,
        admin.bootstrap_admin_user_id
    );
    assert_eq!(read(op("list-workspaces")).workspaces.len(), 1);
    drop(service);

    for entry in std::fs::read_dir(dir.path()).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for secret in [
            &admin.bootstrap_admin_api_key,
            &key.api_key_plaintext,
            &minted,
            &temporary,
        ] {
            assert!(!text.contains(secret.as_str()));
        }
    }
}

#[tokio::test]
async fn a_change_that_is_refused_changes_nothing() {
    let service = in_memory().await;
    service
        .change(engine::run, &call(1), &op("bootstrap"))
        .await
        .unwrap();
    let again = service
        .change(engine::run, &call(2), &op("bootstrap"))
        .await;
    assert_eq!(again.unwrap_err().kind, "auth-failed");
    let users = service
        .read(engine::run, &call(3), &op("list-users"))
        .unwrap()
        .unwrap();
    assert_eq!(users.users.len(), 1);
}

async fn in_memory() -> CachedDirectory {
    let store = Arc::new(SqliteDirectory::in_memory(AuditBounds::default()).unwrap());
    CachedDirectory::load(store).await.unwrap()
}

fn workspace(operation: &str) -> IamRequest {
    IamRequest {
        workspace_record: Some(WorkspaceInput {
            id: "acme".into(),
            ..WorkspaceInput::default()
        }),
        ..op(operation)
    }
}

#[tokio::test]
async fn what_revokes_is_owed_until_it_is_told() {
    let service = in_memory().await;
    let change = async |n, operation: &str| {
        let ask = workspace(operation);
        let changed = service.change(engine::run, &call(n), &ask).await;
        changed.unwrap().1
    };
    assert_eq!(change(1, "create-workspace").await, None);
    assert_eq!(change(2, "disable-workspace").await, Some(1));
    assert_eq!(change(3, "enable-workspace").await, Some(2));
    service.told(1).await.unwrap();
    assert!(service.revocations().await.unwrap().are_owed());
    service.told(2).await.unwrap();
    assert!(!service.revocations().await.unwrap().are_owed());
}

#[tokio::test]
async fn a_restoration_that_fails_takes_back_only_what_is_still_its_own() {
    const RESTORE: &str = "restore-workspace";
    let service = in_memory().await;
    let run = async |n, operation: Operation, name: &str| {
        let ask = workspace(name);
        let changed = service.change(operation, &call(n), &ask).await;
        changed.unwrap();
    };
    let remove: Operation = |directory, _, ask| engine::remove(directory, ask);
    let there = || service.workspace(&workspace(RESTORE)).is_ok();
    run(1, engine::run, RESTORE).await;
    run(2, engine::not_restored, RESTORE).await;
    assert!(there(), "another question's");
    run(1, engine::not_restored, RESTORE).await;
    assert!(!there());
    // Somebody else made one of the name, changed it, or restores it too.
    for theirs in ["create-workspace", "enable-workspace", RESTORE] {
        run(3, engine::run, RESTORE).await;
        run(4, engine::run, theirs).await;
        run(3, engine::not_restored, RESTORE).await;
        assert!(there(), "{theirs}");
        run(5, remove, "delete-workspace").await;
    }
    // Or has a user in it.
    run(6, engine::run, RESTORE).await;
    let user = IamRequest {
        workspace: "acme".into(),
        user: Some(UserInput {
            username: "rita".into(),
            roles: vec!["reader".into()],
            ..UserInput::default()
        }),
        ..op("create-user")
    };
    let made = service.change(engine::run, &call(7), &user).await;
    made.unwrap();
    run(6, engine::not_restored, RESTORE).await;
    assert!(there());
    run(8, remove, "delete-workspace").await;
    // And one that is done stays.
    run(9, engine::run, RESTORE).await;
    run(9, engine::restored, RESTORE).await;
    run(9, engine::not_restored, RESTORE).await;
    assert!(there());
}
