//! A workspace in one of its generations: what stores keep data under; and the rows by which the config service
//! says which generation is the present one and which have ended.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Reserved workspace of the config service: the registry of workspaces.
pub const REGISTRY: &str = "__workspaces__";
/// Type of the registry's rows that say which workspaces there are: key is the workspace.
pub const REGISTERED: &str = "workspace";
/// Type of the registry's rows that say generations: key is the workspace, value a number. Kept while the
/// workspace is disabled.
pub const GENERATION: &str = "generation";
/// Type of the registry's rows that say deletions: key is the workspace, value a [`WorkspaceTombstone`].
pub const TOMBSTONE: &str = "tombstone";
/// Type of the registry's row that says which config store this is.
pub const STORE: &str = "store";
/// Key of that row; its value is a text that is made with the store.
pub const IDENTITY: &str = "identity";

/// A deletion: every generation of the name up to this one has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct WorkspaceTombstone {
    /// The last generation that ended.
    pub generation: i64,
    /// When it was deleted, milliseconds since the Unix epoch.
    pub deleted_at: i64,
    /// From when on its data may be purged, milliseconds since the Unix epoch; until then it can be restored.
    pub purge_after: i64,
}

/// Stands between name and generation; no workspace id contains it.
const MARK: char = '#';

/// A workspace's name with the generation that it got when it was created. A name that is given again after a
/// deletion is another workspace. The text form is the plain name for generation 0, else `name#generation`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspaceKey {
    text: Arc<str>,
    /// Length of the name within the text.
    name: usize,
    generation: i64,
}

impl WorkspaceKey {
    /// Names a workspace in a generation; a negative one counts as 0.
    pub fn new(name: &str, generation: i64) -> Self {
        let generation = generation.max(0);
        let text = match generation {
            0 => name.into(),
            later => format!("{name}{MARK}{later}").into(),
        };
        Self {
            text,
            name: name.len(),
            generation,
        }
    }

    /// Reads the text form. What does not end with a generation is the name in generation 0.
    pub fn parse(text: &str) -> Self {
        let split = text.rsplit_once(MARK);
        let later = split.and_then(|(name, number)| Some((name, number.parse::<i64>().ok()?)));
        match later {
            Some((name, generation)) if generation > 0 => Self::new(name, generation),
            _ => Self::new(text, 0),
        }
    }

    /// The text form: what stores keep as the workspace.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The workspace's name.
    pub fn name(&self) -> &str {
        self.text.get(..self.name).unwrap_or_default()
    }

    /// The generation; 0 is the first one of a system and what was kept before there were generations.
    pub fn generation(&self) -> i64 {
        self.generation
    }
}

impl fmt::Display for WorkspaceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_names_one_key_and_the_first_generation_is_the_plain_name() {
        for (name, generation, text) in [("acme", 0, "acme"), ("acme", 7, "acme#7")] {
            let key = WorkspaceKey::new(name, generation);
            assert_eq!(
                (key.as_str(), key.name(), key.generation()),
                (text, name, generation)
            );
            assert_eq!(WorkspaceKey::parse(text), key);
        }
        assert_eq!(WorkspaceKey::new("a", -3), WorkspaceKey::new("a", 0));
        assert_eq!(WorkspaceKey::parse("a#x").name(), "a#x");
        assert_ne!(WorkspaceKey::new("a", 1), WorkspaceKey::new("a", 2));
    }
}
