//! Every process knows which stores purge nothing and whether a disk is full, whether it was there when that was said or came later.

use std::time::Duration;

use tg_mesh::PresenceView;
use tg_testkit::place::Place;

use crate::dialogs::mesh;

const BOUND: Duration = Duration::from_secs(60);

fn says(view: &PresenceView, stores: &[&str]) -> bool {
    let refused = view.purging_refused();
    refused.keys().eq(stores) && refused.values().all(|why| why == "another one")
}

async fn a_store_that_purges_nothing_is_known_everywhere_until_it_does(place: Place) {
    let (owner, other) = (mesh(&place).await, mesh(&place).await);
    for store in ["graph", "rows"] {
        tg_mesh::tell_purging(&owner, store, Some("another one")).await;
    }
    let both = |view: &PresenceView| says(view, &["graph", "rows"]);
    assert!(both(owner.presence()));
    assert!(other.presence().until(BOUND, both).await);
    let late = mesh(&place).await;
    assert!(late.presence().until(BOUND, both).await);

    tg_mesh::tell_purging(&owner, "graph", None).await;
    let one = |view: &PresenceView| says(view, &["rows"]);
    for process in [&other, &late] {
        assert!(process.presence().until(BOUND, one).await);
    }
    owner.stop(Duration::from_secs(5)).await;
    let none = |view: &PresenceView| says(view, &[]);
    assert!(other.presence().until(BOUND, none).await);
}

async fn a_disk_that_is_full_is_known_everywhere_until_it_is_not(place: Place) {
    let (owner, other) = (mesh(&place).await, mesh(&place).await);
    assert!(!owner.presence().disk_full());
    tg_mesh::tell_disk(&owner, true).await;
    assert!(owner.presence().disk_full());
    let late = mesh(&place).await;
    for process in [&other, &late] {
        let told = process.presence().until(BOUND, PresenceView::disk_full);
        assert!(told.await);
    }
    tg_mesh::tell_disk(&owner, false).await;
    for process in [&owner, &other, &late] {
        let room = |view: &PresenceView| !view.disk_full();
        assert!(process.presence().until(BOUND, room).await);
    }
}

tg_testkit::on_both_buses!(
    a_store_that_purges_nothing_is_known_everywhere_until_it_does,
    a_disk_that_is_full_is_known_everywhere_until_it_is_not,
);
