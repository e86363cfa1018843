//! The rows in memory with their store: restarts and writes at the same time.

use parking_lot::Mutex as Shared;
use tg_schemas::msg::{ConfigKey, ConfigValue};

use super::*;
use crate::store::SqliteStore;

#[derive(Default)]
struct RecordedPushes(Shared<Vec<ConfigPush>>);

#[async_trait]
impl Notices for RecordedPushes {
    async fn tell(&self, push: ConfigPush) {
        self.0.lock().push(push);
    }
}

fn put(workspace: &str, rows: &[(&str, &str, &str)]) -> Write {
    let values = rows
        .iter()
        .map(|(kind, key, value)| ConfigValue {
            r#type: (*kind).into(),
            key: (*key).into(),
            value: (*value).into(),
            ..ConfigValue::default()
        })
        .collect();
    Write::Put(workspace.into(), values)
}

fn config(service: &CachedConfig, workspace: &str) -> ConfigReply {
    let ask = ConfigRequest {
        operation: "config".into(),
        ..ConfigRequest::default()
    };
    service.read(ReadScope::Workspace(workspace), &ask).unwrap()
}

#[tokio::test]
async fn what_was_written_is_there_after_a_restart_and_the_version_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.sqlite");
    let told = RecordedPushes::default();
    let open = || Arc::new(SqliteStore::open(&file, tg_storage::Durability::Process).unwrap());
    let service = CachedConfig::load(open(), &Options::default())
        .await
        .unwrap();
    service
        .write(
            put("acme", &[("tool", "a", "1"), ("tool", "b", "2")]),
            &told,
        )
        .await
        .unwrap();
    let delete = Write::Delete(
        "acme".into(),
        vec![ConfigKey {
            r#type: "tool".into(),
            key: "a".into(),
        }],
    );
    service.write(delete, &told).await.unwrap();
    let before = config(&service, "acme");
    drop(service);
    let service = CachedConfig::load(open(), &Options::default())
        .await
        .unwrap();
    assert_eq!(config(&service, "acme"), before);
    let versions: Vec<i64> = told.0.lock().iter().map(|push| push.version).collect();
    assert_eq!(versions, [before.version - 1, before.version]);
}

#[tokio::test]
async fn concurrent_writes_are_told_once_each_in_order() {
    let service = CachedConfig::load(
        Arc::new(SqliteStore::in_memory().unwrap()),
        &Options::default(),
    )
    .await
    .unwrap();
    let told = RecordedPushes::default();
    let keys: Vec<String> = (0..40).map(|n| format!("k{n}")).collect();
    let writes = keys
        .iter()
        .map(|key| service.write(put("acme", &[("tool", key, "1")]), &told));
    for result in futures::future::join_all(writes).await {
        result.unwrap();
    }
    let versions: Vec<i64> = told.0.lock().iter().map(|push| push.version).collect();
    assert_eq!(versions.len(), 40);
    assert!(versions.windows(2).all(|pair| pair[1] == pair[0] + 1));
    assert_eq!(config(&service, "acme").config["tool"].len(), 40);
}
