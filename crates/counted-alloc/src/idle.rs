//! What other threads gave back to a thread's heap is free for that thread alone, and only once it asks for memory
//! again. A thread that goes to sleep does not ask: it is told to look. Never wakes a thread, and never touches the heap
//! of another.

use std::cell::Cell;

/// A collection takes some microseconds: it is not for every short sleep. In milliseconds.
const EVERY: i64 = 10_000;

thread_local! {
    static LAST: Cell<i64> = const { Cell::new(0) };
}

/// Has the heap of this thread collected, if that was not done in the last ten seconds. For threads that go to sleep;
/// `now` in milliseconds of any clock. Does nothing useful in a process that has another allocator than mimalloc.
pub fn collect_before_sleep(now: i64) {
    let due = LAST.try_with(|last| {
        let due = (now - last.get()).abs() >= EVERY;
        if due {
            last.set(now);
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
