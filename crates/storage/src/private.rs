//! Who of the machine may read a store: its owner, also where an earlier release or another program left it open.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What SQLite has beside a database; made with its mode.
const BESIDE: [&str; 3] = ["", "-wal", "-shm"];

/// Closes what is there of a database to others.
pub(crate) fn close(database: &Path) {
    for ending in BESIDE {
        let mut name = database.as_os_str().to_owned();
        name.push(ending);
        let file = PathBuf::from(name);
        let Ok(now) = file.metadata() else { continue };
        let mode = now.permissions().mode();
        if mode & 0o077 == 0 {
            continue;
        }
        if let Err(fault) = std::fs::set_permissions(&file, Permissions::from_mode(mode & !0o077)) {
            tracing::warn!(%fault, "others may read a store");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Database, Durability};

    #[test]
    fn a_store_is_its_owners_also_where_it_was_not() {
        const MIGRATIONS: &[&str] = &["CREATE TABLE a (b)"];
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x.sqlite");
        let closed = || {
            for ending in BESIDE {
                let name = dir.path().join(format!("x.sqlite{ending}"));
                let mode = name.metadata().unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{ending}");
            }
        };
        let open = Database::open(&file, MIGRATIONS, Durability::Process).unwrap();
        closed();
        drop(open);
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let _open = Database::open(&file, MIGRATIONS, Durability::Process).unwrap();
        closed();
    }
}
