//! A workspace keeps no more than its quota, and what it keeps is counted right through every change; listings
//! come in pages; a torn file is told and mended.

use super::*;

async fn kept(library: &Library) -> (u64, u64) {
    let (used, _) = library.rows().usage("w", Vec::new()).await.unwrap();
    (used.documents, used.bytes)
}

#[tokio::test]
async fn what_is_kept_is_counted_through_every_change() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "");
    let large = SMALL + 1;
    let add = |id, size| library.add(&me, document(id), vec![b'x'; size]);
    add("a", 10).await.unwrap();
    add("b", large).await.unwrap();
    // The same content counts for each: who is first may go.
    add("c", large).await.unwrap();
    assert_eq!(kept(&library).await, (3, 10 + 2 * large as u64));
    let update = |size| library.update(&me, document("a"), Some(vec![b'y'; size]));
    update(20).await.unwrap();
    assert_eq!(kept(&library).await, (3, 20 + 2 * large as u64));
    update(large).await.unwrap();
    update(5).await.unwrap();
    library.remove(&me, "b").await.unwrap();
    assert_eq!(kept(&library).await, (2, 5 + large as u64));
    library
        .add_child(&me, child("d", "a"), b"part".into())
        .await
        .unwrap();
    assert_eq!(kept(&library).await, (3, 9 + large as u64));
    library.remove(&me, "a").await.unwrap();
    library.purge("w").await.unwrap();
    assert_eq!(kept(&library).await, (0, 0));
}

#[tokio::test]
async fn nothing_is_written_past_the_quota() {
    let dir = tempdir().unwrap();
    let quota = Quota {
        documents: 2,
        bytes: 3 * SMALL as u64,
    };
    let library = open_with(&dir, quota);
    let me = asker("w", "");
    let add = |id, size| library.add(&me, document(id), vec![b'x'; size]);
    let large = add("a", 4 * SMALL).await.unwrap_err();
    assert_eq!(large.code(), ErrorCode::TooLarge);
    assert!(large.message.contains("quota of bytes"), "{large}");
    let hash = BlobId::of(&vec![b'x'; 4 * SMALL]);
    assert!(library.content.size(hash).await.unwrap().is_none());
    // What an upload announces counts from its beginning.
    let begin = |question: &str, id, size: usize| {
        let me = asker("w", question);
        let wanted = announced(size as i64, 0);
        let library = &library;
        async move { library.begin_upload(&me, document(id), wanted).await }
    };
    begin("q1", "u", 2 * SMALL).await.unwrap();
    assert!(begin("q2", "v", 2 * SMALL).await.is_err());
    add("a", 2 * SMALL).await.unwrap_err();
    add("a", SMALL).await.unwrap();
    let many = add("b", 0).await.unwrap_err();
    assert!(many.message.contains("quota of documents"), "{many}");
    let part = library.add_child(&me, child("c", "a"), Vec::new()).await;
    assert!(part.unwrap_err().message.contains("quota of documents"));
    // Others have their own, and traces of answers still find room.
    let other = asker("other", "");
    let others = library.add(&other, document("a"), vec![b'x'; SMALL]);
    others.await.unwrap();
    let answer = library.add(&me, typed("answer", "answer"), b"text".into());
    answer.await.unwrap();
}

#[tokio::test]
async fn listings_come_in_pages() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "");
    for at in 0..5 {
        let id = format!("d{at}");
        library.add(&me, document(&id), b"x".into()).await.unwrap();
    }
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let asked = Asked::read("list-documents", 2, &after).unwrap();
        let page = library.list(&me, Listed::default(), asked).await.unwrap();
        assert!(page.entries.len() <= 2);
        found.extend(page.entries.into_iter().map(|one| one.id));
        if page.next.is_empty() {
            break;
        }
        // Who goes meanwhile takes nobody along.
        let _ = library.remove(&me, "d0").await;
        after = page.next;
    }
    assert_eq!(found, ["d0", "d1", "d2", "d3", "d4"]);
    let said = DocumentMetadata {
        comments: "x".repeat(SAID),
        ..document("long").unwrap()
    };
    let long = library.add(&me, Some(said), Vec::new()).await.unwrap_err();
    assert!(long.message.starts_with("document-metadata: "), "{long}");
}

#[tokio::test]
async fn a_torn_file_is_told_and_mended() {
    let dir = tempdir().unwrap();
    let library = open(&dir);
    let me = asker("w", "");
    let content = vec![b'x'; SMALL + 1];
    let add = |id| library.add(&me, document(id), content.clone());
    add("a").await.unwrap();
    let name = BlobId::of(&content).to_string();
    let file = dir.path().join("content").join(&name[..2]).join(&name[2..]);
    std::fs::write(&file, "x").unwrap();
    let told = library.content(&me, "a").await.unwrap_err();
    assert!(told.message.contains("is damaged"), "{told}");
    let pieces = library.pieces(&me, "a", 10).await.unwrap();
    assert_eq!(pieces.at(2).await.unwrap_err(), told);
    let batch = library.contents(&me, vec!["a".into()]).await;
    assert_eq!(batch.unwrap_err(), told);
    add("b").await.unwrap();
    assert_eq!(library.content(&me, "a").await.unwrap(), content);
}

#[tokio::test]
async fn what_takes_the_place_of_a_document_is_counted_once() {
    let dir = tempdir().unwrap();
    let quota = Quota {
        documents: 1,
        bytes: 3 * SMALL as u64,
    };
    let library = open_with(&dir, quota);
    let me = asker("w", "q0");
    let size = 2 * SMALL;
    let add = library.add(&me, document("d"), vec![b'x'; size]);
    add.await.unwrap();
    // As large as what is there, and a little larger.
    for (question, size) in [("q1", size), ("q2", size + 5)] {
        let me = asker("w", question);
        let wanted = Wanted {
            replaces: true,
            ..announced(size as i64, 0)
        };
        let begun = library.begin_upload(&me, document("d"), wanted);
        let id = begun.await.unwrap().session.id;
        assert_eq!(kept(&library).await, (1, size as u64));
        let whole = library.upload_chunk(&me, &id, 0, vec![b'y'; size]);
        whole.await.unwrap();
        library.complete_upload(&me, &id).await.unwrap();
        assert_eq!(kept(&library).await, (1, size as u64));
    }
    // The same holds for a change.
    let update = |size| library.update(&me, document("d"), Some(vec![b'z'; size]));
    update(3 * SMALL).await.unwrap();
    assert!(update(3 * SMALL + 1).await.is_err());
    assert_eq!(kept(&library).await, (1, 3 * SMALL as u64));
    // And what is new has no room.
    let wanted = announced(1, 0);
    let me = asker("w", "q3");
    let begun = library.begin_upload(&me, document("e"), wanted).await;
    let refused = begun.unwrap_err();
    assert!(refused.message.contains("quota of documents"), "{refused}");
}
