//! The Rust files of the project, each with what is code in it, what is text, and what is neither test nor comment.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::text::{Keep, blank, without_tests};

/// A file.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its path below the root, with `/`.
    pub path: String,
    /// The whole of it.
    pub text: String,
    /// Code without comments, strings and tests.
    pub code: String,
    /// Code and strings, without comments and tests.
    pub strings: String,
    /// Whether all of it is for tests, examples or benches.
    pub test: bool,
}

impl Source {
    /// A file of this path and text that is no test as a whole by its path alone.
    pub fn new(path: &str, text: &str) -> Self {
        Self::read(path.to_owned(), text.to_owned()).0
    }

    fn read(path: String, text: String) -> (Self, Vec<String>) {
        let mut code = blank(&text, Keep::Code);
        let mut strings = blank(&text, Keep::Strings);
        let tests = without_tests(&mut code, &mut strings);
        let test = is_test_path(&path);
        let modules = tests.iter().map(|name| beside(&path, name)).collect();
        let source = Self {
            path,
            text,
            code,
            strings,
            test,
        };
        (source, modules)
    }

    /// What stands between quotes, tests and comments aside, and where.
    pub fn literals(&self) -> Vec<(usize, &str)> {
        // Quotes within are blanks in the code: each of its own opens or closes.
        let quotes: Vec<usize> = self.code.match_indices('"').map(|(at, _)| at).collect();
        let pairs = quotes.chunks_exact(2);
        pairs
            .filter_map(|pair| Some((pair[0] + 1, self.strings.get(pair[0] + 1..pair[1])?)))
            .collect()
    }

    /// The crate's folder: what stands before `src/`.
    pub fn package(&self) -> &str {
        self.path.split("/src/").next().unwrap_or(&self.path)
    }
}

/// The root of the project: two folders above this crate.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// What is below the root. To read it takes a second of a processor, and some fifty rules ask for it.
static ALL: LazyLock<Vec<Source>> = LazyLock::new(below_the_root);

/// Every Rust file below the root that belongs to the project, ordered by path.
pub fn all() -> Vec<Source> {
    ALL.clone()
}

/// The files that ship: no tests, examples or benches.
pub fn shipped() -> Vec<Source> {
    ALL.iter().filter(|source| !source.test).cloned().collect()
}

fn below_the_root() -> Vec<Source> {
    let root = root();
    let mut paths = Vec::new();
    for folder in ["schemas", "crates", "services", "server", "cli", "tests"] {
        walk(&root.join(folder), &mut paths);
    }
    paths.sort();
    let mut sources = Vec::new();
    let mut tests = Vec::new();
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else {
            // Somebody renamed it between the listing and the reading.
            continue;
        };
        let name = path.strip_prefix(&root).unwrap_or(&path);
        let name = name.to_string_lossy().replace('\\', "/");
        let (source, modules) = Source::read(name, text);
        sources.push(source);
        tests.extend(modules);
    }
    for source in &mut sources {
        source.test |= tests.iter().any(|module| {
            source.path == format!("{module}.rs") || source.path.starts_with(&format!("{module}/"))
        });
    }
    sources
}

fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            let name = entry.file_name();
            if name != "target" && name != "node_modules" {
                walk(&path, into);
            }
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            into.push(path);
        }
    }
}

fn is_test_path(path: &str) -> bool {
    let folders = ["tests", "examples", "benches"];
    path.starts_with("tests/")
        || path.starts_with("crates/testkit/")
        || path.ends_with("/tests.rs")
        || path.split('/').any(|part| folders.contains(&part))
}

/// Where the module `name` of the file `path` lies, without its extension.
fn beside(path: &str, name: &str) -> String {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let (folder, file) = stem.rsplit_once('/').unwrap_or(("", stem));
    match file {
        "lib" | "main" | "mod" => format!("{folder}/{name}"),
        _ => format!("{stem}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_known_by_their_path() {
        for (path, test) in [
            ("services/a/src/tests.rs", true),
            ("services/a/src/b/tests/c.rs", true),
            ("services/a/examples/c.rs", true),
            ("crates/testkit/src/lib.rs", true),
            ("services/a/src/testsuite.rs", false),
            ("services/a/src/lib.rs", false),
        ] {
            assert_eq!(Source::new(path, "").test, test, "{path}");
        }
        assert_eq!(beside("a/src/lib.rs", "x"), "a/src/x");
        assert_eq!(beside("a/src/b.rs", "x"), "a/src/b/x");
        assert_eq!(beside("a/src/b/mod.rs", "x"), "a/src/b/x");
    }

    #[test]
    fn the_project_is_found() {
        let sources = shipped();
        assert!(sources.len() > 500, "{}", sources.len());
        assert!(sources.iter().any(|s| s.path == "schemas/src/topic.rs"));
        assert!(sources.iter().all(|s| !s.path.contains("/tests/")));
    }
}
