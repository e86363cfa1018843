//! Configuration: rows asked for where it must be certain, the watched view where it may lag a moment.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub(crate) use tg_clients::config::COLLECTION;
use tg_mesh::Mesh;
pub(crate) use tg_schemas::flow_record::KIND as FLOW;
use tg_schemas::processors::{PROCESSORS, ProcessorScope, Role, processor, prompt, prompt_rag};
use tg_schemas::{Error, WorkspaceId, WorkspaceKey};

use crate::engine::fingerprints::{self, Sources};
use crate::engine::flow::Flow;
use crate::engine::readers::{self, FlowRef, Row, Wiring};
use crate::engine::workspace;

/// How long a question to the config service may take.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How long the view may take to show a change.
const SHOWN: Duration = Duration::from_secs(2);

/// The rows of one workspace, in the generation that its key says.
pub(crate) struct Config {
    config: tg_clients::config::Config,
    workspace: WorkspaceId,
}

impl Config {
    pub(crate) fn new(mesh: &Mesh, key: &WorkspaceKey) -> Result<Self, Error> {
        let workspace = workspace::id(key.as_str())?;
        let generation = key.generation();
        let config = tg_clients::config::Config::of_workspace(mesh, &workspace, generation);
        Ok(Self {
            config: config.patient(TIMEOUT),
            workspace,
        })
    }

    /// All rows of a type, by key.
    pub(crate) async fn values(&self, kind: &str) -> Result<BTreeMap<String, String>, Error> {
        self.config.values(&self.workspace, kind).await
    }

    /// One row.
    pub(crate) async fn get(&self, kind: &str, key: &str) -> Result<Option<String>, Error> {
        Ok(self.values(kind).await?.remove(key))
    }

    /// Writes a row.
    pub(crate) async fn put(&self, kind: &str, key: &str, value: String) -> Result<(), Error> {
        let at = (kind.to_owned(), key.to_owned());
        self.config.put(&self.workspace, [(at, value)]).await
    }

    /// Removes a row; none is fine.
    pub(crate) async fn delete(&self, kind: &str, key: &str) -> Result<(), Error> {
        let at = (kind.to_owned(), key.to_owned());
        self.config.delete(&self.workspace, [at]).await
    }
}

/// Config types that the librarian watches: flows, collections, the rows of whoever reads records, and what decides what
/// is made of chunks.
pub(crate) fn watched() -> &'static [&'static str] {
    static WATCHED: OnceLock<Vec<&'static str>> = OnceLock::new();
    WATCHED.get_or_init(|| {
        let reads = PROCESSORS.iter().filter(|known| {
            known.scope == ProcessorScope::Flow
                && known.wired().any(|spec| spec.role == Role::Reads)
        });
        // Once per process, as many as there are processors.
        // Of prompts it is known by whom which model is asked.
        let render = [prompt::PROCESSOR.id, prompt_rag::PROCESSOR.id];
        let ids = reads.map(|known| known.id).chain(render);
        let rows = ids.map(|id| &*Box::leak(format!("processor:{id}").into()));
        let rows: Vec<&'static str> = rows.collect();
        let all = [FLOW, COLLECTION].into_iter();
        all.chain(fingerprints::kinds()).chain(rows).collect()
    })
}

/// A flow with the rows of its workspace, as the view shows them.
pub(crate) struct Snapshot {
    pub(crate) flow: Flow,
    pub(crate) wiring: Wiring,
    /// Characters in a chunk and shared with the next, as far as the flow says.
    pub(crate) chunking: (Option<u64>, Option<u64>),
    /// Processors that ask a model about each chunk.
    pub(crate) extractors: Vec<String>,
    /// What decides what it makes of documents.
    pub(crate) sources: Sources,
}

impl Snapshot {
    /// Whether a processor reads the chunks of the flow.
    pub(crate) fn reads_chunks(&self, id: &str) -> bool {
        let mut readers = self.wiring.readers.iter();
        readers.any(|one| one.processor() == id && one.message() == "Chunk")
    }
}

/// Reads a flow from the view, by the key of its workspace; `None` if there is none.
pub(crate) fn snapshot(mesh: &Mesh, workspace: &str, id: &str) -> Option<Snapshot> {
    let workspace = WorkspaceKey::parse(workspace);
    let workspace = workspace.name();
    let flow = Flow::read(&mesh.config().get(workspace, FLOW, id)?)?;
    let kinds = watched()
        .iter()
        .filter_map(|kind| kind.strip_prefix("processor:"));
    let values: Vec<(&str, String, Arc<str>)> = kinds
        .flat_map(|processor| {
            let kind = format!("processor:{processor}");
            let rows = mesh.config().values(workspace, &kind);
            let rows = rows
                .iter()
                .map(|(variant, value)| (processor, variant.clone(), value.clone()));
            rows.collect::<Vec<_>>()
        })
        .collect();
    let rows: Vec<Row<'_>> = values
        .iter()
        .map(|(processor, variant, value)| Row {
            processor,
            variant,
            value,
        })
        .collect();
    let serves =
        |id: &str| processor(id).is_some_and(|known| known.hosted) || mesh.presence().hosted(id);
    let place = FlowRef {
        workspace,
        flow: id,
    };
    let chunker = rows
        .iter()
        .find(|row| row.processor == "chunker" && row.variant == id);
    let parameter = |name: &str| {
        chunker
            .and_then(|row| readers::parameter(row, name))
            .or_else(|| flow.number(name))
    };
    let wiring = readers::wiring(place, &flow, &rows, serves);
    let kinds = fingerprints::kinds().into_iter();
    let sources = Sources {
        rows: readers::own(place, &flow, &rows),
        readers: wiring.readers.clone(),
        config: kinds
            .map(|kind| (kind, mesh.config().values(workspace, kind)))
            .collect(),
    };
    Some(Snapshot {
        sources,
        chunking: (parameter("chunk-size"), parameter("chunk-overlap")),
        extractors: readers::extractors(place, &rows, serves)
            .map(str::to_owned)
            .collect(),
        wiring,
        flow,
    })
}

/// Waits (bounded) until something holds of the view.
pub(crate) async fn shown(mesh: &Mesh, holds: impl Fn() -> bool) -> bool {
    tg_clients::config::shown(mesh.config(), SHOWN, holds).await
}
