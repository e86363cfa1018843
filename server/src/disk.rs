//! Whether there is room below `data_dir`. The process looks every few seconds and notifies all processes when that changes, so that
//! readiness, `tg doctor` and `tg why` report a full disk, and not only the write that fails. It deletes and refuses nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tg_mesh::{Host, TaskKind};

/// With less room than this, the next write of a store or of the bus may fail: a page of each, and a piece of the log.
const LEAST: u64 = 4 << 20;
/// Pause between two looks.
const PAUSE: Duration = Duration::from_secs(5);

/// Looks until the process stops.
pub fn watch(mesh: &Host, data_dir: PathBuf) {
    let inner = mesh.clone();
    mesh.spawn(TaskKind::Background, async move {
        let stopping = inner.stopping().clone();
        tokio::select! {
            () = look(&inner, &data_dir) => {}
            () = stopping.cancelled() => {}
        }
    });
}

async fn look(mesh: &Host, data_dir: &Path) {
    let mut full = false;
    loop {
        let dir = data_dir.to_owned();
        let free = tokio::task::spawn_blocking(move || free(&dir)).await;
        if let Ok(Some(free)) = free {
            metrics::gauge!("tg_disk_free_bytes").set(free as f64);
            if let Some(changed) = change(full, free) {
                full = changed;
                match full {
                    true => tracing::error!(free, "data_dir: the disk is full"),
                    false => tracing::info!(free, "data_dir: there is room again"),
                }
                tg_mesh::tell_disk(mesh, full).await;
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Bytes that this account may still write; `None` where the file system does not say.
fn free(data_dir: &Path) -> Option<u64> {
    let told = rustix::fs::statvfs(data_dir).ok()?;
    told.f_bavail.checked_mul(told.f_frsize)
}

/// Whether the disk is full now, if that is not what it was.
fn change(was_full: bool, free: u64) -> Option<bool> {
    let full = free < LEAST;
    (full != was_full).then_some(full)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_reported_when_that_changes_and_never_again_meanwhile() {
        let looks = [LEAST, LEAST - 1, 0, 0, LEAST - 1, LEAST, u64::MAX];
        let mut full = false;
        let told = looks.map(|free| {
            let changed = change(full, free);
            full = changed.unwrap_or(full);
            changed
        });
        let expected = [None, Some(true), None, None, None, Some(false), None];
        assert_eq!(told, expected);
    }

    #[test]
    fn the_room_of_a_directory_is_known() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(free(dir.path()).is_some_and(|free| free > 0));
        assert_eq!(free(&dir.path().join("nothing")), None);
    }
}
