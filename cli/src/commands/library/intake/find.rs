//! Which files the user means: those that are named, and those below directories. Hidden ones are left out below
//! directories, links to directories are not followed, and there is an end to everything.

use std::fs;
use std::path::{Path, PathBuf};

/// Files of one call, at most.
pub(super) const MOST: usize = 10_000;
/// Directories below one another, at most.
const DEEPEST: usize = 32;

/// Of what the user named the directories in which a file was found, and those in which there is none.
pub(super) fn with_and_without_files(
    named: &[PathBuf],
    found: &[Source],
) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let whole = |path: &Path| fs::canonicalize(path).ok();
    let files = found.iter().filter_map(|one| match one {
        Source::File(path) => whole(path),
        Source::Web(_) => None,
    });
    let files: Vec<PathBuf> = files.collect();
    let directories = named.iter().filter(|path| path.is_dir()).cloned();
    directories.partition(|directory| {
        let within = whole(directory);
        within.is_some_and(|within| files.iter().any(|file| file.starts_with(&within)))
    })
}

/// Where a document comes from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// A file; its path as the user knows it.
    File(PathBuf),
    /// A web address.
    Web(String),
}

impl Source {
    /// As the user named it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Web(url) => url.clone(),
        }
    }

    /// The last part of the name.
    pub(super) fn last(&self) -> String {
        match self {
            Self::File(path) => path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned())
                .unwrap_or_default(),
            Self::Web(url) => last_of_url(url),
        }
    }

    /// What tells it from every other: the machine with the whole path, or the address.
    pub(super) fn key(&self, machine: &str) -> String {
        match self {
            Self::File(path) => {
                let whole = fs::canonicalize(path).or_else(|_| std::path::absolute(path));
                let whole = whole.unwrap_or_else(|_| path.clone());
                format!("file {machine} {}", whole.display())
            }
            Self::Web(url) => format!("web {}", url.split('#').next().unwrap_or(url)),
        }
    }
}

/// The last part of an address's path, else its host.
fn last_of_url(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or(url);
    let rest = bare.split_once("://").map_or(bare, |(_, rest)| rest);
    let mut parts = rest.split('/').filter(|part| !part.is_empty());
    let host = parts.next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or(host);
    parts.next_back().unwrap_or(host).to_owned()
}

/// Name of this machine, so that the same path on another one is another file; empty if it is not known.
pub(super) fn machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok());
    name.unwrap_or_default().trim().to_owned()
}

/// What was found, in order, and what was not: its name and why.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) sources: Vec<Source>,
    pub(super) faults: Vec<(String, String)>,
}

/// All that the user named.
pub(super) fn find(named: &[PathBuf]) -> Found {
    let mut found = Found::default();
    for path in named {
        let url = path.to_str().filter(|text| {
            let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
            lower.starts_with("http://") || lower.starts_with("https://")
        });
        match (url, fs::metadata(path)) {
            (Some(url), _) => found.push(Source::Web(url.to_owned())),
            (None, Ok(meta)) if meta.is_dir() => found.below(path, 0),
            (None, Ok(meta)) if meta.is_file() => found.push(Source::File(path.clone())),
            (None, Ok(_)) => found.fault(path, "is not a file"),
            (None, Err(error)) => found.fault(path, &error.to_string()),
        }
    }
    found
}

/// The directories that the user named, and those below them, as they are called whatever leads to them. Files of those that
/// are gone as a whole cannot be found.
pub(super) fn directories(named: &[PathBuf]) -> Vec<PathBuf> {
    let named = named.iter().filter(|path| path.is_dir());
    let mut found: Vec<PathBuf> = named
        .filter_map(|path| fs::canonicalize(path).ok())
        .collect();
    let (mut at, mut deep) = (0, found.len());
    for _ in 0..DEEPEST {
        let level = found[at..deep].to_vec();
        for directory in level {
            let entries = fs::read_dir(directory).into_iter().flatten().flatten();
            let below = entries.filter(|entry| {
                let visible = !entry.file_name().to_string_lossy().starts_with('.');
                visible && entry.file_type().is_ok_and(|kind| kind.is_dir())
            });
            found.extend(
                below
                    .map(|entry| entry.path())
                    .take(MOST - found.len().min(MOST)),
            );
        }
        (at, deep) = (deep, found.len());
    }
    found
}

impl Found {
    fn push(&mut self, source: Source) {
        if self.sources.contains(&source) {
            return;
        }
        match self.sources.len() < MOST {
            true => self.sources.push(source),
            false
                if self
                    .faults
                    .last()
                    .is_some_and(|(_, why)| *why == too_many()) => {}
            false => self.faults.push((source.name(), too_many())),
        }
    }

    fn fault(&mut self, path: &Path, why: &str) {
        if self.faults.len() < MOST {
            self.faults
                .push((path.display().to_string(), why.to_owned()));
        }
    }

    fn below(&mut self, directory: &Path, depth: usize) {
        if depth == DEEPEST {
            return self.fault(directory, "is too deep below the directory that was named");
        }
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => return self.fault(directory, &error.to_string()),
        };
        let visible = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            !name.starts_with('.')
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = paths.filter(visible).take(MOST + 1).collect();
        paths.sort();
        for path in paths {
            let linked = path.is_symlink();
            match fs::metadata(&path) {
                Ok(meta) if meta.is_dir() && !linked => self.below(&path, depth + 1),
                Ok(meta) if meta.is_file() => self.push(Source::File(path)),
                Ok(_) => {}
                Err(error) => self.fault(&path, &error.to_string()),
            }
        }
    }
}

fn too_many() -> String {
    format!("and what follows was left out: at most {MOST} files are taken at once")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_gives_its_files_and_hides_what_is_hidden() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("b/.git")).expect("made");
        for name in ["z.md", "a.md", ".hidden", "b/c.txt", "b/.git/config"] {
            fs::write(at(name), "x").expect("written");
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), at("b/loop")).expect("linked");
        let named = [
            folder.path().to_owned(),
            at("a.md"),
            at(".hidden"),
            at("none"),
        ];
        let found = find(&named);
        let names: Vec<_> = found.sources.iter().map(Source::last).collect();
        assert_eq!(names, ["a.md", "c.txt", "z.md", ".hidden"]);
        assert_eq!(found.faults.len(), 1);
        assert!(found.faults[0].0.ends_with("none"), "{:?}", found.faults);
        let devices = find(&[PathBuf::from("/dev/null")]);
        assert_eq!(devices.faults[0].1, "is not a file");
    }

    #[test]
    fn too_deep_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let deep = folder.path().join("d/".repeat(DEEPEST));
        fs::create_dir_all(&deep).expect("made");
        let found = find(&[folder.path().to_owned()]);
        assert!(
            found.faults[0].1.starts_with("is too deep"),
            "{:?}",
            found.faults
        );
    }

    #[test]
    fn a_source_is_known_by_where_it_is() {
        let web = |url: &str| Source::Web(url.to_owned());
        let found = find(&[PathBuf::from("HTTPS://h.example/a/b.pdf?x=1")]);
        assert_eq!(found.sources, [web("HTTPS://h.example/a/b.pdf?x=1")]);
        assert_eq!(found.sources[0].last(), "b.pdf");
        assert_eq!(web("http://u@h.example/").last(), "h.example");
        assert_eq!(web("http://h/a#1").key("m"), web("http://h/a#2").key("n"));
        let file = Source::File(PathBuf::from("a.md"));
        assert_ne!(file.key("m"), file.key("n"));
        let whole = Source::File(std::path::absolute("a.md").expect("absolute"));
        assert_eq!(file.key("m"), whole.key("m"));
    }
}
