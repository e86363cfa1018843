//! One workspace of a copy: each store keeps that one and deletes what does not provably belong to it. A store that is not
//! listed here refuses the backup.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, bail};
use tg_schemas::{WorkspaceId, WorkspaceKey};
use tg_storage::OneWorkspace;

use super::copying::Copying;
use super::places::{CONFIG, CONTENT, LIBRARY, SESSIONS};
use crate::guarded;

/// The stores that hold all workspaces in one file.
pub(super) const STORES: [(&str, OneWorkspace); 12] = [
    ("agent.db", tg_agent::store::ONE_WORKSPACE),
    ("agent_sessions.sqlite", tg_sessions::store::ONE_WORKSPACE),
    (CONFIG, tg_config::ONE_WORKSPACE),
    ("extract.sqlite", tg_extract::store::ONE_WORKSPACE),
    ("flow.sqlite", tg_flow::ONE_WORKSPACE),
    ("graph.sqlite", tg_graph::store::embedded::ONE_WORKSPACE),
    ("iam.sqlite", tg_iam::ONE_WORKSPACE),
    (
        "keywords.sqlite",
        tg_vectors::store::keywords::ONE_WORKSPACE,
    ),
    ("knowledge.sqlite", tg_knowledge::ONE_WORKSPACE),
    (LIBRARY, tg_librarian::ONE_WORKSPACE),
    ("rows.sqlite", tg_rows::store::sqlite::ONE_WORKSPACE),
    ("vectors.sqlite", tg_vectors::store::points::ONE_WORKSPACE),
];

/// The key of a workspace in a data directory, or in a copy of one.
///
/// # Errors
/// The directory has no configuration, or there is no such workspace.
pub(super) fn key_of(dir: &Path, workspace: &WorkspaceId) -> Result<WorkspaceKey> {
    let config = dir.join(CONFIG);
    if !config.exists() {
        bail!(
            "data_dir: no configuration is here, which says what belongs to a workspace; one workspace can be backed up \
             where all services have the same data directory"
        );
    }
    let key = tg_config::workspace_key(&config, workspace.as_str());
    key.with_context(|| format!("cannot read {CONFIG}"))?
        .with_context(|| format!("workspace: there is no workspace {workspace}"))
}

/// Leaves one workspace in a copy whose stores are all there. Of other files only the mark of access control is copied.
pub(super) fn keep(copying: &mut Copying<'_>, workspace: &WorkspaceId) -> Result<()> {
    let key = key_of(copying.to(), workspace)?;
    let sessions = Path::new(SESSIONS).join(tg_sessions::store::file_name(key.as_str()));
    for path in copying.copied() {
        if path.starts_with(CONTENT) || path == sessions {
            continue;
        }
        if path.starts_with(SESSIONS) {
            copying.remove(&path)?;
            continue;
        }
        let known = STORES.iter().find(|(file, _)| path == Path::new(file));
        let Some((file, store)) = known else {
            bail!(
                "this release does not know how to keep one workspace of {}",
                path.display()
            );
        };
        store
            .keep(&copying.place(&path)?, &key)
            .with_context(|| format!("cannot keep {workspace} alone in {file}"))?;
        copying.written(&path)?;
    }
    content(copying)?;
    copying.copy(Path::new(guarded::MARK))
}

/// Removes the content that the library does not speak for any more.
fn content(copying: &mut Copying<'_>) -> Result<()> {
    let library = copying.to().join(LIBRARY);
    let kept = match library.exists() {
        true => tg_librarian::files_of_content(&library)
            .with_context(|| format!("cannot read {LIBRARY}"))?,
        false => BTreeSet::new(),
    };
    for path in copying.copied() {
        if path.starts_with(CONTENT) && !kept.contains(&hash(&path)) {
            copying.remove(&path)?;
        }
    }
    Ok(())
}

/// The hash that names a file of content: its folder has the first two digits, the file the others.
fn hash(path: &Path) -> String {
    let parts = path.iter().skip(1);
    parts.filter_map(|part| part.to_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another workspace, and all that it wrote.
    const MARKER: &str = "zq7-another";

    #[test]
    fn no_store_keeps_a_byte_of_another_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let key = WorkspaceKey::new("acme", 7);
        for (name, store) in STORES {
            let file = dir.path().join(name);
            // What verifies the heads of traces belongs to no workspace.
            let filled = store.fill(&file, MARKER, &["head_key_before"]);
            let kept = filled.and_then(|()| store.keep(&file, &key));
            assert_eq!(kept, Ok(()), "{name}");
            let bytes = std::fs::read(&file).unwrap();
            let mut parts = bytes.windows(MARKER.len());
            assert!(!parts.any(|part| part == MARKER.as_bytes()), "{name}");
        }
    }
}
