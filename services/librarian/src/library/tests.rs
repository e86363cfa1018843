//! What is added is found, in its workspace only; repeats are told from duplicates; content is shared.

use super::*;
use tempfile::{TempDir, tempdir};
use tg_schemas::{ErrorCode, Term, Triple};

fn open(dir: &TempDir) -> Library {
    let content = dir.path().join("content");
    Library::open(&dir.path().join("rows"), &content, Durability::Process).unwrap()
}

fn asker(workspace: &str, question: &str) -> Asker {
    Asker {
        workspace: workspace.to_owned(),
        question: question.to_owned(),
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

async fn ids(library: &Library, asker: &Asker, everything: bool) -> Vec<String> {
    let all = library.list(asker, everything).await.unwrap();
    all.into_iter().map(|document| document.id).collect()
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
        document("urn:d").unwrap()
    );
    assert_eq!(library.content(&one, "urn:d").await.unwrap(), b"text");
    for missing in [
        library.metadata(&two, "urn:d").await.err(),
        library.content(&two, "urn:d").await.err(),
        library.remove(&two, "urn:d").await.err(),
        library.update(&two, document("urn:d")).await.err(),
    ] {
        assert_eq!(missing.unwrap().code(), ErrorCode::NotFound);
    }
    assert!(ids(&library, &two, true).await.is_empty());
    drop(library);
    assert_eq!(ids(&open(&dir), &one, false).await, ["urn:d"]);
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
    let duplicate = library.add(&second, document("d"), b"x".into()).await;
    assert_eq!(duplicate.unwrap_err().code(), ErrorCode::Conflict);
    // The refused question may ask again, and is still refused.
    let again = library.add(&second, document("d"), b"x".into()).await;
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
    let parts = library.children(&me, "d").await.unwrap();
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
    library.update(&me, Some(new)).await.unwrap();
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
