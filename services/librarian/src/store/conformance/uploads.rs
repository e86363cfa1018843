//! Upload sessions.

use tg_storage::blob::Part;

use super::*;
use crate::engine::quota::Quota;
use crate::engine::upload::{LIFE, Session};
use crate::store::uploads::Arrived;

fn session(id: &str, of: &str, size: u64) -> Session {
    Session {
        id: id.into(),
        workspace: "w".into(),
        document: of.into(),
        metadata: "{}".into(),
        size,
        chunk: 4,
        created: 10,
        object: String::new(),
        adopting: String::new(),
        replaces: false,
        announced: String::new(),
    }
}

fn replacing(id: &str, of: &str, size: u64) -> Session {
    Session {
        replaces: true,
        ..session(id, of, size)
    }
}

fn arrived(position: u64, content: &[u8]) -> Arrived {
    Arrived {
        position,
        part: Part {
            hash: BlobId::of(content),
            length: content.len() as u64,
        },
    }
}

async fn begin(store: &Store, session: Session) -> Session {
    let begun = store.begin_upload(session, Quota::default());
    begun.await.unwrap()
}

pub(super) async fn a_session_is_begun_once(store: Store) {
    let one = begin(&store, session("u", "d", 10)).await;
    let again = begin(&store, session("u", "d", 99)).await;
    assert_eq!(again, one);
    assert_eq!(store.session("u").await.unwrap(), Some(one));
    store.add_new(&asker(""), document("e", "x")).await.unwrap();
    let taken = store.begin_upload(session("v", "e", 1), Quota::default());
    assert_eq!(code(taken.await), ErrorCode::Conflict);
    // An upload that announces the content which is there already goes on: it repeats one whose end its sender missed.
    let hash = document("e", "x").1.hash.to_string();
    let announced = Session {
        announced: hash,
        ..session("w", "e", 1)
    };
    let begun = store.begin_upload(announced, Quota::default()).await;
    begun.expect("a repetition is no conflict");
    for _ in 0..2 {
        store.remove_upload("u").await.unwrap();
        assert_eq!(store.session("u").await.unwrap(), None);
    }
}

pub(super) async fn a_session_that_says_its_hash_is_gone_on_with(store: Store) {
    let of = |id: &str, hash: &str| Session {
        announced: hash.into(),
        ..session(id, "d", 10)
    };
    let one = begin(&store, of("u1", "aa")).await;
    store.set_part("u1", arrived(0, b"0123")).await.unwrap();
    let again = Session {
        metadata: "{\"title\":\"later\"}".into(),
        created: 20,
        ..of("u2", "aa")
    };
    let found = begin(&store, again).await;
    let wanted = Session {
        metadata: "{\"title\":\"later\"}".into(),
        ..one
    };
    assert_eq!(found, wanted);
    assert_eq!(store.session("u1").await.unwrap(), Some(wanted));
    assert_eq!(store.session("u2").await.unwrap(), None);
    assert_eq!(store.parts("u1").await.unwrap().len(), 1);
    // Whatever else differs, it is another one.
    let others = [
        of("v1", "bb"),
        of("v2", ""),
        Session {
            size: 11,
            ..of("v3", "aa")
        },
        Session {
            chunk: 5,
            ..of("v4", "aa")
        },
        Session {
            replaces: true,
            ..of("v5", "aa")
        },
        Session {
            document: "e".into(),
            ..of("v6", "aa")
        },
        Session {
            workspace: "other".into(),
            ..of("v7", "aa")
        },
        Session {
            created: 10 + LIFE,
            ..of("v8", "aa")
        },
    ];
    for other in others {
        assert_eq!(begin(&store, other.clone()).await, other);
    }
    // One that is complete is gone on with by nobody.
    let open = store.session("v5").await.unwrap().unwrap();
    let (new, _) = document("d", "");
    let done = store.complete_upload(open, (new, file("whole", 10)));
    done.await.unwrap().unwrap();
    let late = Session {
        replaces: true,
        ..of("w", "aa")
    };
    assert_eq!(begin(&store, late).await.id, "w");
}

pub(super) async fn a_session_counts_for_what_it_has_more(store: Store) {
    store
        .add_new(&asker(""), document("d", "12345678"))
        .await
        .unwrap();
    let quota = Quota {
        documents: 2,
        bytes: 12,
    };
    let begin = |session: Session| store.begin_upload(session, quota);
    begin(replacing("u1", "d", 10)).await.unwrap();
    let (used, _) = store.usage("w", Vec::new()).await.unwrap();
    assert_eq!((used.documents, used.bytes), (1, 10));
    assert_eq!(
        code(begin(session("u2", "e", 3)).await),
        ErrorCode::TooLarge
    );
    begin(session("u3", "e", 2)).await.unwrap();
    assert_eq!(
        code(begin(session("u4", "f", 0)).await),
        ErrorCode::TooLarge
    );
    // One that is done counts as its document only.
    let (new, _) = document("d", "");
    let whole = (new, file("whole", 10));
    let open = store.session("u1").await.unwrap().unwrap();
    store.complete_upload(open, whole).await.unwrap().unwrap();
    let (used, _) = store.usage("w", Vec::new()).await.unwrap();
    assert_eq!((used.documents, used.bytes), (2, 12));
}

pub(super) async fn parts_are_known_until_they_are_dropped(store: Store) {
    begin(&store, session("u", "d", 10)).await;
    for (position, content) in [(2, b"89".as_slice()), (0, b"wxyz"), (0, b"0123")] {
        let part = arrived(position, content);
        store.set_part("u", part).await.unwrap();
    }
    let parts = store.parts("u").await.unwrap();
    assert_eq!(parts, [arrived(0, b"0123"), arrived(2, b"89")]);
    assert_eq!(store.part("u", 2).await.unwrap(), Some(BlobId::of(b"89")));
    for _ in 0..2 {
        store.drop_part("u", 2).await.unwrap();
        assert_eq!(store.part("u", 2).await.unwrap(), None);
    }
    store.reopen_upload("u", vec![0, 1]).await.unwrap();
    assert!(store.parts("u").await.unwrap().is_empty());
}

pub(super) async fn a_completion_is_noted_before_it_is_done(store: Store) {
    let open = begin(&store, session("u", "d", 10)).await;
    store.set_part("u", arrived(0, b"0123")).await.unwrap();
    let whole = file("whole", 10);
    for _ in 0..2 {
        assert!(store.begin_adopting(&open, whole.hash).await.unwrap());
        assert_eq!(store.adopting("", 10).await.unwrap(), ["u"]);
    }
    // Its file is spoken for although no document has it.
    let unknown = store.unknown(vec![whole.hash]).await.unwrap();
    assert!(unknown.is_empty());
    let noted = store.session("u").await.unwrap().unwrap();
    let (mut new, _) = document("d", "");
    new.content_hash = whole.hash.to_string();
    let done = store.complete_upload(noted, (new.clone(), whole.clone()));
    let done = done.await.unwrap().unwrap();
    assert_eq!(done.object, whole.hash.to_string());
    assert_eq!(store.session("u").await.unwrap(), Some(done));
    assert!(store.adopting("", 10).await.unwrap().is_empty());
    assert!(store.parts("u").await.unwrap().is_empty());
    assert_eq!(store.document("w", "d").await.unwrap(), Some(new));
}

pub(super) async fn a_document_that_came_first_ends_the_session(store: Store) {
    let whole = file("whole", 10);
    let (new, _) = document("d", "");
    let one = begin(&store, session("u", "d", 10)).await;
    let two = begin(&store, session("v", "d", 10)).await;
    let three = begin(&store, replacing("r", "d", 10)).await;
    store.add_new(&asker(""), document("d", "x")).await.unwrap();
    assert!(!store.begin_adopting(&one, whole.hash).await.unwrap());
    let late = store.complete_upload(two, (new.clone(), whole.clone()));
    assert_eq!(late.await.unwrap(), None);
    for id in ["u", "v"] {
        assert_eq!(store.session(id).await.unwrap(), None);
    }
    let replaced = store.complete_upload(three, (new, whole)).await.unwrap();
    assert!(replaced.is_some());
    let (used, _) = store.usage("w", Vec::new()).await.unwrap();
    assert_eq!((used.documents, used.bytes), (1, 10));
}

pub(super) async fn sessions_come_in_pages(store: Store) {
    for at in 0..5 {
        let id = format!("u{at}");
        begin(&store, session(&id, &id, 4)).await;
        store.set_part(&id, arrived(0, b"0123")).await.unwrap();
    }
    let (mut found, mut after) = (Vec::new(), 0);
    loop {
        let page = store.sessions("w", after, 2).await.unwrap();
        assert!(page.len() <= 2 && page.iter().all(|one| one.received == 1));
        let Some(last) = page.last() else { break };
        after = last.number;
        found.extend(page.into_iter().map(|one| one.session.id));
    }
    assert_eq!(found, ["u0", "u1", "u2", "u3", "u4"]);
    assert_eq!(store.uploads_of("w", 3).await.unwrap().len(), 3);
    assert_eq!(store.begun_before(10, 9).await.unwrap().len(), 5);
    assert!(store.begun_before(9, 9).await.unwrap().is_empty());
    assert!(store.sessions("other", 0, 9).await.unwrap().is_empty());
}
