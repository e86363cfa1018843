//! What a child may use up.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Bounds of taking one document apart.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Largest document.
    pub input_bytes: u64,
    /// Most text of one document.
    pub text_bytes: u64,
    /// Most text of one page; what is more is cut off and reported.
    pub page_bytes: usize,
    /// Most pages.
    pub pages: u32,
    /// Address space of the child.
    pub memory_bytes: u64,
    /// Longest pause between two pages, also before the first.
    pub pause: Duration,
    /// Time that every document has.
    pub start: Duration,
    /// Time for each MiB of a document besides.
    pub mebibyte: Duration,
    /// Time for each page or piece of text that was sent besides.
    pub page: Duration,
    /// Longest time in all.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            input_bytes: tg_schemas::limits::DOCUMENT as u64,
            text_bytes: 128 << 20,
            page_bytes: 4 << 20,
            pages: 5_000,
            memory_bytes: 1536 << 20,
            pause: Duration::from_secs(60),
            start: Duration::from_secs(60),
            mebibyte: Duration::from_secs(4),
            page: Duration::from_millis(500),
            time: Duration::from_secs(600),
        }
    }
}

impl Limits {
    /// How long a document of this size may take once so many pages were sent.
    pub fn time_for(&self, bytes: u64, pages: u32) -> Duration {
        let mebibytes = u32::try_from(bytes.div_ceil(1 << 20)).unwrap_or(u32::MAX);
        let more = self.mebibyte.saturating_mul(mebibytes);
        let more = more.saturating_add(self.page.saturating_mul(pages));
        self.start.saturating_add(more).min(self.time)
    }

    /// As an argument of the child: its parent's limits are its own.
    pub fn to_argument(&self) -> String {
        [
            self.input_bytes,
            self.text_bytes,
            self.page_bytes as u64,
            u64::from(self.pages),
            self.memory_bytes,
            self.time.as_secs(),
        ]
        .map(|number| number.to_string())
        .join(",")
    }

    /// Reads the argument; what only its parent looks after is as usual. `None` if it is none.
    pub fn from_argument(text: &str) -> Option<Self> {
        let numbers = text.split(',').map(str::parse);
        let numbers = numbers.collect::<Result<Vec<u64>, _>>().ok()?;
        let [
            input_bytes,
            text_bytes,
            page_bytes,
            pages,
            memory_bytes,
            time,
        ] = numbers.try_into().ok()?;
        Some(Self {
            input_bytes,
            text_bytes,
            page_bytes: usize::try_from(page_bytes).ok()?,
            pages: u32::try_from(pages).ok()?,
            memory_bytes,
            time: Duration::from_secs(time),
            ..Self::default()
        })
    }

    /// Confines this process: memory, processor time, and no files. Where the system refuses a limit the
    /// parent's clock still holds; which it refused is returned, a bit for each of [`CONFINED`].
    pub(crate) fn confine(&self) -> u32 {
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
        let mut refused = 0;
        for (at, (resource, limit)) in wanted.into_iter().enumerate() {
            // A tighter one of who started the system stays: it cannot be raised, and need not be.
            let most = getrlimit(resource).maximum.unwrap_or(u64::MAX);
            if setrlimit(resource, both(limit.min(most))).is_err() {
                refused |= 1 << at;
            }
        }
        refused
    }
}

/// What a child is confined in, in the order of the bits.
const CONFINED: [&str; 4] = [
    "its memory",
    "its processor time",
    "writing of files",
    "core dumps",
];

/// What the bits stand for, in words; those that are none are left out.
pub(crate) fn unconfined(bits: u32) -> String {
    let named = CONFINED.iter().enumerate();
    let refused = named.filter(|(at, _)| bits & (1 << at) != 0);
    let names: Vec<&str> = refused.map(|(_, name)| *name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_has_the_limits_of_its_parent() {
        let limits = Limits {
            input_bytes: 1,
            text_bytes: 2,
            page_bytes: 3,
            pages: 4,
            memory_bytes: 5,
            time: Duration::from_secs(6),
            ..Limits::default()
        };
        let read = Limits::from_argument(&limits.to_argument());
        assert_eq!(format!("{read:?}"), format!("{:?}", Some(limits)));
        for wrong in [
            "",
            "1,2,3,4,5",
            "1,2,3,4,5,6,7",
            "1,2,3,4,5,x",
            "-1,2,3,4,5,6",
        ] {
            assert!(Limits::from_argument(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_confined_has_words() {
        assert_eq!(unconfined(0b101), "its memory, writing of files");
        assert_eq!(unconfined(u32::MAX), CONFINED.join(", "));
        assert_eq!(unconfined(0), "");
    }

    #[test]
    fn time_grows_with_size_and_pages_up_to_a_bound() {
        let limits = Limits::default();
        let seconds = |bytes, pages| limits.time_for(bytes, pages).as_secs();
        assert_eq!(seconds(1, 0), 64);
        assert_eq!(seconds(10 << 20, 200), 200);
        assert_eq!(seconds(256 << 20, 5_000), 600);
        assert_eq!(seconds(u64::MAX, u32::MAX), 600);
    }
}
