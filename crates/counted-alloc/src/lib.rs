//! An allocator that counts what a thread holds, and notifies a [`Meter`] when that passes a mark.
//!
//! Work whose memory nobody can foresee (a query in a library's evaluator) runs on a thread of its own. The thread
//! is [`metered`]; the meter hears of every mark that the thread's memory passes, and stops the work by means of its
//! own: an allocator can refuse nothing without ending the process.
//!
//! What a thread gives away to another one must be [`forgive`]n, or it counts for ever.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicI64, Ordering};
//!
//! #[global_allocator]
//! static ALLOCATOR: tg_counted_alloc::Counted<std::alloc::System> =
//!     tg_counted_alloc::Counted(std::alloc::System);
//!
//! struct Highest(AtomicI64);
//! impl tg_counted_alloc::Meter for Highest {
//!     fn passed(&self, bytes: i64) -> i64 {
//!         self.0.store(bytes, Ordering::Relaxed);
//!         bytes + 1_000
//!     }
//! }
//!
//! let meter = Arc::new(Highest(AtomicI64::new(0)));
//! let metered = tg_counted_alloc::metered(meter.clone());
//! let text = vec![0_u8; 5_000];
//! assert!(meter.0.load(Ordering::Relaxed) >= 5_000);
//! drop((text, metered));
//! ```

mod idle;
mod tally;

pub use idle::collect_before_sleep;
pub use tally::{Tallied, Tally, tally};

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;

/// Hears how much a thread holds. Called inside an allocation of that thread: it must neither allocate nor block nor
/// panic.
pub trait Meter: Send + Sync {
    /// The thread holds so many bytes. Returns the next mark; [`i64::MAX`] asks for no further calls.
    fn passed(&self, bytes: i64) -> i64;
}

thread_local! {
    /// Bytes the thread allocated and did not free. Below zero if it frees what others allocated.
    static HELD: Cell<i64> = const { Cell::new(0) };
    /// Above this the meter is called.
    static MARK: Cell<i64> = const { Cell::new(i64::MAX) };
    /// Only touched in threads that are metered.
    static METER: RefCell<Option<Arc<dyn Meter>>> = const { RefCell::new(None) };
}

/// An allocator that counts for the thread that asks.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counted<A>(pub A);

/// What the thread holds, in bytes as they were asked for. Stays zero if the process uses another allocator.
pub fn held() -> i64 {
    HELD.try_with(Cell::get).unwrap_or(0)
}

/// Takes bytes off the thread's count: they belong to somebody else now.
pub fn forgive(bytes: i64) {
    let _ = HELD.try_with(|held| held.set(held.get() - bytes));
}

/// Whether the process counts at all.
pub fn is_counting() -> bool {
    let before = held();
    let probe = std::hint::black_box(Box::new([0_u8; 64]));
    let counted = held() > before;
    drop(probe);
    counted
}

/// The thread is metered for as long as this lives.
#[derive(Debug)]
pub struct Metered(PhantomData<*const ()>);

/// Starts counting this thread at zero, and notifies the meter.
pub fn metered(meter: Arc<dyn Meter>) -> Metered {
    let mark = meter.passed(0);
    METER.set(Some(meter));
    HELD.set(0);
    MARK.set(mark);
    Metered(PhantomData)
}

impl Drop for Metered {
    fn drop(&mut self) {
        MARK.set(i64::MAX);
        METER.take();
    }
}

fn count(bytes: i64) {
    // A thread that ends has no counter any more.
    let _ = HELD.try_with(|held| {
        let now = held.get() + bytes;
        held.set(now);
        if bytes > 0 && MARK.try_with(Cell::get).is_ok_and(|mark| now > mark) {
            tell(now);
        }
    });
}

#[cold]
fn tell(held: i64) {
    // Should the meter allocate after all, it is not called again from within.
    MARK.set(i64::MAX);
    let next = METER.try_with(|meter| {
        let meter = meter.try_borrow().ok()?;
        Some(meter.as_ref()?.passed(held))
    });
    MARK.set(next.ok().flatten().unwrap_or(i64::MAX));
}

fn size(of: usize) -> i64 {
    // No layout is larger than `isize::MAX`.
    of as i64
}

#[expect(
    unsafe_code,
    reason = "every call goes to the allocator inside with the very arguments it came with"
)]
// SAFETY: the allocator inside keeps the contract; counting touches only cells of this thread and never unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let memory = unsafe { self.0.alloc(layout) };
        if !memory.is_null() {
            count(size(layout.size()));
        }
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-size(layout.size()));
        // SAFETY: the caller's promise.
        unsafe { self.0.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let memory = unsafe { self.0.alloc_zeroed(layout) };
        if !memory.is_null() {
            count(size(layout.size()));
        }
        memory
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, to: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let moved = unsafe { self.0.realloc(memory, layout, to) };
        if !moved.is_null() {
            count(size(to) - size(layout.size()));
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counted<std::alloc::System> = Counted(std::alloc::System);

    #[derive(Default)]
    struct Steps {
        calls: AtomicUsize,
        last: AtomicI64,
    }

    impl Meter for Steps {
        fn passed(&self, bytes: i64) -> i64 {
            self.calls.fetch_add(1, Ordering::Relaxed);
            self.last.store(bytes, Ordering::Relaxed);
            bytes + 1_000_000
        }
    }

    #[test]
    fn a_thread_is_told_of_each_mark_it_passes_and_of_nothing_else() {
        assert!(is_counting());
        let steps = Arc::new(Steps::default());
        let metered = metered(steps.clone());
        let small: Vec<Vec<u8>> = (0..100).map(|_| vec![1; 1_000]).collect();
        assert_eq!(
            steps.calls.load(Ordering::Relaxed),
            1,
            "the first is at zero"
        );
        let mut large: Vec<u8> = Vec::with_capacity(2_000_000);
        assert_eq!(steps.calls.load(Ordering::Relaxed), 2);
        assert!(steps.last.load(Ordering::Relaxed) > 2_000_000);
        large.resize(6_000_000, 0);
        assert_eq!(steps.calls.load(Ordering::Relaxed), 3, "growing counts");
        drop((small, large));
        assert!(held().abs() < 100_000, "{}", held());
        let given = vec![0_u8; 900_000];
        forgive(900_000);
        std::thread::spawn(move || drop(given)).join().unwrap();
        assert!(held().abs() < 100_000, "{}", held());
        drop(metered);
        let unseen = vec![0_u8; 9_000_000];
        assert_eq!(steps.calls.load(Ordering::Relaxed), 3);
        drop(unseen);
    }
}
