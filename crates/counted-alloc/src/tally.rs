//! An allocator that counts how often the whole process asks for memory. For measurements: the program that ships does not
//! count so, as all its threads would write to one place.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicU64, Ordering};

static TIMES: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// An allocator that counts for the process.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tallied<A>(pub A);

/// How often a process asked for memory since it began, and for how much.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// How often; memory that grows or shrinks counts each time.
    pub times: u64,
    /// Bytes in all, whether they were given back or not.
    pub bytes: u64,
}

/// What was counted so far. Stays zero where the process uses another allocator.
pub fn tally() -> Tally {
    Tally {
        times: TIMES.load(Ordering::Relaxed),
        bytes: BYTES.load(Ordering::Relaxed),
    }
}

fn add(bytes: usize) {
    TIMES.fetch_add(1, Ordering::Relaxed);
    // No layout is larger than `isize::MAX`.
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

#[expect(
    unsafe_code,
    reason = "every call goes to the allocator inside with the very arguments it came with"
)]
// SAFETY: the allocator inside keeps the contract; counting touches only two numbers and never unwinds.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Tallied<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.0.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        add(layout.size());
        // SAFETY: the caller's promise.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, to: usize) -> *mut u8 {
        add(to);
        // SAFETY: the caller's promise.
        unsafe { self.0.realloc(memory, layout, to) }
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;

    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "an allocator is asked as the compiler asks it")]
    fn each_time_and_each_byte_counts() {
        let before = tally();
        let layout = Layout::from_size_align(100, 8).unwrap();
        let grown = Layout::from_size_align(300, 8).unwrap();
        let allocator = Tallied(System);
        // SAFETY: the memory is given back once, with the layout that it then has.
        unsafe {
            let memory = allocator.alloc_zeroed(layout);
            assert_eq!(memory.read(), 0);
            let memory = allocator.realloc(memory, layout, grown.size());
            allocator.dealloc(memory, grown);
            let memory = allocator.alloc(layout);
            allocator.dealloc(memory, layout);
        }
        let after = tally();
        assert_eq!(after.times - before.times, 3);
        assert_eq!(after.bytes - before.bytes, 500);
    }
}
