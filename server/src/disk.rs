//! Whether there is room below `data_dir`: looked at every few seconds, and told to all processes when it changes, so that
//! readiness and `tg doctor` say so and not only the one write that fails. It deletes nothing and refuses nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tg_mesh::{Host, TaskKind};

/// With less than this, what a store or the bus writes next may not fit: a page of each, and a piece of the log.
const LEAST: u64 = 4 << 20;
/// Pause between two looks.
const LOOK: Duration = Duration::from_secs(5);
/// Looks between two lines of the log while it is full: one a minute.
const LINES: u32 = 12;

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
    let mut told = Told::default();
    loop {
        let dir = data_dir.to_owned();
        let free = tokio::task::spawn_blocking(move || free(&dir)).await;
        if let Ok(Some(free)) = free {
            metrics::gauge!("tg_disk_free_bytes").set(free as f64);
            let now = told.next(free);
            if let Some(full) = now.changed {
                tg_mesh::tell_disk(mesh, full).await;
            }
            match (now.says, free < LEAST) {
                (true, true) => tracing::error!(left = free, "data_dir: the disk is full"),
                (true, false) => tracing::info!(left = free, "data_dir: there is room again"),
                (false, _) => {}
            }
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Bytes that this account may still write; `None` where the file system does not say.
fn free(data_dir: &Path) -> Option<u64> {
    let told = rustix::fs::statvfs(data_dir).ok()?;
    told.f_bavail.checked_mul(told.f_frsize)
}

/// What was told last.
#[derive(Debug, Default)]
struct Told {
    full: bool,
    /// Looks since the log said so.
    silent: u32,
}

/// What is to be told now.
#[derive(Debug, PartialEq, Eq)]
struct Now {
    /// To everybody.
    changed: Option<bool>,
    /// To the log.
    says: bool,
}

impl Told {
    fn next(&mut self, free: u64) -> Now {
        let full = free < LEAST;
        let changed = full != self.full;
        self.full = full;
        self.silent = match changed || self.silent + 1 >= LINES {
            true => 0,
            false => self.silent + 1,
        };
        Now {
            changed: changed.then_some(full),
            says: changed || full && self.silent == 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_once_and_logged_once_a_minute() {
        let mut told = Told::default();
        let quiet = Now {
            changed: None,
            says: false,
        };
        let change = |full| Now {
            changed: Some(full),
            says: true,
        };
        assert_eq!(told.next(LEAST), quiet, "there is room at the start");
        assert_eq!(told.next(LEAST - 1), change(true));
        let looks: Vec<Now> = (0..24).map(|_| told.next(0)).collect();
        assert!(looks.iter().all(|now| now.changed.is_none()));
        assert_eq!(looks.iter().filter(|now| now.says).count(), 2, "{looks:?}");
        assert_eq!(told.next(LEAST), change(false));
        assert_eq!(
            (0..24).map(|_| told.next(LEAST)).find(|now| *now != quiet),
            None
        );
    }

    #[test]
    fn the_room_of_a_directory_is_known() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(free(dir.path()).is_some_and(|free| free > 0));
        assert_eq!(free(&dir.path().join("nothing")), None);
    }
}
