//! Operations on blueprints.

use tg_clients::neighbours::Neighbours;
use tg_mesh::Mesh;
use tg_schemas::msg::{FlowRequest, FlowResponse};
use tg_schemas::{Error, WorkspaceId, processors};

use super::Service;
use crate::config::{BLUEPRINT, Config, FLOW, PROCESSOR_SPEC, names};
use crate::engine::blueprint::Blueprint;
use crate::engine::catalog::Catalog;
use crate::engine::check::check;
use crate::engine::validation::ValidationErrors;
use crate::error::{bad, conflict, known};
use crate::handlers::reply;
use tg_schemas::flow_record::FlowRecord;

impl Service {
    pub(crate) async fn list_blueprints(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let page = names(mesh, workspace, BLUEPRINT, request).await?;
        Ok(FlowResponse {
            blueprint_names: page.entries,
            next: page.next,
            ..FlowResponse::default()
        })
    }

    pub(crate) async fn get_blueprint(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let name = blueprint_name(request)?;
        let [text] = Config::new(mesh)
            .get(workspace, [(BLUEPRINT, name)])
            .await?;
        let blueprint_definition = text.ok_or_else(|| known("Blueprint does not exist"))?;
        Ok(FlowResponse {
            blueprint_definition,
            ..FlowResponse::default()
        })
    }

    pub(crate) async fn put_blueprint(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let name = blueprint_name(request)?;
        let definition = &request.blueprint_definition;
        let faults = self.faults(mesh, workspace, name, definition).await?;
        if !faults.is_empty() {
            return Err(bad(format!("blueprint-definition: {}", faults.text())));
        }
        let row = ((BLUEPRINT.to_owned(), name.to_owned()), definition.clone());
        Config::new(mesh).put(workspace, [row]).await?;
        Ok(FlowResponse::default())
    }

    pub(crate) async fn delete_blueprint(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let name = blueprint_name(request)?;
        let config = Config::new(mesh);
        // No start may take the blueprint between the look and the deletion.
        let _names = self.names.write().await;
        let flows = config.values(workspace, FLOW).await?;
        let uses =
            |text: &str| FlowRecord::read(text).is_some_and(|flow| flow.blueprint_name == name);
        let users: Vec<&str> = flows
            .iter()
            .filter(|(_, text)| uses(text))
            .map(|(id, _)| id.as_str())
            .take(5)
            .collect();
        if !users.is_empty() {
            let text = format!(
                "Blueprint is in use by flow {}; stop it first",
                users.join(", ")
            );
            return Err(conflict(text));
        }
        config
            .delete(workspace, [(BLUEPRINT.to_owned(), name.to_owned())])
            .await?;
        Ok(FlowResponse::default())
    }

    /// The faults of a definition, or of the stored blueprint if none is given. Stores nothing.
    pub(crate) async fn check_blueprint(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        request: &FlowRequest,
    ) -> Result<FlowResponse, Error> {
        let name = blueprint_name(request)?;
        let stored = if request.blueprint_definition.is_empty() {
            self.get_blueprint(mesh, workspace, request)
                .await?
                .blueprint_definition
        } else {
            request.blueprint_definition.clone()
        };
        let faults = self.faults(mesh, workspace, name, &stored).await?;
        Ok(reply::with("faults", &faults.list()))
    }

    async fn faults(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        name: &str,
        definition: &str,
    ) -> Result<ValidationErrors, Error> {
        let (blueprint, _) = Blueprint::parse(definition);
        let catalog = self.catalog(mesh, workspace, &blueprint).await?;
        Ok(check(name, definition, &catalog))
    }

    /// The processors that a blueprint may name. Rows are read only if it names others than the table's.
    pub(super) async fn catalog(
        &self,
        mesh: &Mesh,
        workspace: &WorkspaceId,
        blueprint: &Blueprint,
    ) -> Result<Catalog, Error> {
        let foreign = !Neighbours::of(mesh).say_what_they_serve();
        let unknown = |id: &str| processors::processor(id).is_none();
        if !blueprint
            .entries
            .iter()
            .any(|entry| unknown(&entry.processor))
        {
            return Ok(Catalog::new([], foreign));
        }
        let rows = Config::new(mesh).values(workspace, PROCESSOR_SPEC).await?;
        Ok(Catalog::new(
            rows.iter().map(|(id, text)| (id.as_str(), text.as_str())),
            foreign,
        ))
    }
}

pub(super) fn blueprint_name(request: &FlowRequest) -> Result<&str, Error> {
    match request.blueprint_name.as_str() {
        "" => Err(known("No blueprint name")),
        name => Ok(name),
    }
}
