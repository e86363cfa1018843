//! Which tombstones count, and whether any does: the rules of the reaper, without clock or store.

use tg_schemas::{WorkspaceKey, WorkspaceTombstone};
use tg_storage::ConfigKnown;

/// Whether the configuration in view is the one that a store has known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is, or the store has known none before.
    Known,
    /// It comes from another config store: the known one was lost or is elsewhere.
    Another,
    /// It comes from an older state of the known one.
    Older,
}

impl Verdict {
    pub(crate) fn of(known: Option<&ConfigKnown>, now: &ConfigKnown) -> Self {
        match known {
            None => Self::Known,
            Some(known) if known.identity != now.identity => Self::Another,
            Some(known) if known.version > now.version => Self::Older,
            Some(_) => Self::Known,
        }
    }

    /// Why nothing is purged; `None`: it may be.
    pub(crate) fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Known => None,
            Self::Another => Some("the configuration is another one than this store knew"),
            Self::Older => Some("the configuration is older than this store knew it"),
        }
    }
}

/// How long after its time a tombstone is acted upon, in milliseconds: whoever restores a workspace at the last moment
/// has another clock than who purges it, and who purges sees the restoration a moment later.
const MARGIN: i64 = 10 * 60 * 1000;

/// When a tombstone's data may go. One that left no time to restore leaves nothing to wait for.
fn purged_from(stone: &WorkspaceTombstone) -> i64 {
    if stone.purge_after <= stone.deleted_at {
        return stone.purge_after;
    }
    stone.purge_after.saturating_add(MARGIN)
}

/// A tombstone with the name it stands for.
pub(crate) type Stone = (String, WorkspaceTombstone);

/// The tombstones whose time has come, and when the next one's comes.
pub(crate) fn due(stones: Vec<Stone>, now: i64) -> (Vec<Stone>, Option<i64>) {
    let (due, later): (Vec<Stone>, Vec<Stone>) = stones
        .into_iter()
        .partition(|(_, stone)| purged_from(stone) <= now);
    let next = later.iter().map(|(_, stone)| purged_from(stone)).min();
    (due, next)
}

/// Those of a store's keys that a tombstone says have ended. A key that no tombstone names stays, whatever the
/// registry of workspaces says.
pub(crate) fn ended(
    keys: Vec<WorkspaceKey>,
    due: &[Stone],
) -> Vec<(WorkspaceKey, WorkspaceTombstone)> {
    let by = |key: &WorkspaceKey| {
        due.iter()
            .find(|(name, stone)| name == key.name() && key.generation() <= stone.generation)
            .map(|(_, stone)| *stone)
    };
    keys.into_iter()
        .filter_map(|key| by(&key).map(|stone| (key, stone)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stone(name: &str, generation: i64, purge_after: i64) -> Stone {
        let stone = WorkspaceTombstone {
            generation,
            deleted_at: 0,
            purge_after,
        };
        (name.to_owned(), stone)
    }

    #[test]
    fn only_what_a_due_tombstone_names_has_ended() {
        let (due, next) = due(vec![stone("a", 5, 10), stone("b", 5, 30)], 20 + MARGIN);
        assert_eq!((due.len(), next), (1, Some(30 + MARGIN)));
        let key = WorkspaceKey::new;
        let keys = vec![
            key("a", 0),
            key("a", 5),
            key("a", 6),
            key("b", 0),
            key("c", 0),
        ];
        let ended: Vec<_> = ended(keys, &due).into_iter().map(|(key, _)| key).collect();
        assert_eq!(ended, [key("a", 0), key("a", 5)]);
    }

    #[test]
    fn what_could_be_restored_waits_a_moment_longer_and_what_could_not_goes_at_once() {
        let (now, never) = (stone("a", 5, 0), stone("b", 5, 1));
        assert_eq!(due(vec![now.clone(), never.clone()], 1).0, [now]);
        assert_eq!(due(vec![never.clone()], 1 + MARGIN).0, [never]);
    }

    #[test]
    fn another_or_an_older_configuration_is_refused() {
        let at = |identity: &str, version| ConfigKnown {
            identity: identity.into(),
            version,
        };
        let of = |identity, version| Verdict::of(Some(&at("x", 7)), &at(identity, version));
        assert_eq!(of("x", 7), Verdict::Known);
        assert_eq!(of("x", 6), Verdict::Older);
        assert_eq!(of("y", 8), Verdict::Another);
        assert_eq!(Verdict::of(None, &at("y", 1)), Verdict::Known);
        assert!(Verdict::Known.refusal().is_none());
    }
}
