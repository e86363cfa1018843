//! What other threads gave back to a thread's heap is free for that thread alone, and only once it asks for memory
//! again. A thread that goes to sleep does not ask: it is told to look.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A collection takes some microseconds: it is not for every short sleep.
const EVERY: Duration = Duration::from_secs(10);

thread_local! {
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Has the heap of this thread collected, if that was not done in the last ten seconds. For threads that go to sleep.
/// Does nothing useful in a process that has another allocator than mimalloc.
pub fn collect_before_sleep() {
    let now = Instant::now();
    let due = LAST.try_with(|last| {
        let due = last.get().is_none_or(|last| now - last >= EVERY);
        if due {
            last.set(Some(now));
        }
        due
    });
    if due.unwrap_or(false) {
        collect();
    }
}

#[expect(unsafe_code, reason = "the allocator has no safe function for it")]
fn collect() {
    // SAFETY: takes no pointer; collects what is free in the heap of the calling thread.
    unsafe { libmimalloc_sys::mi_collect(false) }
}
