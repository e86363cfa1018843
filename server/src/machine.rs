//! What the machine has for this process: file descriptors, as many as the system lets it have, and some that
//! connections never take; and who of the machine may read what this process keeps.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files, pipes and the bus need so many at least.
const RESERVE: u64 = 512;

/// Raises the soft limit to the hard one; how many there are now. `None`: as many as wanted.
pub fn raise() -> Option<u64> {
    let now = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => now.maximum,
        Err(fault) => {
            tracing::warn!(%fault, "the limit of file descriptors cannot be raised");
            now.current
        }
    }
}

/// How many connections there may be, so that a reserve is left: half of a small limit.
pub fn connections(limit: Option<u64>, wanted: usize) -> usize {
    let Some(limit) = limit else { return wanted };
    let room = limit.saturating_sub(RESERVE).max(limit / 2).max(1);
    usize::try_from(room).map_or(wanted, |room| room.min(wanted))
}

/// What this process makes from now on only its owner may read: stores hold hashes of passwords, and keys that sign.
pub fn keep_to_itself() {
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Closes a directory of data that was there to others: one that this program filled, or that is empty.
pub fn close(data_dir: &Path) {
    let own = ["config.sqlite", "iam.sqlite"]
        .iter()
        .any(|one| data_dir.join(one).exists());
    let empty = || {
        data_dir
            .read_dir()
            .is_ok_and(|mut all| all.next().is_none())
    };
    let Ok(now) = data_dir.metadata() else { return };
    let mode = now.permissions().mode();
    if mode & 0o077 == 0 || !(own || empty()) {
        return;
    }
    if let Err(fault) = std::fs::set_permissions(data_dir, Permissions::from_mode(mode & !0o077)) {
        tracing::warn!(%fault, "others may look into data_dir");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_of_ours_is_closed_and_another_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let mode = || dir.path().metadata().unwrap().permissions().mode() & 0o777;
        let open = || std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        open();
        close(dir.path());
        assert_eq!(mode(), 0o700);
        open();
        std::fs::write(dir.path().join("notes.txt"), "").unwrap();
        close(dir.path());
        assert_eq!(mode(), 0o755);
        std::fs::write(dir.path().join("iam.sqlite"), "").unwrap();
        close(dir.path());
        assert_eq!(mode(), 0o700);
    }

    #[test]
    fn a_reserve_is_left() {
        assert_eq!(connections(None, 4096), 4096);
        assert_eq!(connections(Some(1 << 20), 4096), 4096);
        assert_eq!(connections(Some(4096), 4096), 3584);
        assert_eq!(connections(Some(256), 4096), 128);
    }
}
