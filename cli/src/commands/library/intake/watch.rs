//! Which files of a directory that is followed are new or changed since they were last taken, and at rest.

use std::collections::HashMap;
use std::fs;
use std::time::SystemTime;

use super::find::{MOST, Source};

/// How a file looks from outside.
type Look = (u64, Option<SystemTime>);

/// What was seen of files.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Whether there was a look before.
    begun: bool,
    /// At the look before.
    before: HashMap<Source, Look>,
    /// When they were taken.
    taken: HashMap<Source, Look>,
}

impl Seen {
    /// Those that are to be taken: other than they were, and as they were a look ago, so that nobody writes them now.
    /// At the first look all are taken.
    pub(super) fn fresh(&mut self, sources: Vec<Source>) -> Vec<Source> {
        let first = !std::mem::replace(&mut self.begun, true);
        let now: Vec<(Source, Look)> = sources
            .into_iter()
            .filter_map(|source| Some((source.clone(), look(&source)?)))
            .collect();
        let fresh = now
            .iter()
            .filter(|(source, look)| {
                let at_rest = first || self.before.get(source) == Some(look);
                at_rest && self.taken.get(source) != Some(look)
            })
            .map(|(source, _)| source.clone())
            .collect();
        // What is gone is forgotten: if it comes again it is new.
        let there: HashMap<Source, Look> = now.into_iter().take(MOST).collect();
        self.taken.retain(|source, _| there.contains_key(source));
        self.before = there;
        fresh
    }

    /// A file was taken, as it looked at the last look.
    pub(super) fn took(&mut self, source: &Source) {
        if let Some(look) = self.before.get(source) {
            self.taken.insert(source.clone(), *look);
        }
    }
}

fn look(source: &Source) -> Option<Look> {
    match source {
        Source::File(path) => {
            let meta = fs::metadata(path).ok()?;
            Some((meta.len(), meta.modified().ok()))
        }
        Source::Web(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_when_it_changed_and_is_at_rest() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let write = |text: &str| fs::write(&path, text).expect("written");
        let source = Source::File(path.clone());
        let mut seen = Seen::default();
        let fresh = |seen: &mut Seen| seen.fresh(vec![source.clone()]).len();
        write("one");
        assert_eq!(fresh(&mut seen), 1, "the first look takes all");
        assert_eq!(fresh(&mut seen), 1, "it was not taken, and is at rest");
        seen.took(&source);
        assert_eq!(fresh(&mut seen), 0);
        write("longer");
        assert_eq!(fresh(&mut seen), 0, "somebody may be writing it");
        assert_eq!(fresh(&mut seen), 1);
        seen.took(&source);
        assert_eq!(fresh(&mut seen), 0);
        fs::remove_file(&path).expect("removed");
        assert_eq!(fresh(&mut seen), 0);
        write("longer");
        assert_eq!((fresh(&mut seen), fresh(&mut seen)), (0, 1));
    }
}
