//! Arrows between crates, their licences, and dependencies that nothing uses.

use std::collections::{BTreeMap, BTreeSet};

use tg_architecture_tests::licence::allowed;
use tg_architecture_tests::manifest::{forbidden, members, packages};
use tg_architecture_tests::source::{Source, all, root};
use tg_architecture_tests::words::places;

/// The storeys of `crates/`: each may use those before it. A crate that is not named here may use none of them.
const LADDER: &[&str] = &[
    "crates/citations",
    "crates/reader",
    "crates/replies",
    "crates/compaction",
    "crates/provenance",
    "crates/core-file",
    "crates/jwt",
    "crates/console",
    "crates/document",
    "crates/counted-alloc",
    "crates/settings",
    "crates/threads",
    "crates/tls",
    "crates/provider-http",
    "crates/storage",
    "crates/telemetry",
    "crates/templates",
    "crates/bus",
    "crates/rpc",
    "crates/mesh",
    "crates/runs",
    "crates/clients",
    "crates/collections",
];

/// Licences under which a package may be built in.
pub(crate) const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Dependencies whose name no file writes, and what they are for all the same.
const SILENT: &[(&str, &str, &str)] = &[
    ("crates/tokens", "aho-corasick", BUILT_ONCE),
    ("crates/tokens", "regex-automata", BUILT_ONCE),
];
const BUILT_ONCE: &str = "names features, so that the build script and the programs share packages";

/// What pure crates may depend on: nothing that waits, opens or connects.
const PURE: &[&str] = &[
    "schemas",
    "crates/citations",
    "crates/reader",
    "crates/replies",
    "crates/compaction",
    "crates/provenance",
    "crates/core-file",
    "crates/jwt",
    "crates/document",
    "crates/threads",
    "crates/templates",
];
const IMPURE: &[&str] = &[
    "tokio",
    "tokio-util",
    "futures",
    "async-trait",
    "lapin",
    "reqwest",
    "rusqlite",
    "axum",
    "hyper",
    "tg-storage",
    "tg-bus",
    "tg-mesh",
];

#[test]
fn arrows_between_crates_point_down() {
    let found = forbidden(&packages(), LADDER);
    assert!(
        found.is_empty(),
        "arrows that nobody may draw:\n  {}",
        found.join("\n  ")
    );
}

#[test]
fn pure_crates_stay_pure() {
    let packages = packages();
    let members = members(&packages);
    for folder in PURE {
        let package = members
            .get(folder)
            .unwrap_or_else(|| panic!("{folder} is gone"));
        for dependency in package.dependencies.iter().filter(|entry| !entry.dev) {
            let name = dependency.name.as_str();
            assert!(!IMPURE.contains(&name), "{folder} depends on {name}");
        }
    }
}

/// Levels of optimisation in the build for tests, by package: of `[profile.dev.package.NAME]` and of rows of `[profile.dev.package]`.
fn levels(manifest: &str) -> BTreeMap<String, String> {
    let mut levels = BTreeMap::new();
    let mut table = None;
    for line in manifest.lines() {
        if line.starts_with('[') {
            table = line.strip_prefix("[profile.dev.package");
        } else if let Some(table) = table
            && let Some((row, level)) = line.split_once("opt-level = ")
        {
            let name = table.trim_matches(['.', ']', '"']);
            let name = match name.is_empty() {
                true => row.trim_end_matches('.'),
                false => name,
            };
            levels.insert(name.to_owned(), level.to_owned());
        }
    }
    levels
}

/// Not optimised below optimised crates: a macro gives no functions.
const SLOW_BELOW: &[&str] = &["async-trait"];

/// A package that is not optimised gives its copies of generic functions to all above it: loops of an optimised crate would call
/// them.
#[test]
fn what_lies_below_an_optimised_crate_is_optimised() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let levels = levels(&manifest);
    let level = |name: &str| levels.get(name).map(String::as_str);
    assert_eq!(level("tg-bus"), Some("1"));
    assert_eq!(level("async-trait"), Some("0"));
    let packages = packages();
    let mut slow = Vec::new();
    for (folder, package) in members(&packages) {
        if level(&package.name) != Some("1") {
            continue;
        }
        for below in package.dependencies.iter().filter(|entry| !entry.dev) {
            let name = below.name.as_str();
            let optimised = match name.starts_with("tg-") {
                true => level(name) == Some("1"),
                false => level(name) != Some("0") || SLOW_BELOW.contains(&name),
            };
            if !optimised {
                slow.push(format!("{folder}: {name}"));
            }
        }
    }
    assert!(slow.is_empty(), "not optimised:\n  {}", slow.join("\n  "));
}

#[test]
fn every_licence_is_allowed() {
    let refused: Vec<String> = packages()
        .iter()
        .filter(|package| !allowed(&package.licence, LICENCES))
        .map(|package| format!("{} {}: {}", package.name, package.version, package.licence))
        .collect();
    assert!(
        refused.is_empty(),
        "licences not allowed:\n  {}",
        refused.join("\n  ")
    );
}

#[test]
fn a_dependency_of_ours_has_one_version() {
    let packages = packages();
    let direct: BTreeSet<&str> = members(&packages)
        .values()
        .flat_map(|package| &package.dependencies)
        .map(|dependency| dependency.name.as_str())
        .collect();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages
        .iter()
        .filter(|package| direct.contains(package.name.as_str()))
    {
        versions
            .entry(&package.name)
            .or_default()
            .insert(&package.version);
    }
    let double: Vec<String> = versions
        .iter()
        .filter(|(name, versions)| {
            versions.len() > 1 && !DOUBLE.iter().any(|(double, _)| double == *name)
        })
        .map(|(name, versions)| format!("{name}: {versions:?}"))
        .collect();
    assert!(
        double.is_empty(),
        "built in more than one version:\n  {}",
        double.join("\n  ")
    );
    for (name, _) in DOUBLE {
        assert!(
            versions.get(name).is_some_and(|all| all.len() > 1),
            "{name} has one version: strike it"
        );
    }
}

/// What is built twice although we name it, and who asks for the other version.
const DOUBLE: &[(&str, &str)] = &[
    (
        "base64",
        "tokenizers and axum's client parts ask for others",
    ),
    ("rand", "apache-avro asks for a newer one"),
    ("sha2", "lopdf asks for an older one"),
    (
        "syn",
        "derives of others ask for either; ours is for tests alone",
    ),
    (
        "webpki-roots",
        "tokio-tungstenite asks for the older name of the same roots",
    ),
];

#[test]
fn every_dependency_is_used() {
    let packages = packages();
    let sources = all();
    let mut idle = Vec::new();
    for (folder, package) in members(&packages) {
        for dependency in &package.dependencies {
            let silent = SILENT
                .iter()
                .any(|(of, name, _)| *of == folder && *name == dependency.name);
            if used(folder, &dependency.called, dependency.dev, &sources) == silent {
                let what = if silent {
                    "is used: strike the exception"
                } else {
                    "is not used"
                };
                idle.push(format!("{folder}: {} {what}", dependency.name));
            }
        }
    }
    assert!(idle.is_empty(), "dependencies:\n  {}", idle.join("\n  "));
}

/// The names that a section of a manifest sets, with what they are set to.
fn section<'a>(manifest: &'a str, of: &[&str]) -> Vec<(&'a str, &'a str)> {
    let mut inside = false;
    let mut rows = Vec::new();
    for line in manifest.lines() {
        if let Some(name) = line.strip_prefix('[') {
            inside = of.iter().any(|of| name.starts_with(&format!("{of}]")));
        } else if inside && let Some((name, value)) = line.split_once('=') {
            rows.push((name.trim(), value.trim()));
        }
    }
    rows
}

/// Dependencies have their versions in the workspace's table, all of which somebody takes.
#[test]
fn versions_stand_in_one_table_and_all_of_it_is_taken() {
    let read = |path: String| std::fs::read_to_string(root().join(path)).expect("a manifest");
    let table = read("Cargo.toml".to_owned());
    let table = section(&table, &["workspace.dependencies"]);
    let mut taken = BTreeSet::new();
    let mut faults = Vec::new();
    for (folder, _) in members(&packages()) {
        let manifest = read(format!("{folder}/Cargo.toml"));
        let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
        for (name, value) in section(&manifest, &kinds) {
            let name = name.strip_suffix(".workspace").unwrap_or(name);
            taken.insert(name.to_owned());
            if value.contains("version") || value.starts_with('"') {
                faults.push(format!("{folder}: {name} has a version of its own"));
            }
        }
    }
    assert!(table.len() > 60, "the table is read");
    let idle = table.iter().filter(|(name, _)| !taken.contains(*name));
    faults.extend(idle.map(|(name, _)| format!("nobody takes {name}")));
    assert!(
        faults.is_empty(),
        "dependencies:\n  {}",
        faults.join("\n  ")
    );
}

/// Whether a file of the package writes the name: any for what is for tests, one that ships or its tests else.
fn used(folder: &str, name: &str, dev: bool, sources: &[Source]) -> bool {
    let below = format!("{folder}/");
    sources
        .iter()
        .filter(|source| source.path.starts_with(&below))
        .any(|source| {
            let text = if dev || source.test || folder.starts_with("tests/") {
                &source.text
            } else {
                &source.code
            };
            !places(text, &[name]).is_empty()
        })
}

#[test]
fn an_idle_dependency_is_found() {
    let sources = [Source::new(
        "a/src/lib.rs",
        "use b_c::D;\n// e\n#[cfg(test)]\nmod tests { use f::G; }",
    )];
    assert!(used("a", "b_c", false, &sources));
    assert!(!used("a", "b", false, &sources) && !used("a", "e", false, &sources));
    assert!(used("a", "f", true, &sources) && !used("a", "f", false, &sources));
}
