//! What a child may use up.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};

/// Bounds of taking one document apart.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest document.
    pub input_bytes: u64,
    /// Most text of one document.
    pub text_bytes: u64,
    /// Most text of one page; what is more is cut off and told.
    pub page_bytes: usize,
    /// Most pages.
    pub pages: u32,
    /// Address space of the child.
    pub memory_bytes: u64,
    /// Longest pause between two pages, also before the first.
    pub pause: Duration,
    /// Longest time in all.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            input_bytes: 256 << 20,
            text_bytes: 128 << 20,
            page_bytes: 4 << 20,
            pages: 5_000,
            memory_bytes: 1536 << 20,
            pause: Duration::from_secs(60),
            time: Duration::from_secs(900),
        }
    }
}

impl Limits {
    /// Confines this process: memory, processor time, and no files. Where the system refuses a limit the
    /// parent's clock still holds.
    pub fn confine(&self) {
        let both = |limit: u64| Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        };
        let wanted = [
            (Resource::As, self.memory_bytes),
            (Resource::Cpu, self.time.as_secs().max(1)),
            (Resource::Fsize, 0),
            (Resource::Core, 0),
        ];
        for (resource, limit) in wanted {
            let _ = setrlimit(resource, both(limit));
        }
    }
}
