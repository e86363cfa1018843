//! Brings a fresh system to life: the template that new workspaces start from, the workspace `default`,
//! and its running flow `default`.
//!
//! Each step leaves a flag in the configuration and is skipped once it is there: a workspace or flow that
//! people removed stays removed. Every step may be repeated after a crash.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tg_clients::config::{Config, Key};
use tg_clients::flows::Flows;
use tg_mesh::Mesh;
use tg_schemas::{Error, WorkspaceId, records};
use tokio::time::Instant;

use crate::engine::{REGISTRY, TEMPLATE, WORKSPACE_TYPE};

/// What new workspaces start with: type → key → value. The values are written as JSON text.
#[derive(Debug, Clone, Default)]
pub struct Seed {
    /// Rows by type and key.
    pub types: BTreeMap<String, BTreeMap<String, Value>>,
}

/// A row, its value as JSON text.
type Row = (Key, String);

/// Reserved: which steps are done.
const STATE: &str = "__system__";
const STATE_TYPE: &str = "init-state";

/// Row of a workspace, by type and key, that says with which agents it begins.
const AGENT_SEED: (&str, &str) = ("agent-seed", "templates");

/// The workspace and flow that a fresh system has.
const DEFAULT: &str = "default";
/// The blueprint of the first flow.
const BLUEPRINT: &str = "everything";

/// Rows in one write.
const BATCH: usize = 256;
/// One question to the flow service.
const ASK: Duration = Duration::from_secs(30);
/// How long a service may take to appear.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Pause before a service that is not there yet is asked again.
const PAUSE: Duration = Duration::from_millis(50);

/// Seeds what is missing. Waits (bounded) for the config and flow services to serve.
///
/// # Errors
/// A service does not serve within the bound or refuses a row. What was seeded stays; bootstrapping again goes on with the rest.
pub async fn bootstrap(mesh: &Mesh, seed: Seed) -> Result<(), Error> {
    keep_schemas(mesh).await?;
    seed_template(mesh, &seed).await?;
    create_workspace(mesh).await?;
    start_flow(mesh).await
}

/// Keeps the schemas of this release's records beside those of releases before: what waits in queues or becomes a dead letter
/// through an upgrade is read with them.
async fn keep_schemas(mesh: &Mesh) -> Result<(), Error> {
    let ours = records::schemas();
    let mark: Vec<&str> = ours.iter().map(|schema| &*schema.fingerprint).collect();
    let mark = mark.join(" ");
    if flag(mesh, "record-schemas").await?.as_deref() == Some(mark.as_str()) {
        return Ok(());
    }
    let rows = ours.into_iter().map(|schema| {
        let at = (records::TYPE.to_owned(), schema.fingerprint);
        (at, schema.text.to_owned())
    });
    let rows: Vec<Row> = rows.collect();
    put(mesh, records::WORKSPACE, &rows).await?;
    set_flag(mesh, "record-schemas", &mark).await
}

async fn seed_template(mesh: &Mesh, seed: &Seed) -> Result<(), Error> {
    let mark = fingerprint(seed);
    let done = flag(mesh, "template-seed").await?;
    if done.as_deref() == Some(mark.as_str()) {
        return Ok(());
    }
    let config = Config::new(mesh);
    let present = patiently(|| config.whole(TEMPLATE)).await?;
    // A later release adds what is missing and leaves what people changed.
    let has = |kind: &str, key: &str| present.get(kind).is_some_and(|keys| keys.contains_key(key));
    let missing: Vec<Row> = rows(seed)
        .filter(|((kind, key), _)| done.is_none() || !has(kind, key))
        .collect();
    for batch in missing.chunks(BATCH) {
        put(mesh, TEMPLATE, batch).await?;
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
        let config = Config::new(mesh);
        patiently(|| config.register(DEFAULT)).await?;
        // Nobody asked for this workspace: it begins without agents.
        let none = (
            (AGENT_SEED.0.to_owned(), AGENT_SEED.1.to_owned()),
            "[]".to_owned(),
        );
        put(mesh, DEFAULT, &[none]).await?;
    }
    set_flag(mesh, "default-workspace", "v1").await
}

async fn start_flow(mesh: &Mesh) -> Result<(), Error> {
    if flag(mesh, "default-flow").await?.is_some() {
        return Ok(());
    }
    let flows = Flows::new(mesh, &WorkspaceId::new(DEFAULT)?).patient(ASK);
    let running = patiently(|| flows.list()).await?;
    if !running.iter().any(|id| id == DEFAULT) {
        let start = || flows.start(DEFAULT, BLUEPRINT, "Started with the system");
        patiently(start).await?;
    }
    set_flag(mesh, "default-flow", "v1").await
}

fn rows(seed: &Seed) -> impl Iterator<Item = Row> {
    seed.types.iter().flat_map(|(kind, keys)| {
        let row =
            |(key, value): (&String, &Value)| ((kind.clone(), key.clone()), value.to_string());
        keys.iter().map(row)
    })
}

/// Tells one seed from another (FNV-1a): a changed seed is looked at again.
fn fingerprint(seed: &Seed) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for ((kind, key), value) in rows(seed) {
        for text in [&kind, &key, &value] {
            for byte in text.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    format!("{hash:016x}")
}

async fn flag(mesh: &Mesh, name: &str) -> Result<Option<String>, Error> {
    let value = get(mesh, STATE, STATE_TYPE, name).await?;
    Ok(value.map(|text| serde_json::from_slice(text.as_bytes()).unwrap_or(text)))
}

async fn set_flag(mesh: &Mesh, name: &str, mark: &str) -> Result<(), Error> {
    let at = (STATE_TYPE.to_owned(), name.to_owned());
    put(mesh, STATE, &[(at, Value::from(mark).to_string())]).await
}

async fn get(mesh: &Mesh, workspace: &str, kind: &str, key: &str) -> Result<Option<String>, Error> {
    let config = Config::new(mesh);
    let [value] = patiently(|| config.get(workspace, [(kind, key)])).await?;
    Ok(value)
}

async fn put(mesh: &Mesh, workspace: &str, rows: &[Row]) -> Result<(), Error> {
    let config = Config::new(mesh);
    patiently(|| config.put(workspace, rows.to_vec())).await
}

/// Asks again, for a while, when the service is not there yet.
async fn patiently<T, F: Future<Output = Result<T, Error>>>(
    ask: impl Fn() -> F,
) -> Result<T, Error> {
    let until = Instant::now() + TIMEOUT;
    loop {
        match ask().await {
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
        assert_eq!(rows(&seed).next().unwrap().1, "\"Be brief.\"");
        seed.types
            .entry("tool".into())
            .or_default()
            .insert("a".into(), Value::from(1));
        assert_ne!(first, fingerprint(&seed));
    }
}
