//! A config service that keeps its rows in memory, for tests of the runtime.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_mesh::{Cx, Mesh, Processor, RequestHandler, Responder};
use tg_schemas::msg::{ConfigKey, ConfigPush, ConfigRequest, ConfigResponse, ConfigValue};
use tg_schemas::processors;
use tg_schemas::{Class, Error, Topic};

type Rows = BTreeMap<(String, String, String), String>;

/// The rows, by workspace, type and key.
#[derive(Default)]
pub struct FakeConfig(Mutex<(i64, Rows)>);

impl FakeConfig {
    /// Hosts it.
    pub async fn host(mesh: &tg_mesh::Host) -> Arc<Self> {
        let fake = Arc::new(Self::default());
        mesh.host(
            Processor::new(processors::config_svc::PROCESSOR)
                .serves(processors::config_svc::CONFIG, fake.clone()),
        )
        .await
        .unwrap();
        fake
    }

    /// Writes or removes a row and tells everybody.
    pub async fn put(
        &self,
        mesh: &Mesh,
        workspace: &str,
        kind: &str,
        key: &str,
        value: Option<&str>,
    ) {
        let version = {
            let mut state = self.0.lock();
            let row = (workspace.to_owned(), kind.to_owned(), key.to_owned());
            match value {
                Some(value) => state.1.insert(row, value.to_owned()),
                None => state.1.remove(&row),
            };
            state.0 += 1;
            state.0
        };
        let push = ConfigPush {
            version,
            changes: BTreeMap::from([(kind.to_owned(), vec![workspace.to_owned()])]),
            ..ConfigPush::default()
        };
        mesh.notify(&Topic::system(Class::Notify, "config"), &push)
            .await
            .unwrap();
    }
}

#[async_trait]
impl RequestHandler<ConfigRequest, ConfigResponse> for FakeConfig {
    async fn serve(
        &self,
        _cx: Cx,
        ask: ConfigRequest,
        mut out: Responder<ConfigResponse>,
    ) -> Result<(), Error> {
        let response = {
            let state = self.0.lock();
            let values = state
                .1
                .iter()
                .filter(|((ws, kind, key), _)| {
                    let named = |at: &ConfigKey| at.r#type == *kind && at.key == *key;
                    (*kind == ask.r#type || ask.keys.iter().any(named))
                        && (ask.workspace.is_empty() || *ws == ask.workspace)
                })
                .map(|((ws, kind, key), value)| ConfigValue {
                    workspace: ws.clone(),
                    r#type: kind.clone(),
                    key: key.clone(),
                    value: value.clone(),
                })
                .collect();
            ConfigResponse {
                version: state.0,
                values,
                ..ConfigResponse::default()
            }
        };
        out.send(response).await
    }
}
