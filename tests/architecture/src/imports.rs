//! Which file of a crate imports which, and the circles among them.
//!
//! An arrow is a path that one file writes and that another file defines: in a `use` or in place, from `crate`, `self`,
//! `super` or a module of its own. A name that a file only passes on (`pub use`) is followed to where it is made.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;
use crate::text::is_word;

/// The files of one crate and the arrows between them.
#[derive(Debug, Default)]
pub struct Graph {
    modules: BTreeMap<Vec<String>, Module>,
}

#[derive(Debug, Default)]
struct Module {
    path: String,
    code: String,
    uses: Vec<Use>,
    inline: Vec<Vec<String>>,
}

/// One name that a `use` brings: the path it names, the name it gets, whether it is passed on.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Use {
    path: Vec<String>,
    name: String,
    public: bool,
}

impl Graph {
    /// Reads the files below `<package>/src/`. Programs in `src/bin` are crates of their own and left out.
    pub fn new(package: &str, sources: &[Source]) -> Self {
        let prefix = format!("{package}/src/");
        let mut graph = Self::default();
        for source in sources {
            let Some(below) = source.path.strip_prefix(&prefix) else {
                continue;
            };
            if source.test || below.starts_with("bin/") {
                continue;
            }
            let place = place_of(below);
            let (uses, rest) = uses(&source.code);
            let inline = inline(&rest, &children(&source.code));
            let module = Module {
                path: source.path.clone(),
                code: rest,
                uses,
                inline,
            };
            // A library's root wins over a program's of the same crate.
            if below != "main.rs" || !graph.modules.contains_key(&place) {
                graph.modules.insert(place, module);
            }
        }
        graph
    }

    /// The arrows: a file and the files that it imports from.
    pub fn arrows(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (place, module) in &self.modules {
            let from = arrows.entry(&module.path).or_default();
            let used = module
                .uses
                .iter()
                .filter(|entry| !entry.public || mentions(&module.code, &entry.name))
                .map(|entry| &entry.path);
            for path in used.chain(&module.inline) {
                let Some(path) = absolute(place, path) else {
                    continue;
                };
                if let Some(target) = self.target(&path, 0)
                    && target != module.path
                {
                    from.insert(target);
                }
            }
        }
        arrows
    }

    /// The circles: groups of files each of which reaches every other one of its group.
    pub fn circles(&self) -> Vec<Vec<&str>> {
        let arrows = self.arrows();
        let reach: BTreeMap<&str, BTreeSet<&str>> = arrows
            .keys()
            .map(|from| (*from, reached(from, &arrows)))
            .collect();
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for from in arrows.keys() {
            if !reach[from].contains(from) || seen.contains(from) {
                continue;
            }
            let circle: Vec<&str> = reach[from]
                .iter()
                .filter(|other| reach[*other].contains(from))
                .copied()
                .collect();
            seen.extend(circle.iter().copied());
            circles.push(circle);
        }
        circles
    }

    /// The file that defines what a path from the crate's root names.
    fn target(&self, path: &[String], depth: usize) -> Option<&str> {
        let (place, module) = (0..=path.len())
            .rev()
            .find_map(|end| self.modules.get_key_value(&path[..end]))?;
        let Some(name) = path.get(place.len()) else {
            return Some(&module.path);
        };
        if depth < 8 && !defines(&module.code, name) {
            let named = module.uses.iter().find(|entry| entry.name == *name);
            if let Some(entry) = named {
                let mut full = absolute(place, &entry.path)?;
                full.extend_from_slice(&path[place.len() + 1..]);
                return self.target(&full, depth + 1);
            }
            for glob in module.uses.iter().filter(|entry| entry.name == "*") {
                let mut full = absolute(place, &glob.path)?;
                full.push(name.clone());
                let Some(at) = self.modules.get(&full[..full.len() - 1]) else {
                    continue;
                };
                if defines(&at.code, name) {
                    return self.target(&full, depth + 1);
                }
            }
        }
        Some(&module.path)
    }
}

fn reached<'a>(from: &str, arrows: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = arrows.get(from).into_iter().flatten().copied().collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(arrows.get(file).into_iter().flatten());
        }
    }
    reached
}

/// `a/b.rs` and `a/b/mod.rs` are `a::b`; `lib.rs` and `main.rs` are the root.
fn place_of(below: &str) -> Vec<String> {
    let mut parts: Vec<String> = below
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if matches!(parts.last().map(String::as_str), Some("lib" | "main")) && parts.len() == 1
        || parts.last().is_some_and(|last| last == "mod")
    {
        parts.pop();
    }
    parts
}

/// The path from the crate's root of a path written in the module `place`; `None` for another crate's.
fn absolute(place: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut full = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" | "super" => place.to_vec(),
        _ => return None,
    };
    for part in path {
        match part.as_str() {
            "crate" | "self" => {}
            "super" => {
                full.pop();
            }
            "*" => break,
            name => full.push(name.to_owned()),
        }
    }
    Some(full)
}

/// The modules that a file declares.
fn children(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in code.lines() {
        let line = line.trim();
        if let Some(declared) = line.strip_suffix(';')
            && let Some((before, name)) = declared.rsplit_once("mod ")
            && (before.is_empty() || before.starts_with("pub"))
        {
            found.insert(name.trim().to_owned());
        }
    }
    found
}

/// What the `use` statements of a code bring, and the code without them.
fn uses(code: &str) -> (Vec<Use>, String) {
    let own = children(code);
    let mut found = Vec::new();
    let mut rest = String::with_capacity(code.len());
    let mut from = 0;
    while let Some(at) = code[from..].find("use ").map(|at| at + from) {
        let before = &code[from..at];
        let statement = before.is_empty() || !is_word(code.as_bytes()[at - 1]);
        let end = code[at..].find(';').map_or(code.len(), |end| at + end + 1);
        if !statement {
            rest.push_str(&code[from..at + 4]);
            from = at + 4;
            continue;
        }
        rest.push_str(before);
        let tree = code[at + 4..end].trim_end_matches(';');
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        let mut entries = Vec::new();
        expand(&[], tree.trim(), &mut entries);
        for (mut path, name) in entries {
            if path.first().is_some_and(|first| own.contains(first)) {
                path.insert(0, "self".into());
            }
            found.push(Use {
                path,
                name,
                public: line.starts_with("pub"),
            });
        }
        from = end;
    }
    rest.push_str(&code[from..]);
    (found, rest)
}

/// Writes out `a::{b, c as d}` as paths with the names they bring.
fn expand(prefix: &[String], tree: &str, into: &mut Vec<(Vec<String>, String)>) {
    let tree = tree.trim().trim_start_matches("::");
    if tree.is_empty() {
        return;
    }
    if let Some(open) = tree.find('{') {
        let mut path = prefix.to_vec();
        path.extend(segments(&tree[..open]));
        let inner = tree[open + 1..].trim_end();
        for part in split(inner.strip_suffix('}').unwrap_or(inner)) {
            expand(&path, part, into);
        }
        return;
    }
    let (path, alias) = match tree.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim().to_owned())),
        None => (tree, None),
    };
    let mut full = prefix.to_vec();
    full.extend(segments(path));
    if full.last().is_some_and(|last| last == "self") && full.len() > 1 {
        full.pop();
    }
    let name = alias.or_else(|| full.last().cloned()).unwrap_or_default();
    into.push((full, name));
}

fn segments(path: &str) -> impl Iterator<Item = String> {
    path.split("::")
        .map(|part| part.trim().to_owned())
        .filter(|part| !part.is_empty())
}

/// Splits at the commas outside braces.
fn split(tree: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0_i32, 0, Vec::new());
    for (at, byte) in tree.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&tree[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tree[from..]);
    parts
}

/// The paths in a code that begin at the crate, here, above or in a module of this file.
fn inline(code: &str, own: &BTreeSet<String>) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let roots = ["crate", "self", "super"].map(str::to_owned);
    for root in roots.iter().chain(own) {
        let start = format!("{root}::");
        for (at, _) in code.match_indices(&start) {
            let before = code[..at].bytes().last();
            if before.is_some_and(|byte| is_word(byte) || byte == b':' || byte == b'$') {
                continue;
            }
            let path: String = code[at..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | ':'))
                .collect();
            // A visibility (`pub(in crate::a)`) is no import.
            if code[..at].trim_end().ends_with("(in") {
                continue;
            }
            let mut path: Vec<String> = segments(&path).collect();
            if own.contains(root) {
                path.insert(0, "self".into());
            }
            found.push(path);
        }
    }
    found
}

/// Whether a code has an item of this name.
fn defines(code: &str, name: &str) -> bool {
    let kinds = [
        "struct ",
        "enum ",
        "fn ",
        "trait ",
        "type ",
        "const ",
        "static ",
        "mod ",
        "union ",
        "macro_rules! ",
    ];
    code.match_indices(name).any(|(at, _)| {
        let bytes = code.as_bytes();
        let ends = bytes
            .get(at + name.len())
            .is_none_or(|byte| !is_word(*byte));
        ends && kinds.iter().any(|kind| code[..at].ends_with(kind))
    })
}

fn mentions(code: &str, name: &str) -> bool {
    !crate::words::places(code, &[name]).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::new(&format!("c/src/{path}"), text))
            .collect();
        Graph::new("c", &sources)
            .circles()
            .into_iter()
            .map(|circle| {
                circle
                    .iter()
                    .map(|path| path.replace("c/src/", ""))
                    .collect()
            })
            .collect()
    }

    #[test]
    fn a_circle_is_found_through_what_is_passed_on() {
        let circle = [
            (
                "lib.rs",
                "mod a;\nmod b;\nmod d;\npub use a::A;\npub use self::b::{B, C as E};",
            ),
            ("a.rs", "use crate::{E, d::D};\npub struct A;"),
            ("b.rs", "pub struct B;\npub struct C;\nfn f(_: crate::A) {}"),
            ("d.rs", "pub struct D;"),
        ];
        assert_eq!(graph(&circle), [["a.rs", "b.rs"]]);
        let straight = [
            circle[0],
            circle[1],
            (
                "b.rs",
                "pub struct B;\npub struct C;\n#[cfg(test)]\nmod tests { use crate::A; }",
            ),
            circle[3],
        ];
        assert!(graph(&straight).is_empty());
    }

    #[test]
    fn a_parent_and_its_child_can_be_one() {
        let text = "use super::State;\npub fn g(_: State) {}";
        let files = [
            ("lib.rs", "mod a;"),
            ("a.rs", "mod x;\npub struct State;\nfn f() { x::g(State) }"),
            ("a/x.rs", text),
        ];
        assert_eq!(graph(&files), [["a.rs", "a/x.rs"]]);
        let files = [
            files[0],
            ("a.rs", "mod x;\npub struct State;\npub use x::g;"),
            files[2],
        ];
        assert!(graph(&files).is_empty());
    }

    #[test]
    fn paths_are_written_out() {
        let mut found = Vec::new();
        expand(&[], "crate::a::{self, b::{C, d as E}, f::*}", &mut found);
        let found: Vec<String> = found
            .iter()
            .map(|(path, name)| format!("{} {name}", path.join("::")))
            .collect();
        assert_eq!(
            found,
            [
                "crate::a a",
                "crate::a::b::C C",
                "crate::a::b::d E",
                "crate::a::f::* *"
            ]
        );
    }
}
