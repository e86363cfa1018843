//! Ids of new runs.

use tg_mesh::clock;
use uuid::Uuid;

/// The id of a new run: random in what nobody is to guess, and begun by the time, so that the rows of runs that go on at the same
/// time lie together in the ledger and the library. A commit then changes few pages, however many runs it is of.
pub(crate) fn new_run() -> String {
    begun_at(clock::millis())
}

/// Of the fourth version in its form, as clients know ids of runs: the time takes the place of the first six bytes.
fn begun_at(now_ms: i64) -> String {
    let mut bytes = Uuid::new_v4().into_bytes();
    let [_, _, time @ ..] = now_ms.to_be_bytes();
    bytes[..6].copy_from_slice(&time);
    Uuid::from_bytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_in_the_order_of_time_and_look_as_ever() {
        let times = [0, 1, 1_000, 1_796_000_000_000, 1_796_000_000_001];
        let ids = times.map(begun_at);
        assert!(ids.is_sorted());
        for id in &ids {
            let read: Uuid = id.parse().expect("an id");
            assert_eq!((read.get_version_num(), read.to_string()), (4, id.clone()));
        }
        assert_ne!(begun_at(7), begun_at(7));
        assert_eq!(new_run().len(), 36);
    }
}
