//! Documents whose file is gone from a directory that the user named: by the names of the library's files it is looked which
//! would have been there.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::super::listing::documents;
use super::super::metadata::iri;
use super::find::{Source, machine};
use super::shelf::Shelf;
use crate::client::{Http, Result};

/// Removes them from the library. Returns where each was, and its id.
pub(super) async fn remove(http: &Http, directories: &[PathBuf]) -> Result<Vec<(PathBuf, String)>> {
    let shelf = Shelf::of(&documents(http, false).await?, &[]);
    let gone = gone(&shelf, directories, &machine());
    for (_, id) in &gone {
        let request = json!({"operation": "remove-document", "document-id": id});
        http.service("librarian", request).await?;
    }
    Ok(gone)
}

fn gone(shelf: &Shelf, directories: &[PathBuf], machine: &str) -> Vec<(PathBuf, String)> {
    let mut gone = Vec::new();
    for (id, file) in shelf.files() {
        if Path::new(file).file_name().is_none_or(|name| name != file) {
            continue;
        }
        let was = directories.iter().map(|directory| directory.join(file));
        // What cannot be looked at may well be there.
        let was = was.filter(|path| {
            let about = path.symlink_metadata();
            about.is_err_and(|fault| fault.kind() == ErrorKind::NotFound)
        });
        let mut was = was.filter(|path| {
            let key = Source::File(path.clone()).key(machine);
            iri("doc", key.as_bytes()) == id
        });
        if let Some(path) = was.next() {
            gone.push((path, id.to_owned()));
        }
    }
    gone.sort();
    gone
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::find::directories;
    use super::*;

    #[test]
    fn only_files_of_the_directories_are_gone() {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("below");
        fs::create_dir_all(below.join(".hidden")).expect("made");
        let named = [folder.path().to_owned()];
        let all = directories(&named);
        assert_eq!(all.len(), 2, "{all:?}");
        let id = |directory: &Path, name: &str| {
            let path = directory.canonicalize().expect("there").join(name);
            iri("doc", Source::File(path).key("m").as_bytes())
        };
        fs::write(below.join("here.md"), "x").expect("written");
        let document =
            |id: String, name: &str| json!({"id": id, "kind": "text/plain", "comments": name});
        let elsewhere = tempfile::tempdir().expect("a folder");
        let documents = [
            document(id(&below, "gone.md"), "gone.md"),
            document(id(&below, "here.md"), "here.md"),
            document(id(elsewhere.path(), "gone.md"), "gone.md"),
            document("urn:d".to_owned(), "a comment"),
            document("urn:e".to_owned(), "../x"),
        ];
        let shelf = Shelf::of(&documents, &[]);
        let found = gone(&shelf, &all, "m");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0.ends_with("below/gone.md"));
        assert!(gone(&shelf, &all, "another machine").is_empty());
    }
}
