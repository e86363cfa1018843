//! What the reaper sees of the configuration, at one moment.

use tg_mesh::config_view::ConfigView;
use tg_schemas::workspace_key::{REGISTRY, TOMBSTONE};
use tg_storage::ConfigKnown;

use crate::verdict::Stone;

/// The registry of workspaces as configuration has it.
pub(crate) trait Registry: Send + Sync {
    /// Which config store this is and at which version; `None` before the first read, and of a foreign one.
    fn config(&self) -> Option<ConfigKnown>;

    /// The tombstones of deleted workspaces.
    fn stones(&self) -> Vec<Stone>;
}

impl Registry for ConfigView {
    fn config(&self) -> Option<ConfigKnown> {
        let (version, identity) = (self.version(), self.store_identity()?);
        (version >= 0).then(|| ConfigKnown {
            identity: identity.to_string(),
            version,
        })
    }

    fn stones(&self) -> Vec<Stone> {
        let rows = self.values(REGISTRY, TOMBSTONE);
        rows.iter()
            .filter_map(|(name, value)| {
                Some((name.clone(), serde_json::from_slice(value.as_bytes()).ok()?))
            })
            .collect()
    }
}
