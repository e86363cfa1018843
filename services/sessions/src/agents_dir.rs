//! The operator's directory of agents: read once, at the start.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use tg_schemas::operations::TenantSettings;

use crate::engine::catalogue::{Catalogue, FileError};
use crate::engine::tenant::{self, Levels};
use crate::error::AgentFilesError;

/// Largest file, in bytes.
const LARGEST: u64 = 1 << 20;
/// Most files.
const MOST: usize = 1_000;

/// The agents that come with the program.
const BUNDLED: [(&str, &str); 6] = [
    (
        "berlin-rag.yaml",
        include_str!("../../../blueprints/agents/berlin-rag.yaml"),
    ),
    (
        "berlin-tour.yaml",
        include_str!("../../../blueprints/agents/berlin-tour.yaml"),
    ),
    (
        "concise-de.yaml",
        include_str!("../../../blueprints/agents/concise-de.yaml"),
    ),
    (
        "librarian.yaml",
        include_str!("../../../blueprints/agents/librarian.yaml"),
    ),
    (
        "researcher-rag.yaml",
        include_str!("../../../blueprints/agents/researcher-rag.yaml"),
    ),
    (
        "researcher.yaml",
        include_str!("../../../blueprints/agents/researcher.yaml"),
    ),
];

/// Reads what the operator says of workspaces. Where there is no file, nothing. Blocks.
///
/// # Errors
/// What is wrong with the file.
pub(crate) fn levels(
    file: &Path,
    process: TenantSettings,
    models: Vec<String>,
) -> Result<Levels, AgentFilesError> {
    let fail = |reason: String| {
        AgentFilesError(vec![FileError {
            file: file.file_name().unwrap_or_default().display().to_string(),
            field: String::new(),
            reason,
        }])
    };
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::from("tenants: []"),
        Err(error) => return Err(fail(error.to_string())),
    };
    Ok(Levels {
        yaml: tenant::read(&text, &models).map_err(fail)?,
        process,
        models,
    })
}

/// Reads the agents of a directory. Where there is none, those that come with the program. Blocks.
///
/// # Errors
/// Everything that is wrong with all files.
pub(crate) fn load(directory: &Path, allowed: &[String]) -> Result<Catalogue, AgentFilesError> {
    let (files, mut errors) = match read(directory) {
        Ok(Some(read)) => read,
        Ok(None) => return bundled(),
        Err(error) => return Err(AgentFilesError(vec![error])),
    };
    let texts = files
        .iter()
        .map(|(file, text)| (file.as_str(), text.as_str()));
    let read = Catalogue::read(texts, allowed);
    let read = read.map_err(|more| errors.extend(more));
    for error in &errors {
        tracing::error!(%error, "an agent cannot be used");
    }
    read.ok()
        .filter(|_| errors.is_empty())
        .ok_or(AgentFilesError(errors))
}

/// The agents that come with the program: of them the operator's list of models says nothing, and few systems have theirs.
fn bundled() -> Result<Catalogue, AgentFilesError> {
    let read = Catalogue::read(BUNDLED, &[]).map_err(AgentFilesError);
    read.map(Catalogue::of_flows)
}

type Files = (Vec<(String, String)>, Vec<FileError>);

/// The texts of all files by name, and what is wrong with those that cannot be read. `None`: there is no such directory.
fn read(directory: &Path) -> Result<Option<Files>, FileError> {
    let failed = |reason: String| FileError {
        file: "agents_dir".to_owned(),
        field: String::new(),
        reason,
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error.to_string())),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| failed(error.to_string()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Editors and archives leave hidden files beside those that they write.
        let is_hidden = name.starts_with('.');
        if !is_hidden && is_yaml(&name) {
            names.push(name);
        }
        if names.len() > MOST {
            return Err(failed(format!("must have at most {MOST} files")));
        }
    }
    names.sort();
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for name in names {
        match text(&directory.join(&name)) {
            Ok(text) => files.push((name, text)),
            Err(reason) => errors.push(FileError {
                file: name,
                field: String::new(),
                reason,
            }),
        }
    }
    Ok(Some((files, errors)))
}

/// By its end, in any case: systems that do not tell cases apart write either.
fn is_yaml(name: &str) -> bool {
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    ["yaml", "yml"]
        .iter()
        .any(|known| end.eq_ignore_ascii_case(known))
}

fn text(file: &Path) -> Result<String, String> {
    let size = fs::metadata(file).map_err(|error| error.to_string())?.len();
    if size > LARGEST {
        return Err("must have at most 1 MiB".to_owned());
    }
    fs::read_to_string(file).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    #[test]
    fn the_bundled_agents_are_there_without_a_directory() {
        let agents = load(Path::new("/nowhere/at/all"), &["x".to_owned()]).unwrap();
        let names: Vec<_> = agents.all().map(|one| one.name.as_str()).collect();
        let expected = [
            "berlin-rag",
            "berlin-tour",
            "concise-de",
            "librarian",
            "researcher",
            "researcher-rag",
        ];
        assert_eq!(names, expected);
        let of = |name: &str| agents.get(name).unwrap();
        assert_eq!(of("berlin-rag").rag_index.as_deref(), Some("berlin-info"));
        assert_eq!(of("librarian").tools, ["rag_query"]);
        assert_eq!(of("researcher").tools.len(), 4);
        assert!(of("concise-de").tools.is_empty());
        assert!(agents.all().all(|one| !one.system_prompt.is_empty()));
        // They answer by whatever model there is.
        assert!(agents.all().all(|one| one.settings().model.is_empty()));
    }

    #[test]
    fn line_004_all_files_that_cannot_be_used_are_named() {
        let dir = directory(&[
            ("a.yaml", "name: a b\nmodel: m\n"),
            ("b.yaml", "name: b\nmodel: m\n"),
            ("c.yml", "name: b\nmodel: m\n"),
            ("d.yaml", "name: d\nmodel: other\n"),
            ("e.txt", "name: [\n"),
        ]);
        let error = load(dir.path(), &["m".to_owned()]).unwrap_err();
        let told = error.to_string();
        for file in ["a.yaml: name: ", "c.yml: name: ", "d.yaml: model: "] {
            assert!(told.contains(file), "{told}");
        }
        assert_eq!(error.0.len(), 3);
    }

    /// The lock of an editor is a link that leads nowhere; an archive of macOS has a file of attributes beside each.
    #[test]
    fn hidden_files_are_no_agents() {
        let dir = directory(&[
            ("a.yaml", "name: a\nmodel: m\n"),
            (".a.yaml", "name: a\nmodel: m\n"),
            ("._a.yaml", "\u{0}\u{5}\u{16}\u{7}"),
        ]);
        #[cfg(unix)]
        std::os::unix::fs::symlink("ann@host.1:2", dir.path().join(".#a.yaml")).unwrap();
        let agents = load(dir.path(), &[]).unwrap();
        let names: Vec<_> = agents.all().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a"]);
    }

    /// Kubernetes mounts a map as links into a hidden directory.
    #[test]
    fn files_are_agents_by_their_end_in_any_case_and_through_links() {
        let dir = directory(&[
            ("a.YAML", "name: a\nmodel: m\n"),
            ("b.Yml", "name: b\nmodel: m\n"),
            ("c.yaml.bak", "name: ["),
            ("yaml", "name: ["),
        ]);
        let hidden = dir.path().join("..data");
        fs::create_dir(&hidden).unwrap();
        fs::write(hidden.join("d.yaml"), "name: d\nmodel: m\n").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("..data/d.yaml", dir.path().join("d.yaml")).unwrap();
        let agents = load(dir.path(), &[]).unwrap();
        let names: Vec<_> = agents.all().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "d"]);
    }

    #[test]
    fn an_empty_directory_has_no_agents() {
        let dir = directory(&[]);
        assert_eq!(load(dir.path(), &[]).unwrap().all().count(), 0);
    }
}
