//! Brings a fresh system to life: the template that new workspaces start from, the workspace `default`,
//! and its running flow `default`.
//!
//! Each step leaves a flag in the configuration and is skipped once it is there: a workspace or flow that
//! people removed stays removed. Every step may be repeated after a crash.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tg_mesh::{Ask, Deadline, Mesh};
use tg_schemas::msg::{
    ConfigKey, ConfigRequest, ConfigResponse, ConfigValue, FlowRequest, FlowResponse,
};
use tg_schemas::{Class, Error, Message, Reply, Topic, WorkspaceId, records};
use tokio::time::Instant;

use crate::engine::{REGISTRY, TEMPLATE, WORKSPACE_TYPE};

/// What new workspaces start with: type → key → value. The values are written as JSON text.
#[derive(Debug, Clone, Default)]
pub struct Seed {
    /// Rows by type and key.
    pub types: BTreeMap<String, BTreeMap<String, Value>>,
}

/// Reserved: which steps are done.
const STATE: &str = "__system__";
const STATE_TYPE: &str = "init-state";

/// The workspace and flow that a fresh system has.
const DEFAULT: &str = "default";
/// The blueprint of the first flow.
const BLUEPRINT: &str = "everything";

/// Rows in one write.
const BATCH: usize = 256;
/// One question.
const ASK: Duration = Duration::from_secs(30);
/// How long a service may take to appear.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause before a service that is not there yet is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// Seeds what is missing. Waits (bounded) for the config and flow services to serve.
pub async fn bootstrap(mesh: &Mesh, seed: Seed) -> Result<(), Error> {
    keep_schemas(mesh).await?;
    seed_template(mesh, &seed).await?;
    create_workspace(mesh).await?;
    start_flow(mesh).await
}

/// Keeps the schemas of this release's records beside those of releases before: what waits in queues or is put aside
/// through an upgrade is read with them.
async fn keep_schemas(mesh: &Mesh) -> Result<(), Error> {
    let ours = records::schemas();
    let mark: Vec<&str> = ours.iter().map(|schema| &*schema.fingerprint).collect();
    let mark = mark.join(" ");
    if flag(mesh, "record-schemas").await?.as_deref() == Some(mark.as_str()) {
        return Ok(());
    }
    let rows = ours.into_iter().map(|schema| ConfigValue {
        r#type: records::TYPE.into(),
        key: schema.fingerprint,
        value: schema.text.into(),
        ..ConfigValue::default()
    });
    put(mesh, records::WORKSPACE, rows.collect()).await?;
    set_flag(mesh, "record-schemas", &mark).await
}

async fn seed_template(mesh: &Mesh, seed: &Seed) -> Result<(), Error> {
    let mark = fingerprint(seed);
    let done = flag(mesh, "template-seed").await?;
    if done.as_deref() == Some(mark.as_str()) {
        return Ok(());
    }
    let present = config(
        mesh,
        ConfigRequest {
            operation: "config".into(),
            workspace: TEMPLATE.into(),
            ..ConfigRequest::default()
        },
    )
    .await?
    .config;
    // A later release adds what is missing and leaves what people changed.
    let has = |kind: &str, key: &str| present.get(kind).is_some_and(|keys| keys.contains_key(key));
    let missing: Vec<ConfigValue> = rows(seed)
        .filter(|row| done.is_none() || !has(&row.r#type, &row.key))
        .collect();
    for batch in missing.chunks(BATCH) {
        put(mesh, TEMPLATE, batch.to_vec()).await?;
    }
    set_flag(mesh, "template-seed", &mark).await
}

async fn create_workspace(mesh: &Mesh) -> Result<(), Error> {
    if flag(mesh, "default-workspace").await?.is_some() {
        return Ok(());
    }
    if get(mesh, REGISTRY, WORKSPACE_TYPE, DEFAULT)
        .await?
        .is_none()
    {
        let row = ConfigValue {
            r#type: WORKSPACE_TYPE.into(),
            key: DEFAULT.into(),
            value: r#"{"enabled": true}"#.into(),
            ..ConfigValue::default()
        };
        put(mesh, REGISTRY, vec![row]).await?;
    }
    set_flag(mesh, "default-workspace", "v1").await
}

async fn start_flow(mesh: &Mesh) -> Result<(), Error> {
    if flag(mesh, "default-flow").await?.is_some() {
        return Ok(());
    }
    let list = FlowRequest {
        operation: "list-flows".into(),
        ..FlowRequest::default()
    };
    let running = flow(mesh, list).await?.flow_ids;
    if !running.iter().any(|id| id == DEFAULT) {
        let start = FlowRequest {
            operation: "start-flow".into(),
            flow_id: DEFAULT.into(),
            blueprint_name: BLUEPRINT.into(),
            description: "The flow of a fresh system".into(),
            ..FlowRequest::default()
        };
        flow(mesh, start).await?;
    }
    set_flag(mesh, "default-flow", "v1").await
}

fn rows(seed: &Seed) -> impl Iterator<Item = ConfigValue> {
    seed.types.iter().flat_map(|(kind, keys)| {
        keys.iter().map(|(key, value)| ConfigValue {
            r#type: kind.clone(),
            key: key.clone(),
            value: value.to_string(),
            ..ConfigValue::default()
        })
    })
}

/// Tells one seed from another (FNV-1a): a changed seed is looked at again.
fn fingerprint(seed: &Seed) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for row in rows(seed) {
        for text in [&row.r#type, &row.key, &row.value] {
            for byte in text.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    format!("{hash:016x}")
}

async fn flag(mesh: &Mesh, name: &str) -> Result<Option<String>, Error> {
    let value = get(mesh, STATE, STATE_TYPE, name).await?;
    Ok(value.map(|text| serde_json::from_str(&text).unwrap_or(text)))
}

async fn set_flag(mesh: &Mesh, name: &str, mark: &str) -> Result<(), Error> {
    let row = ConfigValue {
        r#type: STATE_TYPE.into(),
        key: name.into(),
        value: Value::from(mark).to_string(),
        ..ConfigValue::default()
    };
    put(mesh, STATE, vec![row]).await
}

async fn get(mesh: &Mesh, workspace: &str, kind: &str, key: &str) -> Result<Option<String>, Error> {
    let ask = ConfigRequest {
        operation: "get".into(),
        workspace: workspace.into(),
        keys: vec![ConfigKey {
            r#type: kind.into(),
            key: key.into(),
        }],
        ..ConfigRequest::default()
    };
    let values = config(mesh, ask).await?.values;
    // JSON text is never empty: an empty one stands for the null of a missing key.
    Ok(values
        .into_iter()
        .next()
        .map(|row| row.value)
        .filter(|value| !value.is_empty()))
}

async fn put(mesh: &Mesh, workspace: &str, values: Vec<ConfigValue>) -> Result<(), Error> {
    let ask = ConfigRequest {
        operation: "put".into(),
        workspace: workspace.into(),
        values,
        ..ConfigRequest::default()
    };
    config(mesh, ask).await.map(|_| ())
}

async fn config(mesh: &Mesh, ask: ConfigRequest) -> Result<ConfigResponse, Error> {
    ask_patiently(mesh, &Topic::system(Class::Request, "config"), &ask).await
}

async fn flow(mesh: &Mesh, ask: FlowRequest) -> Result<FlowResponse, Error> {
    let workspace = WorkspaceId::new(DEFAULT)?;
    let topic = Topic::workspace(Class::Request, "flow", &workspace);
    ask_patiently(mesh, &topic, &ask).await
}

/// Asks again, for a while, when the service is not there yet.
async fn ask_patiently<Q: Message, R: Reply>(
    mesh: &Mesh,
    topic: &Topic,
    question: &Q,
) -> Result<R, Error> {
    let until = Instant::now() + PATIENCE;
    loop {
        let options = Ask {
            deadline: Some(Deadline::after(ASK)),
            ..Ask::default()
        };
        match mesh.ask::<Q, R>(topic, question, options).last().await {
            Err(error) if error.code().is_transient() && Instant::now() < until => {
                tracing::debug!(%error, "bootstrap waits for a service");
                tokio::time::sleep(PAUSE).await;
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_told_from_a_changed_one_and_written_as_json_text() {
        let mut seed = Seed::default();
        let prompts = seed.types.entry("prompt".into()).or_default();
        prompts.insert("system".into(), Value::from("Be brief."));
        let first = fingerprint(&seed);
        assert_eq!(first, fingerprint(&seed.clone()));
        assert_eq!(rows(&seed).next().unwrap().value, "\"Be brief.\"");
        seed.types
            .entry("tool".into())
            .or_default()
            .insert("a".into(), Value::from(1));
        assert_ne!(first, fingerprint(&seed));
    }
}
