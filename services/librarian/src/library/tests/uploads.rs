//! Uploads: they go on after anything, belong to their workspace, and are complete or not at all.

use super::*;
use crate::engine::upload::{LIFE, Session};
use tg_storage::blob::StageId;

async fn listed(library: &Library, me: &Asker) -> usize {
    let page = library.list_uploads(me, Asked::default()).await;
    page.unwrap().entries.len()
}

async fn begin(library: &Library, me: &Asker, id: &str, total: i64, chunk: i64) -> String {
    let begun = library
        .begin_upload(me, document(id), announced(total, chunk))
        .await;
    begun.unwrap().session.id
}

#[tokio::test]
async fn an_upload_goes_on_after_anything_and_keeps_what_was_said() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "q1");
    let parent = DocumentMetadata {
        parent_id: "p".into(),
        document_type: "image".into(),
        ..document("d").unwrap()
    };
    let begun = library
        .begin_upload(&me, Some(parent.clone()), announced(10, 4))
        .await;
    let session = begun.unwrap().session;
    assert_eq!((session.chunks(), session.chunk), (3, 4));
    let again = library
        .begin_upload(&me, Some(parent.clone()), announced(10, 4))
        .await;
    assert_eq!(again.unwrap().session, session);
    let id = session.id.as_str();
    let put = async |library: &Library, at, content: &[u8]| {
        library.upload_chunk(&me, id, at, content.to_vec()).await
    };
    let last = put(&library, 2, b"89").await.unwrap();
    assert_eq!((last.received(), last.bytes), (1, 2));
    put(&library, 0, b"wxyz").await.unwrap();
    put(&library, 0, b"0123").await.unwrap();
    assert_eq!(put(&library, 0, b"0123").await.unwrap().bytes, 6);
    let short = put(&library, 1, b"45").await.unwrap_err();
    assert!(short.message.contains("must have 4"), "{short}");
    let early = library.complete_upload(&me, id).await.unwrap_err();
    assert_eq!(early.message, "Missing chunks: [1]");
    drop(library);
    let library = open(&dir);
    let stands = library.upload_status(&me, id).await.unwrap().unwrap();
    assert_eq!((stands.arrived, stands.session.chunk), (vec![0, 2], 4));
    assert_eq!(listed(&library, &me).await, 1);
    put(&library, 1, b"4567").await.unwrap();
    let done = library.complete_upload(&me, id).await.unwrap();
    assert_eq!(done.object, BlobId::of(b"0123456789").to_string());
    assert_eq!(library.complete_upload(&me, id).await.unwrap(), done);
    assert_eq!(library.content(&me, "d").await.unwrap(), b"0123456789");
    let told = library.metadata(&me, "d").await.unwrap();
    assert_eq!(told, holding(parent, b"0123456789"));
    assert_eq!(listed(&library, &me).await, 0);
    assert!(library.content.stages().await.unwrap().is_empty());
    assert!(put(&library, 1, b"4567").await.is_err());
    library.remove(&asker("w", "q9"), "d").await.unwrap();
    assert!(
        library
            .content
            .size(BlobId::of(b"0123456789"))
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_session_belongs_to_its_workspace_and_its_day() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "q1");
    let id = begin(&library, &me, "d", 3, 3).await;
    library
        .upload_chunk(&me, &id, 0, b"abc".into())
        .await
        .unwrap();
    let other = asker("other", "q2");
    let says = |error: Error| assert_eq!(error.message, "Upload session not found or expired");
    says(library.complete_upload(&other, &id).await.unwrap_err());
    says(library.abort_upload(&other, &id).await.unwrap_err());
    assert_eq!(library.upload_status(&other, &id).await.unwrap(), None);
    let tomorrow = Asker {
        now: LIFE,
        ..me.clone()
    };
    says(library.complete_upload(&tomorrow, &id).await.unwrap_err());
    library.tidy(LIFE - 1).await.unwrap();
    assert_eq!(library.content.stages().await.unwrap().len(), 1);
    library.tidy(LIFE).await.unwrap();
    assert!(library.content.stages().await.unwrap().is_empty());
    assert_eq!(library.upload_status(&me, &id).await.unwrap(), None);

    let id = begin(&library, &asker("w", "q3"), "d", 3, 3).await;
    library
        .add(&asker("w", "q4"), document("d"), b"x".into())
        .await
        .unwrap();
    library
        .upload_chunk(&me, &id, 0, b"abc".into())
        .await
        .unwrap();
    let late = library.complete_upload(&me, &id).await.unwrap_err();
    assert_eq!(late.code(), ErrorCode::Conflict);
    let taken = library
        .begin_upload(&asker("w", "q5"), document("d"), announced(3, 3))
        .await;
    assert_eq!(taken.unwrap_err().code(), ErrorCode::Conflict);
    // Nothing of it stays.
    let refused = BlobId::of(b"abc");
    assert!(library.content.size(refused).await.unwrap().is_none());
    assert!(library.content.stages().await.unwrap().is_empty());
    // Content of which no row speaks is found.
    let orphan = library.content.put(b"orphan".to_vec()).await.unwrap();
    library.remove_orphans().await.unwrap();
    assert!(library.content.size(orphan).await.unwrap().is_none());
}

/// An upload of `0123456789` whose parts are there.
async fn arrived(library: &Library, me: &Asker, id: &str) -> Session {
    let wanted = announced(10, 4);
    let begun = library.begin_upload(me, document(id), wanted).await;
    let session = begun.unwrap().session;
    for (at, part) in [b"0123".as_slice(), b"4567", b"89"].into_iter().enumerate() {
        let taken = library.upload_chunk(me, &session.id, at as i64, part.into());
        taken.await.unwrap();
    }
    session
}

#[tokio::test]
async fn a_completion_that_broke_off_anywhere_goes_on() {
    let hash = BlobId::of(b"0123456789");
    // How far it came: noted; renamed too; and for a file whose noted hash is no longer true, not at all.
    for renamed in [false, true] {
        for by_itself in [false, true] {
            let dir = tempdir().unwrap();
            let library = open(&dir);
            let me = asker("w", "q1");
            let session = arrived(&library, &me, "d").await;
            let id = session.id.clone();
            let noted = library.rows().begin_adopting(&session, hash).await;
            assert!(noted.unwrap());
            if renamed {
                let stage = StageId::parse(&id).unwrap();
                library.content.adopt(&stage, hash).await.unwrap();
            }
            drop(library);
            let library = open(&dir);
            // What no row speaks for goes; this is spoken for.
            library.remove_orphans().await.unwrap();
            library.remove_unused().await;
            let status = library.upload_status(&me, &id).await.unwrap().unwrap();
            assert_eq!(status.arrived, [0, 1, 2], "{renamed}");
            if by_itself {
                library.tidy(1).await.unwrap();
                let status = library.upload_status(&me, &id).await.unwrap().unwrap();
                assert_eq!(status.session.object, hash.to_string());
            }
            let done = library.complete_upload(&me, &id).await.unwrap();
            assert_eq!(done.object, hash.to_string());
            assert_eq!(library.content(&me, "d").await.unwrap(), b"0123456789");
            assert!(library.content.stages().await.unwrap().is_empty());
        }
    }
}

#[tokio::test]
async fn an_upload_may_take_the_place_of_a_document() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "q1");
    let old = vec![b'x'; SMALL + 1];
    library.add(&me, document("d"), old.clone()).await.unwrap();
    let again = DocumentMetadata {
        title: "new".into(),
        ..document("d").unwrap()
    };
    let wanted = Wanted {
        replaces: true,
        ..announced(3, 3)
    };
    let asker = asker("w", "q2");
    let begun = library.begin_upload(&asker, Some(again.clone()), wanted);
    let id = begun.await.unwrap().session.id;
    let taken = library.upload_chunk(&asker, &id, 0, b"abc".into());
    taken.await.unwrap();
    // Until it is whole nothing is different.
    assert_eq!(library.content(&me, "d").await.unwrap(), old);
    library.complete_upload(&asker, &id).await.unwrap();
    assert_eq!(library.content(&me, "d").await.unwrap(), b"abc");
    let told = library.metadata(&me, "d").await.unwrap();
    assert_eq!(told, holding(again, b"abc"));
    library.tidy(1).await.unwrap();
    assert!(
        library
            .content
            .size(BlobId::of(&old))
            .await
            .unwrap()
            .is_none()
    );
}

/// An upload whose client says the hash of its content.
fn hashed(content: &[u8], total: i64) -> Wanted {
    Wanted {
        hash: BlobId::of(content).to_string(),
        ..announced(total, 4)
    }
}

#[tokio::test]
async fn who_says_the_hash_goes_on_where_the_upload_ended() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let content = b"0123456789";
    let begin = async |library: &Library, question: &str, wanted: Wanted, title: &str| {
        let document = DocumentMetadata {
            title: title.into(),
            ..document("d").unwrap()
        };
        let me = asker("w", question);
        let begun = library.begin_upload(&me, Some(document), wanted).await;
        begun.unwrap()
    };
    let first = begin(&library, "q1", hashed(content, 10), "first").await;
    assert_eq!((first.arrived, first.bytes), (vec![], 0));
    let (me, id) = (asker("w", "q"), first.session.id);
    let sent = library.upload_chunk(&me, &id, 1, b"4567".into());
    sent.await.unwrap();
    drop(library);

    let library = open(&dir);
    let again = begin(&library, "q2", hashed(content, 10), "second").await;
    assert_eq!((again.session.id.as_str(), again.arrived), (&*id, vec![1]));
    assert_eq!(listed(&library, &me).await, 1);
    // A file that changed in between is another upload, and so is one whose client says no hash.
    let changed = begin(&library, "q3", hashed(b"0123456780", 10), "changed").await;
    let plain = begin(&library, "q4", announced(10, 4), "plain").await;
    for other in [changed, plain] {
        assert_ne!(other.session.id, id);
        assert!(other.arrived.is_empty());
        library.abort_upload(&me, &other.session.id).await.unwrap();
    }
    for (at, part) in [(0, b"0123".as_slice()), (2, b"89")] {
        let sent = library.upload_chunk(&me, &id, at, part.into());
        sent.await.unwrap();
    }
    let done = library.complete_upload(&me, &id).await.unwrap();
    assert_eq!(done.object, BlobId::of(content).to_string());
    assert_eq!(library.metadata(&me, "d").await.unwrap().title, "second");
}

#[tokio::test]
async fn other_content_than_announced_is_refused_and_not_kept() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "q1");
    let short = Wanted {
        hash: "abc".into(),
        ..announced(3, 3)
    };
    let error = library.begin_upload(&me, document("d"), short).await;
    assert!(error.unwrap_err().message.starts_with("content-hash: "));
    let begun = library.begin_upload(&me, document("d"), hashed(b"abc", 3));
    let id = begun.await.unwrap().session.id;
    let sent = library.upload_chunk(&me, &id, 0, b"abd".into());
    sent.await.unwrap();
    let wrong = library.complete_upload(&me, &id).await.unwrap_err();
    let (said, came) = (BlobId::of(b"abc"), BlobId::of(b"abd"));
    assert_eq!(
        wrong.message,
        format!(
            "content-hash: must be that of the content: {said} was announced and {came} arrived; \
             nothing of it is kept"
        )
    );
    assert_eq!(library.upload_status(&me, &id).await.unwrap(), None);
    assert!(library.content.stages().await.unwrap().is_empty());
    assert!(library.content.size(came).await.unwrap().is_none());
    let missing = library.metadata(&me, "d").await.unwrap_err();
    assert_eq!(missing.code(), ErrorCode::NotFound);
}
