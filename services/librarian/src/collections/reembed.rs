//! Changing a collection to another embeddings model. The store of vectors does the work; who makes the new ones is the flow's
//! embeddings service.

use std::time::Duration;

use tg_clients::embeddings::model_now;
use tg_mesh::{Ask, Deadline, Mesh};
use tg_schemas::msg::{ReembedRequest, ReembedResponse, Reembedding};
use tg_schemas::processors::graph_embeddings_write::REEMBED;
use tg_schemas::{Error, ErrorCode, Topic, WorkspaceKey};

use crate::config::{self, COLLECTION, Config};
use crate::engine::collection as rules;
use crate::engine::fingerprints::ModelOf;
use crate::error::invalid;
use crate::librarian::Librarian;

/// How long the store, or who makes vectors, may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The flow whose model is meant where none is named.
const FLOW: &str = "default";

impl Librarian {
    /// Has the vectors of a collection made again by the model of a flow, or goes on with that. Returns how far it is.
    pub(crate) async fn reembed(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceKey,
        id: &str,
        flow: &str,
        leave_out: bool,
    ) -> Result<Reembedding, Error> {
        let flow = if flow.is_empty() { FLOW } else { flow };
        let topic = embeddings_of(mesh, workspace, flow)?;
        let parsed = Topic::parse(&topic)?;
        let model = model_now(mesh, &parsed, TIMEOUT).await?;
        let model = model.ok_or_else(|| {
            let text = format!("flow: the embeddings service of '{flow}' does not say its model");
            Error::new(ErrorCode::NotImplemented, text)
        })?;
        let asked = ReembedRequest {
            model,
            topic,
            leave_out,
            ..self.about(mesh, workspace, id, "begin").await?
        };
        ask(mesh, &asked).await
    }

    /// How far it is.
    pub(crate) async fn reembedding(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceKey,
        id: &str,
    ) -> Result<Reembedding, Error> {
        let asked = self.about(mesh, workspace, id, "show").await?;
        ask(mesh, &asked).await
    }

    /// Gives it up: the vectors that serve stay.
    pub(crate) async fn abandon_reembedding(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceKey,
        id: &str,
    ) -> Result<Reembedding, Error> {
        let asked = self.about(mesh, workspace, id, "abandon").await?;
        ask(mesh, &asked).await
    }

    async fn about(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceKey,
        id: &str,
        operation: &str,
    ) -> Result<ReembedRequest, Error> {
        rules::check(id)?;
        let row = Config::new(mesh, workspace)?.get(COLLECTION, id).await?;
        let row = row.ok_or_else(|| {
            let text = "collection: does not exist in this workspace";
            Error::new(ErrorCode::NotFound, text)
        })?;
        Ok(ReembedRequest {
            operation: operation.to_owned(),
            workspace: workspace.to_string(),
            collection: id.to_owned(),
            generation: rules::generation(&row),
            ..ReembedRequest::default()
        })
    }
}

/// Topic of the embeddings service that a flow's vectors come from.
fn embeddings_of(mesh: &Mesh, workspace: &WorkspaceKey, flow: &str) -> Result<String, Error> {
    let snapshot = config::snapshot(mesh, workspace.as_str(), flow);
    let snapshot = snapshot.filter(|found| found.flow.runs()).ok_or_else(|| {
        let text = format!("flow: '{flow}' does not run; start it first");
        Error::new(ErrorCode::NotFound, text)
    })?;
    let models = snapshot.sources.models().into_iter();
    let mut topics = models.filter_map(|of| match of {
        ModelOf::Embeddings(topic) => Some(topic),
        ModelOf::Completion(_) => None,
    });
    match (topics.next(), topics.next()) {
        (Some(topic), None) => Ok(topic),
        (None, _) => Err(invalid(format!("flow: '{flow}' makes no vectors"))),
        _ => Err(invalid(format!(
            "flow: '{flow}' makes vectors by several models"
        ))),
    }
}

async fn ask(mesh: &Mesh, question: &ReembedRequest) -> Result<Reembedding, Error> {
    let options = Ask {
        deadline: Some(Deadline::after(TIMEOUT)),
        ..Ask::default()
    };
    let asked = mesh.ask::<_, ReembedResponse>(&REEMBED.of_system(), question, options);
    Ok(asked.last().await?.reembedding.unwrap_or_default())
}
