//! What was kept under access control is not opened to everybody by a flag that was left out.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::settings::{Auth, Settings};

/// The file that says of a data directory that it was served under access control.
const MARK: &str = "auth-iam";

/// Marks the data directory where access is controlled; elsewhere refuses one that is marked, unless it was named.
///
/// # Errors
/// The directory was served under access control and is not to be any more, or its mark cannot be read or written.
pub(crate) fn check(settings: &Settings) -> Result<()> {
    let dir = &settings.data_dir;
    let mark = dir.join(MARK);
    let marked = (mark.try_exists()).with_context(|| format!("data_dir: {}", dir.display()))?;
    match (settings.auth, marked) {
        (Auth::Iam, true) | (Auth::None, false) => Ok(()),
        (Auth::Iam, false) => std::fs::write(&mark, "Served with auth = iam.\n")
            .with_context(|| format!("data_dir: cannot write in {}", dir.display())),
        (Auth::None, true) if settings.open_data.as_deref().is_some_and(|named| same(named, dir)) => {
            tracing::warn!(
                "everybody on this machine may do everything with what was kept under access control in {}",
                dir.display()
            );
            Ok(())
        }
        (Auth::None, true) => bail!(
            "data_dir: {0} was served under access control, and everybody on this machine could do everything with it now; \
             start it with --auth iam, or name it: --open-data {0}",
            dir.display()
        ),
    }
}

fn same(named: &Path, dir: &Path) -> bool {
    let whole = |path: &Path| path.canonicalize().ok();
    whole(dir).is_some_and(|dir| whole(named) == Some(dir))
}
