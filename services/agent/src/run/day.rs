//! Which day it is.

use tg_mesh::clock;

/// The day in UTC, `YYYY-MM-DD`.
pub(crate) fn today() -> String {
    clock::rfc3339().chars().take(10).collect()
}
