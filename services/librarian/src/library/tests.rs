//! What is added is found, in its workspace only; repeats are told from duplicates; content is shared.

use super::*;
use crate::engine::asker::Asker;
use crate::engine::upload::Wanted;
use crate::store::SqliteLibrary;
use tempfile::{TempDir, tempdir};
use tg_schemas::paging::Asked;
use tg_schemas::{ErrorCode, Term, Triple};
use tg_storage::Durability;
use tg_storage::blob::BlobStore;

fn open(dir: &TempDir) -> Library {
    open_with(dir, Quota::default())
}

fn open_with(dir: &TempDir, quota: Quota) -> Library {
    let content = dir.path().join("content");
    let rows = dir.path().join("rows");
    let rows = SqliteLibrary::open(&rows, Durability::Process).unwrap();
    let content = BlobStore::open(&content, Durability::Process).unwrap();
    Library::new(Arc::new(rows), Arc::new(content), quota)
}

fn asker(workspace: &str, question: &str) -> Asker {
    Asker {
        workspace: workspace.to_owned(),
        question: question.to_owned(),
        ..Asker::default()
    }
}

fn document(id: &str) -> Option<DocumentMetadata> {
    Some(DocumentMetadata {
        id: id.to_owned(),
        time: 7,
        kind: "text/plain".to_owned(),
        title: format!("title of {id}"),
        metadata: vec![Triple::new(
            Term::iri(id),
            Term::iri("urn:p"),
            Term::Quoted(Box::default()),
        )],
        tags: vec!["a".to_owned(), "b".to_owned()],
        ..DocumentMetadata::default()
    })
}

fn typed(id: &str, kind: &str) -> Option<DocumentMetadata> {
    document(id).map(|document| DocumentMetadata {
        document_type: kind.to_owned(),
        ..document
    })
}

fn child(id: &str, parent: &str) -> Option<DocumentMetadata> {
    document(id).map(|document| DocumentMetadata {
        parent_id: parent.to_owned(),
        ..document
    })
}

fn announced(total: i64, chunk: i64) -> Wanted {
    Wanted {
        total,
        chunk,
        ..Wanted::default()
    }
}

async fn ids(library: &Library, asker: &Asker, everything: bool) -> Vec<String> {
    let listed = Listed {
        everything,
        ..Listed::default()
    };
    let all = library.list(asker, listed, Asked::default()).await.unwrap();
    all.entries
        .into_iter()
        .map(|document| document.id)
        .collect()
}

async fn parts(library: &Library, asker: &Asker, parent: &str) -> Vec<DocumentMetadata> {
    let page = library.children(asker, parent, Asked::default()).await;
    page.unwrap().entries
}

/// A document as the library tells of it.
fn holding(document: DocumentMetadata, content: &[u8]) -> DocumentMetadata {
    DocumentMetadata {
        content_hash: tg_storage::blob::BlobId::of(content).to_string(),
        ..document
    }
}

#[tokio::test]
async fn documents_are_found_in_their_workspace_only() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let (one, two) = (asker("one", ""), asker("two", ""));
    library
        .add(&one, document("urn:d"), b"text".into())
        .await
        .unwrap();
    assert_eq!(
        library.metadata(&one, "urn:d").await.unwrap(),
        holding(document("urn:d").unwrap(), b"text")
    );
    assert_eq!(library.content(&one, "urn:d").await.unwrap(), b"text");
    for missing in [
        library.metadata(&two, "urn:d").await.err(),
        library.content(&two, "urn:d").await.err(),
        library.remove(&two, "urn:d").await.err(),
        library.update(&two, document("urn:d"), None).await.err(),
    ] {
        assert_eq!(missing.unwrap().code(), ErrorCode::NotFound);
    }
    assert!(ids(&library, &two, true).await.is_empty());
    drop(library);
    assert_eq!(ids(&open(&dir), &one, false).await, ["urn:d"]);
}

#[tokio::test]
async fn many_are_added_at_once_and_what_is_known_stays() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "q1");
    library.add(&me, document("a"), b"x".into()).await.unwrap();
    let many = || ["a", "b", "c"].map(|id| document(id).unwrap()).to_vec();
    let contents = || vec![b"other".to_vec(), b"y".to_vec(), b"z".to_vec()];
    for question in ["q2", "q2", "q3"] {
        let asker = asker("w", question);
        let others = library.add_all(&asker, many(), contents());
        let others: Vec<_> = others
            .await
            .unwrap()
            .into_iter()
            .map(|one| one.id)
            .collect();
        assert_eq!(others, ["a"]);
    }
    assert_eq!(library.content(&me, "a").await.unwrap(), b"x");
    assert_eq!(library.content(&me, "c").await.unwrap(), b"z");
    let uneven = library.add_all(&me, many(), vec![b"x".to_vec()]).await;
    assert_eq!(uneven.unwrap_err().code(), ErrorCode::BadRequest);
}

#[tokio::test]
async fn repeats_are_told_from_duplicates() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let (first, second) = (asker("w", "q1"), asker("w", "q2"));
    library
        .add(&first, document("d"), b"x".into())
        .await
        .unwrap();
    library
        .add(&first, document("d"), b"x".into())
        .await
        .unwrap();
    // Another question with the same document repeats what was done, whoever lost the answer.
    library
        .add(&second, document("d"), b"x".into())
        .await
        .unwrap();
    let third = asker("w", "q8");
    let duplicate = library.add(&third, document("d"), b"y".into()).await;
    assert_eq!(duplicate.unwrap_err().code(), ErrorCode::Conflict);
    // The refused question may ask again, and is still refused.
    let again = library.add(&third, document("d"), b"y".into()).await;
    assert_eq!(again.unwrap_err().code(), ErrorCode::Conflict);

    let answer = || typed("a", "answer");
    library
        .add(&asker("w", "q3"), answer(), b"x".into())
        .await
        .unwrap();
    library
        .add(&asker("w", "q4"), answer(), b"x".into())
        .await
        .unwrap();
    let other = library.add(&asker("w", "q5"), answer(), b"y".into()).await;
    assert_eq!(other.unwrap_err().code(), ErrorCode::Conflict);

    let removal = asker("w", "q6");
    library.remove(&removal, "d").await.unwrap();
    library.remove(&removal, "d").await.unwrap();
    assert!(library.remove(&asker("w", "q7"), "d").await.is_err());
}

#[tokio::test]
async fn what_is_missing_is_named() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "");
    let without = |change: fn(&mut DocumentMetadata)| {
        let mut document = document("d");
        document.iter_mut().for_each(change);
        document
    };
    let why = async |document| library.add(&me, document, Vec::new()).await.unwrap_err();
    assert_eq!(why(None).await.message, "document-metadata: is required");
    let no_id = why(without(|d| d.id.clear())).await;
    assert_eq!(no_id.message, "document-metadata.id: is required");
    let acting = why(without(|d| d.id.push('\u{1b}'))).await;
    let told = "document-metadata.id: must not have control characters";
    assert_eq!(acting.message, told);
    let no_kind = why(without(|d| d.kind.clear())).await;
    assert_eq!(no_kind.message, "Document kind (MIME type) is required");
    let orphan = library
        .add_child(&me, child("c", "nobody"), Vec::new())
        .await;
    assert_eq!(orphan.unwrap_err().code(), ErrorCode::NotFound);
}

#[tokio::test]
async fn lists_hide_parts_and_answers() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "");
    library.add(&me, document("d"), b"1".into()).await.unwrap();
    library
        .add(&me, typed("a", "answer"), b"2".into())
        .await
        .unwrap();
    library
        .add_child(&me, child("c", "d"), b"3".into())
        .await
        .unwrap();
    library
        .add_child(&me, child("cc", "c"), b"4".into())
        .await
        .unwrap();
    assert_eq!(ids(&library, &me, false).await, ["d"]);
    assert_eq!(ids(&library, &me, true).await, ["d", "a", "c", "cc"]);
    let parts = parts(&library, &me, "d").await;
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].document_type, "extracted");
    library.remove(&me, "d").await.unwrap();
    assert_eq!(ids(&library, &me, true).await, ["a"]);
}

#[tokio::test]
async fn shared_content_stays_until_the_last_document_goes() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let (one, two) = (asker("one", ""), asker("two", ""));
    library
        .add(&one, document("d"), b"same".into())
        .await
        .unwrap();
    library
        .add(&two, document("d"), b"same".into())
        .await
        .unwrap();
    library.remove(&one, "d").await.unwrap();
    assert_eq!(library.content(&two, "d").await.unwrap(), b"same");
    library.remove(&two, "d").await.unwrap();
    let id = BlobId::of(b"same");
    assert_eq!(library.content.size(id).await.unwrap(), None);
}

#[tokio::test]
async fn only_what_may_change_is_updated() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "");
    library.add(&me, document("d"), b"1".into()).await.unwrap();
    let new = DocumentMetadata {
        id: "d".to_owned(),
        title: "new".to_owned(),
        kind: "ignored/ignored".to_owned(),
        parent_id: "ignored".to_owned(),
        ..DocumentMetadata::default()
    };
    library.update(&me, Some(new), None).await.unwrap();
    let found = library.metadata(&me, "d").await.unwrap();
    assert_eq!((found.title.as_str(), found.time), ("new", 0));
    assert_eq!(
        (found.kind.as_str(), found.parent_id.as_str()),
        ("text/plain", "")
    );
    assert!(found.tags.is_empty() && found.metadata.is_empty());
}

#[tokio::test]
async fn pieces_add_up() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "");
    for (size, piece, expected) in [(0, 4, 1), (3, 4, 1), (8, 4, 2), (9, 4, 3)] {
        let content: Vec<u8> = (0..size).collect();
        let id = format!("d{size}");
        library
            .add(&me, document(&id), content.clone())
            .await
            .unwrap();
        let mut pieces = library.pieces(&me, &id, piece).await.unwrap();
        let mut read = Vec::new();
        let mut count = 0;
        while let Some(piece) = pieces.next().await.unwrap() {
            read.extend(piece.bytes);
            count += 1;
            assert_eq!(piece.index + 1, count);
            assert_eq!(piece.pieces, expected);
            assert_eq!(piece.received, read.len() as u64);
            assert_eq!(piece.total, u64::from(size));
            assert_eq!(pieces.ended(), count == expected);
        }
        assert_eq!((read, count), (content, expected));
    }
}

mod quota;
mod uploads;

#[tokio::test]
async fn large_content_is_a_file_and_small_is_not() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "");
    let large = vec![7; SMALL + 1];
    let small = vec![7; SMALL];
    library
        .add(&me, document("l"), large.clone())
        .await
        .unwrap();
    library
        .add(&me, document("s"), small.clone())
        .await
        .unwrap();
    let file = async |content: &[u8]| library.content.size(BlobId::of(content)).await.unwrap();
    assert_eq!(file(&large).await, Some(large.len() as u64));
    assert_eq!(file(&small).await, None);
    library.remove_orphans().await.unwrap();
    let ids = ["l", "nobody", "s"].map(str::to_owned).to_vec();
    let (contents, found) = library.contents(&me, ids).await.unwrap();
    assert_eq!(contents, [Some(large.clone()), None, Some(small)]);
    assert_eq!(found.len(), 2);
    let new = library.update(&me, document("l"), Some(b"other".into()));
    new.await.unwrap();
    assert_eq!(library.content(&me, "l").await.unwrap(), b"other");
    library.tidy(0).await.unwrap();
    assert_eq!(file(&large).await, None);
}

#[tokio::test]
async fn a_document_that_came_along_gets_an_id_and_keeps_it() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "");
    let id = library.ensure(&me, None, b"hello".into()).await.unwrap();
    assert_eq!(id, ids::document(&BlobId::of(b"hello")));
    assert_eq!(
        library.ensure(&me, None, b"hello".into()).await.unwrap(),
        id
    );
    let known = Some(DocumentMetadata {
        id: id.clone(),
        ..DocumentMetadata::default()
    });
    library
        .ensure(&me, known.clone(), b"edited".into())
        .await
        .unwrap();
    assert_eq!(library.content(&me, &id).await.unwrap(), b"edited");
    let pdf = known.map(|known| DocumentMetadata {
        kind: "application/pdf".into(),
        ..known
    });
    let other = library.ensure(&me, pdf.clone(), b"%PDF-".into()).await;
    assert!(
        other
            .unwrap_err()
            .message
            .starts_with("document-metadata.kind")
    );
    library.ensure(&me, pdf, b"edited".into()).await.unwrap();
}

#[tokio::test]
async fn a_child_that_comes_again_is_fine_and_another_is_not() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "");
    library.add(&me, document("d"), b"1".into()).await.unwrap();
    library
        .add_child(&me, child("c", "d"), b"2".into())
        .await
        .unwrap();
    library
        .add_child(&me, child("c", "d"), b"2".into())
        .await
        .unwrap();
    let other = library.add_child(&me, child("c", "d"), b"3".into()).await;
    assert_eq!(other.unwrap_err().code(), ErrorCode::Conflict);
    let own = library.add_child(&me, child("d", "d"), b"1".into()).await;
    assert!(
        own.unwrap_err()
            .message
            .contains("must not be the document itself")
    );
    let many = vec![child("c2", "d").unwrap(), child("c3", "nobody").unwrap()];
    let texts = vec![b"x".to_vec(), b"y".to_vec()];
    let missing = library
        .add_children(&me, many.clone(), texts.clone(), false)
        .await;
    let missing = missing.unwrap_err().message;
    assert_eq!(
        missing,
        "document-metadata.parent-id: the parent does not exist"
    );
    // All of them or none.
    assert_eq!(parts(&library, &me, "d").await.len(), 1);
    let uneven = library
        .add_children(&me, many, texts[..1].to_vec(), false)
        .await;
    assert_eq!(
        uneven.unwrap_err().message,
        "contents: must have one entry for each of 2 document-metadatas, not 1"
    );
    let theirs = asker("other", "");
    assert!(parts(&library, &theirs, "d").await.is_empty());
}

#[tokio::test]
async fn hostile_names_are_names() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let long = "x".repeat(300);
    let names = [
        "a",
        "a_b",
        "a:b",
        "a/b",
        "a%b",
        "ü☃",
        "'; --",
        long.as_str(),
    ];
    let spaces = [asker("a", ""), asker("a_b", "")];
    for (at, me) in spaces.iter().enumerate() {
        for name in names {
            let text = format!("{at} {name}").into_bytes();
            library.add(me, document(name), text).await.unwrap();
        }
    }
    library.remove(&spaces[0], "a").await.unwrap();
    for (at, me) in spaces.iter().enumerate() {
        let left = &names[1 - at..];
        assert_eq!(ids(&library, me, false).await, left);
        for name in left {
            let text = format!("{at} {name}").into_bytes();
            assert_eq!(library.content(me, name).await.unwrap(), text);
        }
    }
    let endless = library.add(&spaces[0], document(&"x".repeat(3000)), Vec::new());
    assert!(
        endless
            .await
            .unwrap_err()
            .message
            .contains("must not be longer than")
    );
}

/// Peak resident memory of this process in KiB, since it was reset.
#[cfg(target_os = "linux")]
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.unwrap().split_whitespace().nth(1);
    number.unwrap().parse().unwrap()
}

/// In a process of its own, this test once more: others take memory, too. `memory_bench` does the same with a gigabyte.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_large_document_passes_in_little_memory() {
    const CHUNK: usize = 3 << 20;
    const SIZE: usize = 48 << 20;
    const MORE_KIB: u64 = 24 << 10;
    const ALONE: &str = "TG_LIBRARY_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let said = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--nocapture", "--exact"])
            .arg("library::tests::a_large_document_passes_in_little_memory")
            .env(ALONE, "yes")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(
            said.status.success() && text.contains("KiB more"),
            "{said:?}"
        );
        return;
    }
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "q");
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak();
    let begun = library.begin_upload(&me, document("d"), announced(SIZE as i64, CHUNK as i64));
    let session = begun.await.unwrap().session;
    for at in 0..session.chunks() {
        let length = CHUNK.min(SIZE - at as usize * CHUNK);
        let mut content = vec![at as u8; length];
        content[0] = (at >> 8) as u8;
        let taken = library.upload_chunk(&me, &session.id, at as i64, content);
        taken.await.unwrap();
    }
    library.complete_upload(&me, &session.id).await.unwrap();
    let mut pieces = library.pieces(&me, "d", 1 << 20).await.unwrap();
    let mut read = 0;
    while let Some(piece) = pieces.next().await.unwrap() {
        read += piece.bytes.len();
    }
    let (size, _) = library.measure(&me, "d", "text/plain").await.unwrap();
    assert_eq!((read, size), (SIZE, SIZE as u64));
    let grown = peak() - before;
    println!("{grown} KiB more");
    assert!(grown < MORE_KIB, "{grown} KiB more at the peak");
}
