//! How many bytes wait on disk of each workspace, and how many may: half of the disk's bound, so that one that is full is in
//! no other's way.
//!
//! What others led to has more room than what is new, and the more the further it is from that: however full a workspace is,
//! what is handled finds room for what it leads to, so that what waits comes to an end.

use std::collections::HashMap;
use std::sync::Arc;

use tg_schemas::Headers;

use super::record::RecordState;

/// Of the bound of the disk, one workspace has this part.
const WORKSPACE_PART: u64 = 2;
/// What is this far from what was new has a workspace's whole part.
const FAR: u32 = 8;

/// Bytes that wait, by workspace. Those of none do not count: they are the system's own, and dead letters on their way, which
/// have quotas of their own.
#[derive(Default)]
pub(super) struct Waiting {
    /// What one workspace may have.
    each: u64,
    /// As many as have records that wait.
    bytes: HashMap<Arc<str>, u64>,
}

impl Waiting {
    /// On a disk with so many bytes.
    pub(super) fn new(disk: u64) -> Self {
        Self {
            each: disk / WORKSPACE_PART,
            bytes: HashMap::new(),
        }
    }

    /// Whether a record of so many bytes has room. One that is tried again was let in before, and counts in the quota of dead
    /// letters until then.
    pub(super) fn has_room(&self, headers: &Headers, bytes: usize) -> bool {
        let Some(workspace) = headers.workspace.as_deref() else {
            return true;
        };
        if headers.attempt.is_some() {
            return true;
        }
        let far = headers.depth.unwrap_or(0).min(FAR);
        let most = self.each - (self.each >> (far + 1));
        let own = self.bytes.get(workspace).copied().unwrap_or(0);
        own.saturating_add(bytes as u64) <= most
    }

    /// A workspace's name, as it is shared by its records.
    pub(super) fn name(&self, headers: &Headers) -> Option<Arc<str>> {
        let workspace = headers.workspace.as_deref()?;
        let known = self.bytes.get_key_value(workspace);
        Some(known.map_or_else(|| workspace.into(), |(name, _)| name.clone()))
    }

    pub(super) fn add(&mut self, record: &RecordState) {
        if let Some(workspace) = &record.workspace {
            *self.bytes.entry(workspace.clone()).or_default() += u64::from(record.place.length);
        }
    }

    pub(super) fn remove(&mut self, record: &RecordState) {
        let Some(workspace) = &record.workspace else {
            return;
        };
        if let Some(bytes) = self.bytes.get_mut(workspace) {
            *bytes = bytes.saturating_sub(u64::from(record.place.length));
            if *bytes == 0 {
                self.bytes.remove(workspace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::record::Position;

    fn of(workspace: &str, depth: u32) -> Headers {
        Headers {
            workspace: Some(workspace.to_owned()),
            depth: (depth > 0).then_some(depth),
            ..Headers::default()
        }
    }

    #[test]
    fn what_is_new_is_refused_before_what_it_leads_to() {
        let mut waiting = Waiting::new(4096);
        let mut record = RecordState {
            workspace: waiting.name(&of("acme", 0)),
            place: Position {
                length: 1000,
                ..Position::default()
            },
            ..RecordState::default()
        };
        waiting.add(&record);
        assert!(waiting.has_room(&of("acme", 0), 24), "of 1,024");
        assert!(!waiting.has_room(&of("acme", 0), 25));
        assert!(waiting.has_room(&of("acme", 1), 500), "of 1,536");
        assert!(!waiting.has_room(&of("acme", 1), 600));
        assert!(waiting.has_room(&of("acme", 99), 1040), "of 2,044");
        assert!(!waiting.has_room(&of("acme", 99), 1050));
        let again = Headers {
            attempt: Some(1),
            ..of("acme", 0)
        };
        assert!(waiting.has_room(&again, 4000), "it was let in before");
        assert!(waiting.has_room(&Headers::default(), 4000));
        assert!(
            waiting.has_room(&of("other", 0), 1024),
            "others have theirs"
        );
        let same = waiting.name(&of("acme", 0)).unwrap();
        assert!(Arc::ptr_eq(&same, record.workspace.as_ref().unwrap()));
        waiting.remove(&record);
        assert!(waiting.bytes.is_empty());
        record.workspace = None;
        waiting.add(&record);
        assert!(waiting.bytes.is_empty());
    }
}
