//! Collections and their deletion.

use tg_schemas::processors::collection_stores;

use super::*;
use crate::store::collections::Life;

async fn life(store: &Store) -> (i64, Life) {
    let known = store.collection("w", "c").await.unwrap().unwrap();
    (known.generation, known.life)
}

pub(super) async fn a_name_that_was_deleted_gets_its_next_generation(store: Store) {
    assert_eq!(store.collection("w", "c").await.unwrap(), None);
    for row in [None, Some(0), Some(0)] {
        assert_eq!(store.begin_collection("w", "c", row).await.unwrap(), 0);
    }
    for _ in 0..2 {
        let ended = store.end_collection("w", "c", 0, "deleted");
        assert_eq!(ended.await.unwrap(), 0);
        assert_eq!(life(&store).await, (0, Life::Noted));
    }
    for _ in 0..2 {
        store.collection_gone("w", "c", 0).await.unwrap();
        assert_eq!(life(&store).await, (0, Life::Gone));
    }
    // A row of the dead one that another hand put there again means nothing.
    let dead = store.remember_collection("w", "c", 0).await.unwrap();
    assert_eq!(dead, None);
    assert_eq!(store.begin_collection("w", "c", Some(0)).await.unwrap(), 1);
    store.collection_gone("w", "c", 0).await.unwrap();
    assert_eq!(life(&store).await, (1, Life::Live));
    let known = store.remember_collection("w", "c", 1).await.unwrap();
    assert_eq!(known, Some(1));
}

pub(super) async fn a_row_that_was_taken_away_is_dropped_everywhere(store: Store) {
    store.begin_collection("w", "c", Some(4)).await.unwrap();
    assert_eq!(store.begin_collection("w", "c", None).await.unwrap(), 5);
    let stones = store.tombstones_of("w", "c").await.unwrap();
    assert_eq!(stones.len(), collection_stores().count());
    assert!(stones.iter().all(|stone| stone.generation == 4));
    assert!(store.tombstones_of("x", "c").await.unwrap().is_empty());
}

pub(super) async fn a_deletion_is_pending_until_it_is_confirmed(store: Store) {
    for id in ["a", "b", "c"] {
        store.begin_collection("w", id, None).await.unwrap();
        store.end_collection("w", id, 0, "deleted").await.unwrap();
    }
    let first = collection_stores().next().unwrap();
    assert_eq!(store.pending_tombstones(first, 2).await.unwrap().len(), 2);
    let pending = store.pending_tombstones(first, 9).await.unwrap();
    assert_eq!(pending.len(), 3);
    let mut late = pending[0].clone();
    late.generation -= 1;
    // What confirms an earlier generation confirms nothing of a later one.
    for (stone, left) in [(&late, 3), (&pending[0], 2), (&pending[0], 2)] {
        store.confirm(stone).await.unwrap();
        let now = store.pending_tombstones(first, 9).await.unwrap();
        assert_eq!(now.len(), left);
    }
}
