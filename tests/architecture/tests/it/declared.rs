//! Every file of the project is compiled.

use std::collections::BTreeMap;

use tg_architecture_tests::source::all;

/// A file that no other declares is not compiled: whoever reads it is misled.
#[test]
fn every_file_is_declared_by_another() {
    let sources = all();
    let texts: BTreeMap<&str, &str> = sources
        .iter()
        .map(|source| (source.path.as_str(), source.text.as_str()))
        .collect();
    let declared = |path: &str| {
        let place = path.strip_suffix("/mod.rs");
        let place = place.or_else(|| path.strip_suffix(".rs"))?;
        let (folder, name) = place.rsplit_once('/')?;
        let (attributed, declared) = (format!("\"{name}.rs\""), format!("mod {name};"));
        let above = |file: &str| {
            let beside = file.rsplit_once('/').is_some_and(|(of, _)| of == folder);
            beside || file.strip_suffix(".rs") == Some(folder)
        };
        let mut above = texts.iter().filter(|(file, _)| above(file));
        above
            .any(|(_, text)| text.contains(&declared) || text.contains(&attributed))
            .then_some(())
    };
    // A root: of a library, a program, a test, a bench or an example.
    let root = |path: &str| {
        let place = path.trim_end_matches("/main.rs").trim_end_matches(".rs");
        let folder = place.rsplit('/').nth(1);
        matches!(folder, Some("bin" | "tests" | "benches" | "examples"))
            || ["lib.rs", "main.rs", "build.rs"]
                .iter()
                .any(|file| path.ends_with(&format!("/{file}")))
    };
    let orphans: Vec<&str> = sources
        .iter()
        .map(|source| source.path.as_str())
        .filter(|path| !root(path) && declared(path).is_none())
        .collect();
    assert!(orphans.is_empty(), "nothing declares {orphans:?}");
}
