//! `deny.toml`, held without cargo-deny: what is banned is not built in, and what is built in comes from where it may.

use std::collections::BTreeSet;

use tg_architecture_tests::bans::{
    allowed, denied, has_examples, leaves_out_examples, locked, takes_lints, wildcards,
};
use tg_architecture_tests::manifest::{members, packages};
use tg_architecture_tests::source::{all, root};

use crate::rings::LICENCES;

/// The one registry.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Members that do not take the lints of the workspace, and why.
const OWN_LINTS: &[(&str, &str)] = &[(
    "crates/counted-alloc",
    "an allocator is made of unsafe functions (decision 12)",
)];

fn file(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn what_is_banned_is_not_built_in() {
    let denied = denied(&file("deny.toml"));
    assert!(!denied.is_empty(), "deny.toml bans nothing any more");
    let locked = locked(&file("Cargo.lock"));
    assert!(locked.len() > 100, "the lock file was not read");
    let found: Vec<&str> = locked
        .iter()
        .map(|package| package.name.as_str())
        .filter(|name| denied.iter().any(|denied| denied == name))
        .collect();
    assert!(found.is_empty(), "banned and built in: {found:?}");
}

#[test]
fn both_lists_of_licences_are_one() {
    let theirs: BTreeSet<String> = allowed(&file("deny.toml")).into_iter().collect();
    let ours: BTreeSet<String> = LICENCES.iter().map(|one| (*one).to_owned()).collect();
    assert_eq!(theirs, ours, "deny.toml and tests/architecture");
}

#[test]
fn what_is_not_ours_comes_from_the_registry() {
    let packages = packages();
    let ours: BTreeSet<&str> = members(&packages)
        .values()
        .map(|package| package.name.as_str())
        .collect();
    let mut found = Vec::new();
    for package in locked(&file("Cargo.lock")) {
        let known = match &package.source {
            Some(source) => source == REGISTRY,
            None => ours.contains(package.name.as_str()),
        };
        if !known {
            found.push(format!("{}: {:?}", package.name, package.source));
        }
    }
    assert!(found.is_empty(), "sources:\n  {}", found.join("\n  "));
}

#[test]
fn every_manifest_names_versions_and_takes_the_lints() {
    let packages = packages();
    let mut found = Vec::new();
    for wildcard in wildcards(&file("Cargo.toml")) {
        found.push(format!("Cargo.toml: {wildcard}"));
    }
    for folder in members(&packages).keys() {
        let manifest = file(&format!("{folder}/Cargo.toml"));
        for wildcard in wildcards(&manifest) {
            found.push(format!("{folder}: {wildcard}"));
        }
        let own = OWN_LINTS.iter().any(|(path, _)| path == folder);
        if takes_lints(&manifest) == own {
            found.push(format!("{folder}: lints of the workspace"));
        }
    }
    assert!(found.is_empty(), "manifests:\n  {}", found.join("\n  "));
}

/// `make test` runs the examples of a library unless its manifest leaves them out: then it may have none.
#[test]
fn a_library_whose_examples_are_left_out_has_none() {
    let sources = all();
    let (mut found, mut left_out) = (Vec::new(), 0);
    for folder in members(&packages()).keys() {
        if !leaves_out_examples(&file(&format!("{folder}/Cargo.toml"))) {
            continue;
        }
        left_out += 1;
        let below = format!("{folder}/src/");
        let own = sources
            .iter()
            .filter(|source| source.path.starts_with(&below));
        let with = own.filter(|source| has_examples(&source.text));
        found.extend(with.map(|source| source.path.clone()));
    }
    assert!(left_out > 20, "the manifests were not read");
    assert!(
        found.is_empty(),
        "examples that nothing runs (remove `doctest = false`):\n  {}",
        found.join("\n  ")
    );
}
