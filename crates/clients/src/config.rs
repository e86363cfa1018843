//! The config service: rows read, listed, written and removed, where it must be certain; where it may lag a moment,
//! the watched view is there ([`Watched`] is what it is read by). The only file that knows the service's operations.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use async_trait::async_trait;
use tg_mesh::config_view::Rows;
use tg_mesh::{ConfigSource, ConfigView, Cx, Mesh, Peer};
use tg_schemas::msg::{ConfigKey, ConfigPush, ConfigRequest, ConfigResponse, ConfigValue};
use tg_schemas::processors::config_svc::{CONFIG, CONFIG_OF_WORKSPACE};
use tg_schemas::workspace_key::REGISTRY;
use tg_schemas::{Class, Error, ErrorCode, Topic, WorkspaceId};

use crate::caller::{Caller, LARGEST_PAGE, goes_on};
use crate::neighbours::Neighbours;

/// Config type of the rows that say which workspaces there are.
pub const WORKSPACE: &str = "workspace";
/// Config type of collections.
pub const COLLECTION: &str = "collection";

/// How long one answer may take, where nobody waits for a shorter time.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A listing that changes while its pages are read is begun anew so often.
const BEGUN: usize = 4;

/// A key: type and name.
pub type Key = (String, String);

/// Asks the config service.
#[derive(Clone)]
pub struct Config {
    caller: Caller<ConfigRequest, ConfigResponse>,
    /// On the queue of one workspace, which no question names then.
    own: bool,
}

impl Config {
    /// Of all workspaces, on this process's own account.
    pub fn new(peer: &Peer) -> Self {
        Self {
            caller: Caller::of_system(peer, CONFIG).patient(TIMEOUT),
            own: false,
        }
    }

    /// Of one generation of a workspace, on this process's own account; what is said of the workspace in a question does
    /// not count. Of a generation that has ended nothing is read or written.
    pub fn of_workspace(mesh: &Mesh, workspace: &WorkspaceId, generation: i64) -> Self {
        let caller = Caller::of_workspace(mesh, CONFIG_OF_WORKSPACE, workspace);
        Self {
            caller: caller.patient(TIMEOUT).in_generation(workspace, generation),
            own: true,
        }
    }

    /// Of all workspaces, as part of the work on a message.
    pub fn within(cx: &Cx) -> Self {
        Self {
            caller: Caller::within(cx, Ok(CONFIG.of_system())),
            own: false,
        }
    }

    /// Each answer may take as long.
    pub fn patient(mut self, patience: Duration) -> Self {
        self.caller = self.caller.patient(patience);
        self
    }

    /// Questions end with the process.
    pub fn until_stopping(mut self, mesh: &Mesh) -> Self {
        self.caller = self.caller.until(mesh.stopping().clone());
        self
    }

    async fn ask(&self, request: ConfigRequest) -> Result<ConfigResponse, Error> {
        self.caller.last(&request).await
    }

    fn about(&self, operation: &str, workspace: impl Display) -> ConfigRequest {
        ConfigRequest {
            operation: operation.to_owned(),
            workspace: match self.own {
                true => String::new(),
                false => workspace.to_string(),
            },
            ..ConfigRequest::default()
        }
    }

    /// Values of keys, in order; `None` where there is none.
    ///
    /// # Errors
    /// How the question failed, as everywhere here.
    pub async fn get<const N: usize>(
        &self,
        workspace: impl Display,
        keys: [(&str, &str); N],
    ) -> Result<[Option<String>; N], Error> {
        let keys = keys.map(|(kind, key)| (kind.to_owned(), key.to_owned()));
        let mut found = self.get_all(workspace, keys.to_vec()).await?.into_iter();
        Ok(std::array::from_fn(|_| found.next().flatten()))
    }

    /// Values of keys, in order; `None` where there is none.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn get_all(
        &self,
        workspace: impl Display,
        keys: Vec<Key>,
    ) -> Result<Vec<Option<String>>, Error> {
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let request = ConfigRequest {
            keys: keys.into_iter().map(key).collect(),
            ..self.about("get", workspace)
        };
        // JSON text is never empty: an empty one stands for the null of a missing key.
        let present = |row: ConfigValue| Some(row.value).filter(|text| !text.is_empty());
        let values = self.ask(request).await?.values;
        Ok(values.into_iter().map(present).collect())
    }

    /// Names of all rows of a type.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn list(&self, workspace: impl Display, kind: &str) -> Result<Vec<String>, Error> {
        let request = ConfigRequest {
            r#type: kind.to_owned(),
            ..self.about("list", workspace)
        };
        Ok(self.pages(request).await?.directory)
    }

    /// All rows of a type.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn values(
        &self,
        workspace: impl Display,
        kind: &str,
    ) -> Result<BTreeMap<String, String>, Error> {
        let request = ConfigRequest {
            r#type: kind.to_owned(),
            ..self.about("getvalues", workspace)
        };
        let values = self.pages(request).await?.values;
        Ok(values.into_iter().map(|row| (row.key, row.value)).collect())
    }

    /// All rows of a type in all workspaces but the reserved ones: workspace, key, value.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn everywhere(&self, kind: &str) -> Result<Vec<(String, String, String)>, Error> {
        let request = ConfigRequest {
            r#type: kind.to_owned(),
            ..self.about("getvalues-all-ws", "")
        };
        let values = self.pages(request).await?.values.into_iter();
        Ok(values
            .filter(|row| !row.workspace.starts_with('_'))
            .map(|row| (row.workspace, row.key, row.value))
            .collect())
    }

    /// Reads a listing page by page and answers as if it had come as a whole. One that changes meanwhile is begun anew,
    /// a few times.
    async fn pages(&self, mut request: ConfigRequest) -> Result<ConfigResponse, Error> {
        // Who knows no pages answers as a whole; ours is asked for them there, too, where the whole is too large.
        request.limit = self.caller.page();
        'anew: for begun in 1.. {
            request.after.clear();
            let mut whole: Option<ConfigResponse> = None;
            loop {
                let answer = match self.ask(request.clone()).await {
                    Err(error) if request.limit == 0 && error.code() == ErrorCode::TooLarge => {
                        request.limit = LARGEST_PAGE;
                        continue 'anew;
                    }
                    answer => answer?,
                };
                let next = answer.next.clone();
                let whole = match &mut whole {
                    None => whole.insert(answer),
                    Some(whole) if whole.version != answer.version && begun < BEGUN => {
                        continue 'anew;
                    }
                    Some(whole) => {
                        join(whole, answer);
                        whole
                    }
                };
                if !goes_on(&mut request.after, next) {
                    return Ok(std::mem::take(whole));
                }
            }
        }
        Err(Error::new(ErrorCode::Internal, "a listing does not end"))
    }

    /// All rows of a workspace by type.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn whole(
        &self,
        workspace: impl Display,
    ) -> Result<BTreeMap<String, BTreeMap<String, String>>, Error> {
        Ok(self.pages(self.about("config", workspace)).await?.config)
    }

    /// Writes rows in one change.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn put(
        &self,
        workspace: impl Display,
        rows: impl IntoIterator<Item = (Key, String)>,
    ) -> Result<(), Error> {
        let row = |((kind, key), value)| ConfigValue {
            r#type: kind,
            key,
            value,
            ..ConfigValue::default()
        };
        let request = ConfigRequest {
            values: rows.into_iter().map(row).collect(),
            ..self.about("put", workspace)
        };
        self.ask(request).await.map(drop)
    }

    /// Removes rows in one change; none is fine.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn delete(
        &self,
        workspace: impl Display,
        keys: impl IntoIterator<Item = Key>,
    ) -> Result<(), Error> {
        let request = ConfigRequest {
            keys: keys.into_iter().map(key).collect(),
            ..self.about("delete", workspace)
        };
        self.ask(request).await.map(drop)
    }

    /// Registers a workspace: every service begins to serve it, a new one gets the template's rows.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn register(&self, workspace: &str) -> Result<(), Error> {
        let at = (WORKSPACE.to_owned(), workspace.to_owned());
        let row = (at, r#"{"enabled": true}"#.to_owned());
        self.put(REGISTRY, [row]).await
    }

    /// Removes a workspace from the registry. Its rows stay.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn deregister(&self, workspace: &str) -> Result<(), Error> {
        let at = (WORKSPACE.to_owned(), workspace.to_owned());
        self.delete(REGISTRY, [at]).await
    }

    /// Removes the rows of a workspace and its registration together.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn delete_workspace(&self, workspace: &str) -> Result<(), Error> {
        let request = self.about("delete-workspace", workspace);
        self.ask(request).await.map(drop)
    }

    /// Brings back what was kept of a deleted workspace, and its registration.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn restore_workspace(&self, workspace: &str) -> Result<(), Error> {
        let request = self.about("restore-workspace", workspace);
        self.ask(request).await.map(drop)
    }

    /// Has the version announced to everybody who watches.
    ///
    /// # Errors
    /// How the question failed.
    pub async fn announce(&self) -> Result<(), Error> {
        self.ask(self.about("announce", "")).await.map(drop)
    }
}

/// Adds a page to those before it.
fn join(whole: &mut ConfigResponse, page: ConfigResponse) {
    whole.version = whole.version.min(page.version);
    whole.values.extend(page.values);
    whole.directory.extend(page.directory);
    for (kind, rows) in page.config {
        whole.config.entry(kind).or_default().extend(rows);
    }
}

/// Where changes of the configuration are announced.
pub fn notices() -> Topic {
    Topic::system(Class::Notify, "config")
}

/// Announces a change of the configuration. A reader without keys is notified of every change.
///
/// # Errors
/// When the bus does not take it.
pub async fn announce(peer: &Peer, mut change: ConfigPush) -> Result<(), Error> {
    if !Neighbours::of(peer).read_keyed_notices() {
        change.keys.clear();
    }
    peer.notify(&notices(), &change).await
}

/// What a host reads its view of the configuration by.
#[derive(Debug, Clone, Copy)]
pub struct Watched;

#[async_trait]
impl ConfigSource for Watched {
    fn notices(&self) -> Topic {
        notices()
    }

    async fn rows(
        &self,
        peer: &Peer,
        kind: &str,
        patience: Duration,
    ) -> Result<(i64, BTreeMap<String, Rows>), Error> {
        let config = Config::new(peer).patient(patience);
        // The registry of workspaces stands in none of them.
        let (operation, reserved) = match kind == WORKSPACE {
            true => ("getvalues", Some(REGISTRY)),
            false => ("getvalues-all-ws", None),
        };
        let request = ConfigRequest {
            r#type: kind.to_owned(),
            ..config.about(operation, reserved.unwrap_or_default())
        };
        let whole = config.pages(request).await?;
        let mut rows: BTreeMap<String, Rows> = BTreeMap::new();
        for value in whole.values {
            let workspace = reserved.map_or(value.workspace, str::to_owned);
            let known = rows.entry(workspace).or_default();
            known.insert(value.key, value.value.into());
        }
        Ok((whole.version, rows))
    }

    async fn values(
        &self,
        peer: &Peer,
        workspace: &str,
        keys: &[Key],
        patience: Duration,
    ) -> Result<Vec<Option<String>>, Error> {
        let config = Config::new(peer).patient(patience);
        config.get_all(workspace, keys.to_vec()).await
    }
}

fn key((kind, key): Key) -> ConfigKey {
    ConfigKey { r#type: kind, key }
}

/// Waits (bounded) until something holds of the watched view, which may lag a moment behind who asks.
pub async fn shown(view: &ConfigView, patience: Duration, holds: impl Fn() -> bool) -> bool {
    let mut changes = view.changes();
    let wait = async {
        loop {
            changes.borrow_and_update();
            if holds() || changes.changed().await.is_err() {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(patience, wait).await;
    holds()
}
