//! What the flow service asks of the config service. Flow records, blueprints and processor rows live there.

use std::collections::BTreeMap;
use std::time::Duration;

use tg_mesh::{Ask, Deadline, Mesh};
use tg_schemas::msg::{ConfigKey, ConfigRequest, ConfigResponse, ConfigValue};
use tg_schemas::{Class, Error, Topic, WorkspaceId};

/// Config type of flow records.
pub(crate) const FLOW: &str = "flow";
/// Config type of blueprints.
pub(crate) const BLUEPRINT: &str = "flow-blueprint";
/// Config type of parameter types.
pub(crate) const PARAMETER_TYPE: &str = "parameter-type";
/// Config type of processors that people add.
pub(crate) const PROCESSOR_SPEC: &str = "processor-spec";
/// Config types of processor rows begin so.
pub(crate) const PROCESSOR: &str = "processor:";

const PATIENCE: Duration = Duration::from_secs(30);

/// A key: type and name.
pub(crate) type Key = (String, String);

/// Asks the config service.
#[derive(Clone)]
pub(crate) struct Config {
    mesh: Mesh,
}

impl Config {
    pub(crate) fn new(mesh: &Mesh) -> Self {
        Self { mesh: mesh.clone() }
    }

    /// Values of keys, in order; `None` where there is none.
    pub(crate) async fn get<const N: usize>(
        &self,
        workspace: &WorkspaceId,
        keys: [(&str, &str); N],
    ) -> Result<[Option<String>; N], Error> {
        let keys = keys.map(|(kind, key)| (kind.to_owned(), key.to_owned()));
        let mut found = self.get_all(workspace, keys.to_vec()).await?.into_iter();
        Ok(std::array::from_fn(|_| found.next().flatten()))
    }

    /// Values of keys, in order; `None` where there is none.
    pub(crate) async fn get_all(
        &self,
        workspace: &WorkspaceId,
        keys: Vec<Key>,
    ) -> Result<Vec<Option<String>>, Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let reply = self
            .ask(ConfigRequest {
                operation: "get".to_owned(),
                workspace: workspace.to_string(),
                keys: keys.into_iter().map(key).collect(),
                ..ConfigRequest::default()
            })
            .await?;
        // JSON text is never empty: an empty one stands for the null of a missing key.
        let present = |row: ConfigValue| Some(row.value).filter(|text| !text.is_empty());
        Ok(reply.values.into_iter().map(present).collect())
    }

    /// Names of all rows of a type.
    pub(crate) async fn list(
        &self,
        workspace: &WorkspaceId,
        kind: &str,
    ) -> Result<Vec<String>, Error> {
        let request = ConfigRequest {
            operation: "list".to_owned(),
            workspace: workspace.to_string(),
            r#type: kind.to_owned(),
            ..ConfigRequest::default()
        };
        Ok(self.ask(request).await?.directory)
    }

    /// All rows of a type.
    pub(crate) async fn values(
        &self,
        workspace: &WorkspaceId,
        kind: &str,
    ) -> Result<BTreeMap<String, String>, Error> {
        let request = ConfigRequest {
            operation: "getvalues".to_owned(),
            workspace: workspace.to_string(),
            r#type: kind.to_owned(),
            ..ConfigRequest::default()
        };
        let values = self.ask(request).await?.values;
        Ok(values.into_iter().map(|row| (row.key, row.value)).collect())
    }

    /// All rows of a type in all workspaces but the reserved ones: workspace, key, value.
    pub(crate) async fn everywhere(
        &self,
        kind: &str,
    ) -> Result<Vec<(String, String, String)>, Error> {
        let request = ConfigRequest {
            operation: "getvalues-all-ws".to_owned(),
            r#type: kind.to_owned(),
            ..ConfigRequest::default()
        };
        let values = self.ask(request).await?.values;
        Ok(values
            .into_iter()
            .filter(|row| !row.workspace.starts_with('_'))
            .map(|row| (row.workspace, row.key, row.value))
            .collect())
    }

    /// All rows of a workspace by type.
    pub(crate) async fn whole(
        &self,
        workspace: &WorkspaceId,
    ) -> Result<BTreeMap<String, BTreeMap<String, String>>, Error> {
        let request = ConfigRequest {
            operation: "config".to_owned(),
            workspace: workspace.to_string(),
            ..ConfigRequest::default()
        };
        Ok(self.ask(request).await?.config)
    }

    /// Writes rows in one change.
    pub(crate) async fn put(
        &self,
        workspace: &WorkspaceId,
        rows: impl IntoIterator<Item = (Key, String)>,
    ) -> Result<(), Error> {
        let values = rows
            .into_iter()
            .map(|((kind, key), value)| ConfigValue {
                r#type: kind,
                key,
                value,
                ..ConfigValue::default()
            })
            .collect();
        let request = ConfigRequest {
            operation: "put".to_owned(),
            workspace: workspace.to_string(),
            values,
            ..ConfigRequest::default()
        };
        self.ask(request).await.map(|_| ())
    }

    /// Removes rows in one change.
    pub(crate) async fn delete(
        &self,
        workspace: &WorkspaceId,
        keys: impl IntoIterator<Item = Key>,
    ) -> Result<(), Error> {
        let request = ConfigRequest {
            operation: "delete".to_owned(),
            workspace: workspace.to_string(),
            keys: keys.into_iter().map(key).collect(),
            ..ConfigRequest::default()
        };
        self.ask(request).await.map(|_| ())
    }

    async fn ask(&self, request: ConfigRequest) -> Result<ConfigResponse, Error> {
        let topic = Topic::system(Class::Request, "config");
        let options = Ask {
            deadline: Some(Deadline::after(PATIENCE)),
            ..Ask::default()
        };
        self.mesh.ask(&topic, &request, options).last().await
    }
}

fn key((kind, key): Key) -> ConfigKey {
    ConfigKey { r#type: kind, key }
}
