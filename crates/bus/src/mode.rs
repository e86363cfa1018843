//! How the mesh speaks on a broker, and what follows from it for who sends and reads there: whoever has to do one thing
//! among processors of ours and another among foreign ones asks here what it needs to know, never which mode it is.

use tg_schemas::codec::ContentType;

/// How the mesh speaks on a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Our own exchange prefix; shares nothing with foreign processors.
    #[default]
    Native,
    /// The reference's names, declarations and JSON; replies on response topics.
    Interop,
}

/// Prefix of native exchanges: as long as the reference's `tg`, so that name lengths agree.
pub const NATIVE_PREFIX: &str = "nt";

impl Mode {
    /// What replaces the topic space in names, if anything.
    pub fn prefix(self) -> Option<&'static str> {
        match self {
            Self::Native => Some(NATIVE_PREFIX),
            Self::Interop => None,
        }
    }

    /// Whether every message carries our headers: frame and number of a part, asker's inbox, deadline, epoch. A foreign
    /// processor sends and reads the id alone; its answers come on the response topic, without numbers.
    pub fn has_frames(self) -> bool {
        self == Self::Native
    }

    /// How records are written; one that is read may be written either way.
    pub fn record_format(self) -> ContentType {
        match self {
            Self::Native => ContentType::Avro,
            Self::Interop => ContentType::Json,
        }
    }

    /// Whether deletions are told by tombstones. Foreign processors say nothing of deletions, so nothing is purged
    /// among them and no record is refused for the generation that it lacks.
    pub fn has_tombstones(self) -> bool {
        self == Self::Native
    }

    /// Whether the configuration service answers in pages from the first question on. A foreign one knows none: it is
    /// asked for them only where the whole is too large.
    pub fn has_config_pages(self) -> bool {
        self == Self::Native
    }

    /// Whether the lease of a store says which store served last under its name.
    pub fn has_leases(self) -> bool {
        self == Self::Native
    }

    /// Whether who reads a record reports that it is done with it.
    pub fn has_reports(self) -> bool {
        self == Self::Native
    }

    /// Whether texts for the library are written to it as records; a foreign library is asked.
    pub fn has_library_records(self) -> bool {
        self == Self::Native
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_processors_are_trusted_with_nothing_of_ours() {
        let mode = Mode::Interop;
        let ours = [
            mode.has_frames(),
            mode.has_tombstones(),
            mode.has_config_pages(),
            mode.has_leases(),
            mode.has_reports(),
            mode.has_library_records(),
        ];
        assert_eq!(ours, [false; 6]);
        assert_eq!(mode.record_format(), ContentType::Json);
        assert_eq!(mode.prefix(), None);
    }
}
