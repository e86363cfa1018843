//! What the machine has for this process: file descriptors, as many as the system lets it have, and some that
//! connections never take.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserve_is_left() {
        assert_eq!(connections(None, 4096), 4096);
        assert_eq!(connections(Some(1 << 20), 4096), 4096);
        assert_eq!(connections(Some(4096), 4096), 3584);
        assert_eq!(connections(Some(256), 4096), 128);
    }
}
