//! How grave a notice of a log is, and from which level on a client wants to hear of one.

/// The method that says it, of a session.
pub(crate) const SET: &str = "logging/setLevel";

/// The levels of the protocol, which are those of syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// For whoever looks for a mistake.
    Debug,
    /// How it goes.
    Info,
    /// Something that is rarely so.
    Notice,
    /// Something that may become wrong.
    Warning,
    /// Something that failed.
    Error,
    /// A part that fails as a whole.
    Critical,
    /// Something has to be done at once.
    Alert,
    /// Nothing works.
    Emergency,
}

/// All of them, by their names.
const LEVELS: [(&str, Level); 8] = [
    ("debug", Level::Debug),
    ("info", Level::Info),
    ("notice", Level::Notice),
    ("warning", Level::Warning),
    ("error", Level::Error),
    ("critical", Level::Critical),
    ("alert", Level::Alert),
    ("emergency", Level::Emergency),
];

impl Level {
    /// By its name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let mut levels = LEVELS.iter();
        let found = levels.find(|(own, _)| *own == name);
        found.map(|(_, level)| *level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_as_they_are_listed() {
        assert!(LEVELS.windows(2).all(|pair| pair[0].1 < pair[1].1));
        assert_eq!(Level::of("warning"), Some(Level::Warning));
        assert_eq!(Level::of("Warning"), None);
    }
}
