//! Backups of directories as services leave them, and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::TempDir;
use tg_mesh::embedded::EmbeddedBus;
use tg_storage::blob::{BlobStore, StageId};
use tg_storage::{ConfigKnown, Database, Durability};

use super::*;

fn database(dir: &Path, name: &str) -> Database {
    Database::open(&dir.join(name), &[], Durability::Process).unwrap()
}

async fn note(db: &Database, version: i64) {
    let identity = "x".to_owned();
    db.remember_config(ConfigKnown { identity, version })
        .await
        .unwrap();
}

async fn noted(dir: &Path, name: &str) -> i64 {
    let known = database(dir, name).config_known().await.unwrap();
    known.map_or(0, |known| known.version)
}

/// A text of an error with its causes.
fn said<T: std::fmt::Debug>(result: Result<T>) -> String {
    format!("{:#}", result.unwrap_err())
}

/// Two stores, content, an upload, a bus and a file of somebody's.
async fn system(dir: &Path) -> (Vec<Database>, BlobStore, EmbeddedBus) {
    let stores = vec![
        database(dir, "config.sqlite"),
        database(dir, "agent_sessions/acme.sqlite"),
    ];
    for store in &stores {
        note(store, 1).await;
    }
    let content = BlobStore::open(&dir.join("content"), Durability::Process).unwrap();
    content.put("a document").await.unwrap();
    let stage = StageId::parse("upload-1").unwrap();
    content.stage_write(&stage, 0, "half an").await.unwrap();
    fs::create_dir(dir.join("agents")).unwrap();
    fs::write(dir.join("agents/maven.yaml"), "name: maven\n").unwrap();
    let bus = EmbeddedBus::open(&dir.join("bus"), Durability::Process).unwrap();
    (stores, content, bus)
}

fn places() -> (TempDir, PathBuf, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let [data, backup, back] = ["data", "backup", "back"].map(|name| folder.path().join(name));
    fs::create_dir(&data).unwrap();
    (folder, data, backup, back)
}

#[tokio::test]
async fn what_was_there_is_restored_and_nothing_that_came_later() {
    let (_folder, data, to, back) = places();
    let (stores, content, _bus) = system(&data).await;
    let taken = take(&data, &to).unwrap();
    assert!(taken.records);
    for store in &stores {
        note(store, 2).await;
    }
    content.put("another document").await.unwrap();

    let restored = restore(&to, &back).unwrap();
    assert_eq!(restored, taken);
    for name in ["config.sqlite", "agent_sessions/acme.sqlite"] {
        assert_eq!(noted(&back, name).await, 1, "{name}");
        assert_eq!(
            back.join(name).metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    assert_eq!(back.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let mut listed: Vec<String> = taken
        .files
        .iter()
        .map(|file| file.path.display().to_string())
        .collect();
    listed.retain(|path| !path.starts_with("content/") || path.contains("staged"));
    assert_eq!(
        listed,
        [
            "agent_sessions/acme.sqlite",
            "agents/maven.yaml",
            "config.sqlite",
            "content/staged/upload-1"
        ]
    );
    let own = BlobStore::open(&back.join("content"), Durability::Process).unwrap();
    let id = own.put("a document").await.unwrap();
    assert_eq!(own.size(id).await.unwrap(), Some(10));
    assert_eq!(
        fs::read_to_string(back.join("content/staged/upload-1")).unwrap(),
        "half an"
    );
    assert!(!unfinished(&back));
    let again = back.with_file_name("again");
    assert_eq!(take(&back, &again).unwrap().files.len(), taken.files.len());
}

#[tokio::test]
async fn a_backup_needs_a_store_and_an_empty_place() {
    let (folder, data, to, _) = places();
    assert!(said(take(&folder.path().join("none"), &to)).contains("is not there"));
    assert!(said(take(&data, &to)).contains("has no store"));
    assert!(is_empty(&to).unwrap());
    let _system = system(&data).await;
    let within = data.join("backup");
    assert!(said(take(&data, &within)).contains("a place of its own"));
    fs::write(to.join("mine"), "").unwrap();
    assert!(said(take(&data, &to)).contains("needs an empty directory"));
    assert!(to.join("mine").exists());
}

#[tokio::test]
async fn what_is_not_a_whole_backup_writes_nothing() {
    let (_folder, data, to, back) = places();
    let _system = system(&data).await;
    take(&data, &to).unwrap();
    let list = to.join("backup.json");
    let text = fs::read_to_string(&list).unwrap();
    let try_with = |text: &str| {
        fs::write(&list, text).unwrap();
        let said = said(restore(&to, &back));
        assert!(is_empty(&back).unwrap(), "{said}");
        said
    };
    let newer = text.replacen("\"format\": 1", "\"format\": 2", 1);
    assert!(try_with(&newer).contains("made by a newer release"));
    let outside = text.replacen("agents/maven.yaml", "../maven.yaml", 1);
    assert!(try_with(&outside).contains("outside of it"));
    assert!(try_with("{}").contains("is damaged"));
    fs::remove_file(&list).unwrap();
    assert!(said(restore(&to, &back)).contains("is not a backup"));
    fs::write(&list, &text).unwrap();
    fs::write(to.join("agents/maven.yaml"), "name: other\n").unwrap();
    assert!(said(restore(&to, &back)).contains("agents/maven.yaml is not what was backed up"));
    fs::remove_file(to.join("agents/maven.yaml")).unwrap();
    assert!(said(restore(&to, &back)).contains("lacks agents/maven.yaml"));
    assert!(is_empty(&back).unwrap());
}

#[tokio::test]
async fn a_restore_needs_an_empty_place_and_marks_it_until_it_is_done() {
    let (_folder, data, to, back) = places();
    let _system = system(&data).await;
    take(&data, &to).unwrap();
    let refused = said(restore(&to, &data));
    assert!(refused.contains("is not empty"), "{refused}");
    fs::create_dir(&back).unwrap();
    fs::write(back.join("unfinished-restore"), "").unwrap();
    assert!(unfinished(&back));
    assert!(said(restore(&to, &back)).contains("is not empty"));
}

#[tokio::test]
async fn one_workspace_is_backed_up_alone_and_restored_into_a_new_system() {
    let (folder, data, to, back) = places();
    let _system = system(&data).await;
    let mut known = one_workspace::STORES.iter();
    let (_, config) = known.find(|(name, _)| *name == "config.sqlite").unwrap();
    for workspace in ["acme", "other"] {
        config
            .fill(&data.join("config.sqlite"), workspace, &["config_known"])
            .unwrap();
    }
    let _other = database(&data, "agent_sessions/other.sqlite");
    let acme = WorkspaceId::new("acme").unwrap();
    let taken = take_workspace(&data, &to, &acme).unwrap();
    assert_eq!(taken.workspace.as_deref(), Some("acme"));
    assert!(!taken.records);
    let listed: Vec<&Path> = taken.files.iter().map(|file| &*file.path).collect();
    let own = ["agent_sessions/acme.sqlite", "config.sqlite"].map(Path::new);
    assert_eq!(listed, own);
    let text = fs::read(to.join("config.sqlite")).unwrap();
    assert!(!text.windows(5).any(|part| part == b"other"));

    assert_eq!(restore(&to, &back).unwrap(), taken);
    assert_eq!(noted(&back, "agent_sessions/acme.sqlite").await, 1);
    let refused = said(restore(&to, &data));
    assert!(refused.contains("into a new system"), "{refused}");

    let again = folder.path().join("again");
    let nobody = WorkspaceId::new("nobody").unwrap();
    let refused = said(take_workspace(&data, &again, &nobody));
    assert!(
        refused.contains("there is no workspace nobody"),
        "{refused}"
    );
    let _strange = database(&data, "strange.sqlite");
    let refused = said(take_workspace(&data, &again, &acme));
    assert!(
        refused.contains("one workspace of strange.sqlite"),
        "{refused}"
    );
    assert!(is_empty(&again).unwrap());
}

/// What is written while a backup is taken. Without a bound each backup would hold some times what the one before held, as more is
/// written while it is copied.
const VERSIONS: usize = 300;

/// Stores are written one after the other, in two orders, while backups are taken: each shows a state of each store that was
/// there when the backup began or came later, and none that never was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_that_are_written_meanwhile_show_what_was_confirmed_before() {
    let (folder, data, _, _) = places();
    let (stores, content, _bus) = system(&data).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let (first, second) = (stores[0].clone(), stores[1].clone());
    let (reached, confirmed) = tokio::sync::watch::channel(1);
    let room = tokio::sync::Semaphore::new(0);
    let write = async {
        for version in 2.. {
            tokio::select! {
                biased;
                () = stop.cancelled() => return version - 1,
                one = room.acquire() => one.unwrap().forget(),
            }
            content.put(version.to_string()).await.unwrap();
            note(&first, version).await;
            note(&second, version).await;
            reached.send_replace(version);
        }
        0
    };
    let look = async {
        for round in 0..5 {
            room.add_permits(VERSIONS);
            let before = *confirmed.borrow();
            let (to, back) = (format!("to{round}"), format!("back{round}"));
            let (to, back) = (folder.path().join(to), folder.path().join(back));
            let (data, place) = (data.clone(), back.clone());
            let both = move || take(&data, &to).and_then(|_| restore(&to, &place));
            tokio::task::spawn_blocking(both).await.unwrap().unwrap();
            let after = *confirmed.borrow() + 1;
            for name in ["config.sqlite", "agent_sessions/acme.sqlite"] {
                let shown = noted(&back, name).await;
                assert!(
                    (before..=after).contains(&shown),
                    "{name}: {before} {shown} {after}"
                );
            }
            let shown = noted(&back, "config.sqlite").await;
            let own = BlobStore::open(&back.join("content"), Durability::Process).unwrap();
            for version in 2..=shown {
                let id = tg_storage::blob::BlobId::of(version.to_string().as_bytes());
                assert!(own.get(id).await.unwrap().is_some(), "content of {version}");
            }
        }
        stop.cancel();
    };
    let (last, ()) = tokio::join!(write, look);
    assert!(last > 5, "{last}");
}
