//! What cargo says of the crates: members, their dependencies, and every package that the build uses.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::source::root;

/// A package.
#[derive(Debug, Clone)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The licence expression.
    pub licence: String,
    /// Its folder below the root, if it is a member of the workspace.
    pub folder: Option<String>,
    /// What its manifest names.
    pub dependencies: Vec<Dependency>,
}

/// A line of a manifest's dependencies.
#[derive(Debug, Clone)]
pub struct Dependency {
    /// The package's name.
    pub name: String,
    /// The name by which the code calls it.
    pub called: String,
    /// Whether it is for tests and examples only.
    pub dev: bool,
}

/// Every package of the build on this platform, members included.
///
/// # Panics
///
/// If cargo cannot be run or does not answer with its metadata: then nothing can be held.
pub fn packages() -> Vec<Package> {
    let root = root();
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(&root)
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("metadata is JSON");
    read(&metadata, &root.to_string_lossy())
}

/// The packages of the metadata of a workspace that lies at `root`.
pub fn read(metadata: &Value, root: &str) -> Vec<Package> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let members: BTreeSet<String> = list(&metadata["workspace_members"])
        .iter()
        .map(text)
        .collect();
    let used: BTreeSet<String> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| text(&node["id"]))
        .collect();
    let mut packages = Vec::new();
    for package in list(&metadata["packages"]) {
        let id = text(&package["id"]);
        if !used.contains(&id) {
            continue;
        }
        let manifest = text(&package["manifest_path"]);
        let folder = manifest.strip_prefix(root).map(|path| {
            let path = path.trim_start_matches('/');
            path.trim_end_matches("Cargo.toml")
                .trim_end_matches('/')
                .to_owned()
        });
        let dependencies = list(&package["dependencies"])
            .iter()
            .map(|entry| Dependency {
                name: text(&entry["name"]),
                called: match entry["rename"].as_str() {
                    Some(renamed) => renamed.replace('-', "_"),
                    None => text(&entry["name"]).replace('-', "_"),
                },
                dev: entry["kind"] == "dev",
            })
            .collect();
        packages.push(Package {
            name: text(&package["name"]),
            version: text(&package["version"]),
            licence: text(&package["license"]),
            folder: folder.filter(|_| members.contains(&id)),
            dependencies,
        });
    }
    packages
}

/// The members of the workspace by their folders.
pub fn members(packages: &[Package]) -> BTreeMap<&str, &Package> {
    packages
        .iter()
        .filter_map(|package| Some((package.folder.as_deref()?, package)))
        .collect()
}

/// The ring of a folder: an arrow may only point to a smaller one.
pub fn ring(folder: &str) -> u8 {
    match folder.split('/').next().unwrap_or_default() {
        "schemas" => 1,
        "crates" => 2,
        "services" => 3,
        "server" | "cli" => 4,
        _ => 5,
    }
}

/// Arrows between members that no member may draw: upward, from a service to a service, from the commands to a
/// service, within the ladder of `crates/` from a storey to one that is not below it. Test-only arrows may reach the
/// testkit and nothing else that is above.
pub fn forbidden(packages: &[Package], ladder: &[&str]) -> Vec<String> {
    let by_name: BTreeMap<&str, &Package> = packages
        .iter()
        .filter(|package| package.folder.is_some())
        .map(|package| (package.name.as_str(), package))
        .collect();
    let mut found = Vec::new();
    for package in by_name.values() {
        let from = package.folder.as_deref().unwrap_or_default();
        for dependency in &package.dependencies {
            let Some(to) = by_name
                .get(dependency.name.as_str())
                .and_then(|target| target.folder.as_deref())
            else {
                continue;
            };
            if !may(from, to, dependency.dev, ladder) {
                found.push(format!("{from} -> {to}"));
            }
        }
    }
    found
}

fn may(from: &str, to: &str, dev: bool, ladder: &[&str]) -> bool {
    if to == "crates/testkit" {
        return dev || ring(from) == 5;
    }
    if from == "crates/testkit" {
        return ring(to) < 3;
    }
    match (ring(from), ring(to)) {
        (1, _) => false,
        (2, 2) => {
            let storey = |folder: &str| ladder.iter().position(|name| *name == folder);
            match (storey(from), storey(to)) {
                (Some(from), Some(to)) => to < from,
                _ => false,
            }
        }
        (3, 3) => false,
        (4, 3) => from != "cli",
        (4, 4) => false,
        (from, to) => to < from,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str, needs: &[(&str, bool)]) -> Package {
        let dependencies = needs.iter().map(|(name, dev)| Dependency {
            name: (*name).into(),
            called: (*name).into(),
            dev: *dev,
        });
        Package {
            name: folder.into(),
            version: "1".into(),
            licence: "MIT".into(),
            folder: Some(folder.into()),
            dependencies: dependencies.collect(),
        }
    }

    #[test]
    fn arrows_point_down() {
        let ladder = ["crates/storage", "crates/bus"];
        let world = |from: &str, to: &str, dev: bool| {
            let packages = [package(from, &[(to, dev)]), package(to, &[])];
            forbidden(&packages, &ladder).is_empty()
        };
        assert!(world("services/a", "crates/bus", false));
        assert!(world("crates/bus", "crates/storage", false));
        assert!(world("server", "services/a", false));
        assert!(world("services/a", "crates/testkit", true));
        assert!(world("crates/testkit", "crates/bus", false));
        for (from, to) in [
            ("schemas", "crates/bus"),
            ("crates/storage", "crates/bus"),
            ("crates/bus", "crates/unknown"),
            ("crates/bus", "services/a"),
            ("services/a", "services/b"),
            ("services/a", "server"),
            ("services/a", "crates/testkit"),
            ("cli", "services/a"),
            ("cli", "server"),
        ] {
            assert!(!world(from, to, false), "{from} -> {to}");
        }
        assert!(!world("services/a", "services/b", true));
    }

    #[test]
    fn cargo_is_understood() {
        let packages = packages();
        let members = members(&packages);
        assert_eq!(members["schemas"].name, "tg-schemas");
        assert!(packages.len() > members.len() * 3);
        assert!(
            members["schemas"]
                .dependencies
                .iter()
                .any(|dependency| dependency.called == "serde_json")
        );
    }
}
