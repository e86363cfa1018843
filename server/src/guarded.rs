//! What was kept under access control is not opened to everybody by a flag that was left out.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::settings::{Auth, Settings};

/// The file that says of a data directory that it was served under access control.
pub(crate) const MARK: &str = "auth-iam";

/// Refuses a data directory that was served under access control and is not to be any more, unless it was named.
///
/// # Errors
/// It is refused, or its mark cannot be looked for.
pub(crate) fn check(settings: &Settings) -> Result<()> {
    let dir = &settings.data_dir;
    let marked = dir.join(MARK).try_exists();
    let marked = marked.with_context(|| format!("data_dir: {}", dir.display()))?;
    if settings.auth == Auth::Iam || !marked {
        return Ok(());
    }
    if settings
        .open_data
        .as_deref()
        .is_some_and(|named| same(named, dir))
    {
        tracing::warn!(
            "everybody on this machine may do everything with what was kept under access control in {}",
            dir.display()
        );
        return Ok(());
    }
    bail!(
        "data_dir: {0} was served under access control, and everybody on this machine could do everything with it now; \
         start it with --auth iam, or name it: --open-data {0}",
        dir.display()
    )
}

/// Marks the data directory of who serves under access control; to be called once it is theirs.
///
/// # Errors
/// It cannot be written.
pub(crate) fn mark(settings: &Settings) -> Result<()> {
    let mark = settings.data_dir.join(MARK);
    if settings.auth == Auth::None || mark.exists() {
        return Ok(());
    }
    std::fs::write(&mark, "Served with auth = iam.\n")
        .with_context(|| format!("data_dir: cannot write in {}", settings.data_dir.display()))
}

fn same(named: &Path, dir: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().ok();
    whole(dir).is_some_and(|dir| whole(named) == Some(dir))
}
