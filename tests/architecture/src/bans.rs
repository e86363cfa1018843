//! What `deny.toml` bans, and what the lock file and the manifests hold, read as far as the rules need them. Knows no more of
//! TOML than how these files are written.

/// A package of the lock file, and where it comes from; `None` for one of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locked {
    /// Its name.
    pub name: String,
    /// Its source.
    pub source: Option<String>,
}

/// The packages of a lock file, whatever the platform.
pub fn locked(lock: &str) -> Vec<Locked> {
    let packages = lock.split("[[package]]").skip(1);
    packages
        .filter_map(|package| {
            let field = |name: &str| package.lines().find_map(|line| value(line, name));
            Some(Locked {
                name: field("name")?,
                source: field("source"),
            })
        })
        .collect()
}

/// The crates that `[bans]` denies.
pub fn denied(deny: &str) -> Vec<String> {
    let list = list(section(deny, "bans"), "deny");
    let crates = list.split("crate = ").skip(1);
    crates.filter_map(quoted).collect()
}

/// The licences that `[licenses]` allows.
pub fn allowed(deny: &str) -> Vec<String> {
    let list = list(section(deny, "licenses"), "allow");
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The dependencies of a manifest that any version satisfies.
pub fn wildcards(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().map(str::trim);
    lines
        .filter(|line| line.ends_with("= \"*\"") || line.contains("version = \"*\""))
        .map(str::to_owned)
        .collect()
}

/// Whether a manifest takes the lints of the workspace.
pub fn takes_lints(manifest: &str) -> bool {
    let lints = section(manifest, "lints");
    lints.lines().any(|line| line.trim() == "workspace = true")
}

/// Whether a manifest leaves out the examples in the documentation of its library.
pub fn leaves_out_examples(manifest: &str) -> bool {
    let library = section(manifest, "lib");
    library.lines().any(|line| line.trim() == "doctest = false")
}

/// Whether comments of documentation have an example that `cargo test --doc` would run: a block of code in no other language.
pub fn has_examples(text: &str) -> bool {
    let mut within = false;
    text.lines().any(|line| {
        let line = line.trim_start();
        let documents = line.strip_prefix("///").or(line.strip_prefix("//!"));
        let Some(language) = documents.and_then(|line| line.trim().strip_prefix("```")) else {
            return false;
        };
        within = !within;
        within && !["json", "text"].contains(&language)
    })
}

/// What stands below a heading, to the next one.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let heading = format!("[{heading}]");
    let Some(at) = text
        .match_indices(&heading)
        .map(|(at, _)| at)
        .find(|at| *at == 0 || text[..*at].ends_with('\n'))
    else {
        return "";
    };
    let below = &text[at + heading.len()..];
    &below[..below.find("\n[").unwrap_or(below.len())]
}

/// What stands in the brackets of a list.
fn list<'a>(section: &'a str, name: &str) -> &'a str {
    let start = format!("\n{name} = [");
    let Some(at) = section.find(&start) else {
        return "";
    };
    let list = &section[at + start.len()..];
    &list[..list.find("\n]").unwrap_or(list.len())]
}

fn value(line: &str, name: &str) -> Option<String> {
    quoted(line.strip_prefix(name)?.strip_prefix(" = ")?)
}

fn quoted(text: &str) -> Option<String> {
    let (value, _) = text.strip_prefix('"')?.split_once('"')?;
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read() {
        let deny = "[licenses]\nallow = [\n    \"MIT\",\n    \"ISC\",\n]\n[bans]\nwildcards = \"deny\"\ndeny = [\n    \
                    { crate = \"a-sys\", reason = \"b\" },\n    { crate = \"c\" },\n]\n[sources]\nallow = [\"no\"]\n";
        assert_eq!(allowed(deny), ["MIT", "ISC"]);
        assert_eq!(denied(deny), ["a-sys", "c"]);
        assert!(denied("[graph]\n").is_empty());
    }

    #[test]
    fn packages_are_read() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+x\"\n\n[[package]]\n\
                    name = \"b\"\nversion = \"1.0.0\"\ndependencies = [\n \"a\",\n]\n";
        let found = locked(lock);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].source.as_deref(), Some("registry+x"));
        assert_eq!((found[1].name.as_str(), &found[1].source), ("b", &None));
    }

    #[test]
    fn manifests_are_read() {
        let text = "[lints]\nworkspace = true\n\n[dependencies]\na = \"*\"\nb = { version = \"*\" }\nc = \"1\"\n";
        assert!(takes_lints(text) && wildcards(text).len() == 2);
        assert!(!takes_lints(
            "[dependencies]\na.workspace = true\n[lints.rust]\nx = 1\n"
        ));
    }

    #[test]
    fn examples_are_found() {
        assert!(leaves_out_examples(
            "[lib]\ndoctest = false\n\n[lints]\nworkspace = true\n"
        ));
        assert!(!leaves_out_examples("[lib]\n\n[other]\ndoctest = false\n"));
        assert!(has_examples("//! A.\n//!\n//! ```\n//! run();\n//! ```\n"));
        assert!(has_examples("    /// ```compile_fail,E0308\n    /// ```\n"));
        assert!(!has_examples(
            "/// ```json\n/// {}\n/// ```\nlet a = \"```\";\n// ```\n"
        ));
    }
}
