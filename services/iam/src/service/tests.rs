//! The service with its store: what survives, and what is never on the disk.

use chrono::DateTime;
use tg_schemas::msg::{ApiKeyInput, UserInput};
use tg_storage::Durability;

use super::*;
use crate::engine::Fresh;
use crate::secret::ApiKey;

fn call(n: u8) -> Call {
    Call {
        now: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
        question: format!("q{n}"),
        vouched: true,
        fresh: Fresh {
            user_id: format!("u{n}"),
            key_id: format!("k{n}"),
            key: ApiKey::from_random([n; 24]),
        },
    }
}

fn op(operation: &str) -> IamRequest {
    IamRequest {
        operation: operation.into(),
        ..IamRequest::default()
    }
}

#[tokio::test]
async fn users_keys_and_workspaces_survive_a_restart_and_no_key_is_on_the_disk() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("iam.sqlite");
    let open = || Store::open(&file, Durability::Process).unwrap();
    let service = Service::load(open()).await.unwrap();
    let change = async |n: u8, ask: &IamRequest| service.change(engine::run, &call(n), ask).await;
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
        }),
        ..op("create-api-key")
    };
    let key = change(3, &key).await.unwrap();
    drop(service);

    let service = Service::load(open()).await.unwrap();
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
    assert_eq!(read(get).user.unwrap(), user);
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
        for secret in [&admin.bootstrap_admin_api_key, &key.api_key_plaintext] {
            assert!(!text.contains(secret.as_str()));
        }
    }
}

#[tokio::test]
async fn a_change_that_is_refused_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("iam.sqlite"), Durability::Process).unwrap();
    let service = Service::load(store).await.unwrap();
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
