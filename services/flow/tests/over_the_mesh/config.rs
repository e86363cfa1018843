//! A config service in memory, kept in a file so that it outlives the processes of a test.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_mesh::{Cx, Processor, RequestHandler, Responder};
use tg_schemas::msg::{ConfigPush, ConfigRequest, ConfigResponse, ConfigValue};
use tg_schemas::processors;
use tg_schemas::{Class, Error, Topic};

use crate::bus::Fuse;

type Rows = BTreeMap<(String, String, String), String>;

/// Rows by workspace, type and key.
#[derive(Clone)]
pub struct FakeConfig {
    rows: Arc<Mutex<(i64, Rows)>>,
    file: PathBuf,
}

impl FakeConfig {
    pub fn open(file: PathBuf) -> Self {
        let text = std::fs::read(&file).unwrap_or_default();
        let kept: (i64, Vec<_>) = serde_json::from_slice(&text).unwrap_or_default();
        let rows = (kept.0, kept.1.into_iter().collect());
        Self {
            rows: Arc::new(Mutex::new(rows)),
            file,
        }
    }

    fn save(&self, rows: &(i64, Rows)) {
        let text = serde_json::to_vec(&(rows.0, rows.1.iter().collect::<Vec<_>>())).expect("JSON");
        let new = self.file.with_extension("new");
        std::fs::write(&new, text).expect("a file");
        std::fs::rename(&new, &self.file).expect("a file");
    }

    pub fn set(&self, workspace: &str, kind: &str, key: &str, value: &str) {
        let name = (workspace.to_owned(), kind.to_owned(), key.to_owned());
        let mut rows = self.rows.lock();
        rows.1.insert(name, value.to_owned());
        self.save(&rows);
    }

    pub fn get(&self, workspace: &str, kind: &str, key: &str) -> Option<String> {
        let name = (workspace.to_owned(), kind.to_owned(), key.to_owned());
        self.rows.lock().1.get(&name).cloned()
    }

    pub fn count(&self, prefix: &str) -> usize {
        self.rows
            .lock()
            .1
            .keys()
            .filter(|key| key.1.starts_with(prefix))
            .count()
    }

    pub fn processor(&self, fuse: Fuse) -> Processor {
        let server = Arc::new(Server {
            config: self.clone(),
            fuse,
        });
        Processor::new(processors::config_svc::PROCESSOR)
            .serves(processors::config_svc::CONFIG, server)
            .exclusive()
    }

    fn answer(&self, request: &ConfigRequest) -> (ConfigResponse, Option<ConfigPush>) {
        let mut state = self.rows.lock();
        let (version, rows) = &mut *state;
        let value = |workspace: &str, kind: &str, key: &str, value: &str| ConfigValue {
            workspace: workspace.to_owned(),
            r#type: kind.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let mut reply = ConfigResponse {
            version: *version,
            ..ConfigResponse::default()
        };
        let mut changed = Vec::new();
        let name =
            |kind: &str, key: &str| (request.workspace.clone(), kind.to_owned(), key.to_owned());
        for ((ws, kind, key), text) in rows.iter() {
            let here = *ws == request.workspace;
            match request.operation.as_str() {
                "list" if here && *kind == request.r#type => reply.directory.push(key.clone()),
                "getvalues" if here && *kind == request.r#type => {
                    reply.values.push(value(ws, kind, key, text));
                }
                "getvalues-all-ws" if *kind == request.r#type => {
                    reply.values.push(value(ws, kind, key, text));
                }
                "config" if here => {
                    reply
                        .config
                        .entry(kind.clone())
                        .or_default()
                        .insert(key.clone(), text.clone());
                }
                _ => {}
            }
        }
        match request.operation.as_str() {
            "get" => {
                for key in &request.keys {
                    let text = rows
                        .get(&name(&key.r#type, &key.key))
                        .cloned()
                        .unwrap_or_default();
                    reply.values.push(value("", &key.r#type, &key.key, &text));
                }
            }
            "put" => {
                for row in &request.values {
                    rows.insert(name(&row.r#type, &row.key), row.value.clone());
                    changed.push(value(&request.workspace, &row.r#type, &row.key, ""));
                }
            }
            "delete" => {
                for key in &request.keys {
                    rows.remove(&name(&key.r#type, &key.key));
                    changed.push(value(&request.workspace, &key.r#type, &key.key, ""));
                }
            }
            _ => {}
        }
        if changed.is_empty() {
            return (reply, None);
        }
        *version += 1;
        let version = *version;
        self.save(&state);
        let mut push = ConfigPush {
            version,
            ..ConfigPush::default()
        };
        for row in &changed {
            push.changes
                .entry(row.r#type.clone())
                .or_default()
                .push(request.workspace.clone());
        }
        push.keys = changed;
        (reply, Some(push))
    }
}

struct Server {
    config: FakeConfig,
    fuse: Fuse,
}

#[async_trait]
impl RequestHandler<ConfigRequest, ConfigResponse> for Server {
    async fn serve(
        &self,
        cx: Cx,
        request: ConfigRequest,
        mut out: Responder<ConfigResponse>,
    ) -> Result<(), Error> {
        let writes = matches!(request.operation.as_str(), "put" | "delete");
        if writes {
            self.fuse.burn();
        }
        let (reply, push) = self.config.answer(&request);
        if let Some(push) = push {
            cx.mesh
                .notify(&Topic::system(Class::Notify, "config"), &push)
                .await?;
        }
        if writes {
            self.fuse.burn();
        }
        out.send(reply).await
    }
}
