//! What every adapter does: names, pages, deletion, loads and waiting documents. A new one is added by one line at the
//! end.

use tg_collections::{CollectionKey, Quota, WorkspaceStore};
use tg_schemas::msg::LibraryMetadata;
use tg_schemas::{Error, ErrorCode, Term, Triple, WorkspaceKey, WorkspaceTombstone};
use tg_storage::Durability;

use super::sqlite::{ONE_WORKSPACE, SqliteCores};
use super::{KnowledgeStore, Load, Passing};
use crate::engine::key::{CoreKey, Kind};
use crate::engine::piece::{Part, Piece, of_triples};

/// What the suite needs of an adapter.
trait Adapter: KnowledgeStore + WorkspaceStore {}

impl<S: KnowledgeStore + WorkspaceStore> Adapter for S {}

/// What a workspace may keep in these tests.
const QUOTA: Quota = Quota {
    items: 5,
    bytes: 5 << 20,
};

fn key(workspace: &str, id: &str) -> CoreKey {
    CoreKey::new(workspace, Kind::Graph, id, "id").unwrap()
}

/// On its way into a collection, in a run.
fn passing(run: &str, collection: &str) -> Option<Passing> {
    Some(Passing {
        run: Some(run.to_owned()),
        collection: CollectionKey::new("w", collection).in_generation(3),
    })
}

fn pieces(name: &str) -> Vec<Piece> {
    let triple = Triple::new(Term::iri(name), Term::iri("urn:p"), Term::literal("o"));
    of_triples(&[triple]).unwrap()
}

async fn held(cores: &impl Adapter, key: &CoreKey) -> Vec<Piece> {
    let Some(core) = cores.find(key).await.unwrap() else {
        return Vec::new();
    };
    let page = cores.page(core, Part::Triples, 0).await.unwrap();
    page.into_iter().map(|stored| stored.piece).collect()
}

async fn what_comes_again_doubles_nothing(cores: &impl Adapter) {
    let core = key("w", "urn:doc");
    assert_eq!(cores.keep(core.clone(), pieces("urn:a"), None).await, Ok(1));
    assert_eq!(cores.keep(core.clone(), pieces("urn:a"), None).await, Ok(0));
    assert_eq!(cores.keep(core.clone(), pieces("urn:b"), None).await, Ok(1));
    let both = [pieces("urn:a"), pieces("urn:b")].concat();
    assert_eq!(held(cores, &core).await, both);
}

async fn names_never_meet(cores: &impl Adapter) {
    for (workspace, id) in [("a", "b:c"), ("a:b", "c"), ("a", "b_c"), ("a_b", "c")] {
        let name = format!("urn:{workspace}/{id}");
        let kept = cores.keep(key(workspace, id), pieces(&name), None).await;
        assert_eq!(kept, Ok(1));
    }
    assert_eq!(
        cores.list("a", Kind::Graph, "", 9).await.unwrap(),
        ["b:c", "b_c"]
    );
    assert!(
        cores
            .list("a", Kind::Document, "", 9)
            .await
            .unwrap()
            .is_empty()
    );
    let proof = WorkspaceTombstone {
        generation: 0,
        deleted_at: 1,
        purge_after: 1,
    };
    let workspace = WorkspaceKey::new("a", 0);
    cores.purge(&workspace, &proof).await.unwrap();
    assert_eq!(cores.workspaces().await.unwrap(), ["a:b", "a_b"]);
    assert!(
        cores
            .list("a", Kind::Graph, "", 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(held(cores, &key("a_b", "c")).await, pieces("urn:a_b/c"));
}

async fn names_come_in_order_from_any_of_them_on(cores: &impl Adapter) {
    for id in ["d", "b", "é", "B", "c"] {
        cores
            .keep(key("w", id), pieces("urn:a"), None)
            .await
            .unwrap();
    }
    let after = async |after: &str, most: u32| {
        let names = cores.list("w", Kind::Graph, after, most).await;
        names.unwrap()
    };
    assert_eq!(after("", 9).await, ["B", "b", "c", "d", "é"]);
    assert_eq!(after("", 2).await, ["B", "b"]);
    assert_eq!(after("b", 2).await, ["c", "d"]);
    // One that is not there is as good a place to begin.
    assert_eq!(after("bb", 1).await, ["c"]);
    assert!(after("é", 9).await.is_empty());
}

async fn a_deleted_core_is_out_of_reach_at_once_and_purged_later(cores: &impl Adapter) {
    let core = key("w", "urn:doc");
    for number in 0..100 {
        let pieces = pieces(&format!("urn:{number}"));
        cores.keep(core.clone(), pieces, None).await.unwrap();
    }
    assert_eq!(cores.delete(vec![core.clone()]).await, Ok(true));
    assert_eq!(cores.delete(vec![core.clone()]).await, Ok(false));
    assert!(held(cores, &core).await.is_empty());
    // One of the same name starts empty.
    cores
        .keep(core.clone(), pieces("urn:new"), None)
        .await
        .unwrap();
    while cores.purge_some().await.unwrap() {}
    assert_eq!(held(cores, &core).await, pieces("urn:new"));
}

async fn pages_are_bounded_and_go_on_where_the_last_ended(cores: &impl Adapter) {
    let core = key("w", "urn:doc");
    let large = "x".repeat(200 << 10);
    for number in 0..20 {
        let pieces = pieces(&format!("urn:{number}:{large}"));
        cores.keep(core.clone(), pieces, None).await.unwrap();
    }
    let number = cores.find(&core).await.unwrap().unwrap();
    let (mut after, mut seen) = (0, 0);
    loop {
        let page = cores.page(number, Part::Triples, after).await.unwrap();
        let Some(last) = page.last() else { break };
        assert!(page.len() < 10 && last.id > after);
        after = last.id;
        seen += page.len();
    }
    assert_eq!(seen, 20);
}

async fn what_a_load_brings_by_is_not_kept_again(cores: &impl Adapter) {
    let load = Load {
        core: key("w", "urn:doc"),
        flow: "f".into(),
        collection: "c".into(),
        generation: 3,
        run: "run.3.x".into(),
    };
    cores.note_load(&load).await.unwrap();
    let run = passing("run.3.x", "c");
    let kept = cores.keep(key("w", "urn:doc"), pieces("urn:a"), run).await;
    assert_eq!(kept, Ok(0));
    assert_eq!(cores.find(&key("w", "urn:doc")).await, Ok(None));
    let other = passing("run.3.y", "c");
    let kept = cores
        .keep(key("w", "urn:doc"), pieces("urn:a"), other)
        .await;
    assert_eq!(kept, Ok(1));
}

async fn a_core_is_judged_where_a_collection_that_it_has_parts_of_has_policies(
    cores: &impl Adapter,
) {
    let of =
        |workspace: &str, generation| CollectionKey::new(workspace, "c").in_generation(generation);
    let [passed, put, loaded] = ["urn:passed", "urn:put", "urn:loaded"].map(|id| key("w", id));
    for (core, passing) in [
        (&passed, passing("r", "c")),
        (&put, None),
        (&loaded, passing("r", "d")),
    ] {
        let kept = cores.keep(core.clone(), pieces("urn:a"), passing).await;
        assert_eq!(kept, Ok(1));
    }
    let load = Load {
        core: loaded.clone(),
        flow: "f".into(),
        collection: "c".into(),
        generation: 3,
        run: "load".into(),
    };
    cores.note_load(&load).await.unwrap();
    let judged = async || {
        let mut all = Vec::new();
        for core in [&passed, &put, &loaded] {
            all.push(cores.is_judged(core).await.unwrap());
        }
        all
    };
    // Those of another workspace, and of another generation, are others.
    for other in [of("v", 3), of("w", 2), CollectionKey::new("w", "e")] {
        cores.note_policies(&other).await.unwrap();
    }
    assert_eq!(judged().await, [false, false, false]);
    assert_eq!(cores.has_policies(&of("w", 3)).await, Ok(false));
    for _ in 0..2 {
        cores.note_policies(&of("w", 3)).await.unwrap();
    }
    assert_eq!(cores.has_policies(&of("w", 3)).await, Ok(true));
    assert_eq!(judged().await, [true, false, true]);
    cores.forget_load(&load).await.unwrap();
    cores.delete(vec![passed.clone()]).await.unwrap();
    cores
        .keep(passed.clone(), pieces("urn:b"), None)
        .await
        .unwrap();
    assert_eq!(judged().await, [false, false, false]);
}

async fn loads_are_known_by_flow_and_collection(cores: &impl Adapter) {
    let load = |collection: &str, run: &str| Load {
        core: key("w", "urn:doc"),
        flow: "f".into(),
        collection: collection.into(),
        generation: 0,
        run: run.into(),
    };
    for one in [load("a", "1"), load("b", "2"), load("a", "3")] {
        cores.note_load(&one).await.unwrap();
    }
    let core = key("w", "urn:doc");
    let all = cores.loads(&core, "f", "").await.unwrap();
    assert_eq!(all, [load("a", "3"), load("b", "2")]);
    assert!(cores.loads(&core, "g", "").await.unwrap().is_empty());
    // One that was loaded anew meanwhile stays.
    cores.forget_load(&load("a", "1")).await.unwrap();
    assert_eq!(cores.loads(&core, "f", "a").await.unwrap().len(), 1);
    cores.forget_load(&load("a", "3")).await.unwrap();
    assert!(cores.loads(&core, "f", "a").await.unwrap().is_empty());
}

async fn a_document_waits_for_its_content_in_its_own_workspace_and_not_for_ever(
    cores: &impl Adapter,
) {
    let metadata = LibraryMetadata {
        id: "urn:d".into(),
        title: "T".into(),
        ..LibraryMetadata::default()
    };
    cores.announce("w", metadata.clone(), 1).await.unwrap();
    assert_eq!(cores.announced("v", "urn:d").await, Ok(None));
    cores.uploading("w", "urn:d", "u".into(), 9).await.unwrap();
    let pending = cores.announced("w", "urn:d").await.unwrap().unwrap();
    assert_eq!(pending.metadata, metadata);
    assert_eq!((pending.upload.as_str(), pending.chunk), ("u", 9));
    let other = LibraryMetadata {
        id: "urn:e".into(),
        ..LibraryMetadata::default()
    };
    let days = 2 * 24 * 60 * 60 * 1000;
    cores.announce("w", other, days).await.unwrap();
    assert_eq!(cores.announced("w", "urn:d").await, Ok(None));
    cores.arrived("w", "urn:e").await.unwrap();
    assert_eq!(cores.announced("w", "urn:e").await, Ok(None));
}

async fn a_workspace_keeps_its_quota_of_cores_and_of_bytes(cores: &impl Adapter) {
    let keep = async |workspace: &str, id: &str, name: &str| {
        let kept = cores.keep(key(workspace, id), pieces(name), None).await;
        kept.map_err(Error::from)
    };
    let refused = |kept: Result<usize, Error>, by: &str| {
        let error = kept.unwrap_err();
        assert_eq!(error.code(), ErrorCode::TooLarge);
        assert!(error.message.contains(by), "{error}");
    };
    for id in ["a", "b", "c", "d", "e"] {
        assert_eq!(keep("w", id, "urn:a").await, Ok(1));
    }
    refused(keep("w", "f", "urn:a").await, "at most 5 cores");
    assert_eq!(cores.find(&key("w", "f")).await, Ok(None));
    assert_eq!(keep("v", "f", "urn:a").await, Ok(1));
    let large = format!("urn:{}", "x".repeat(4 << 20));
    assert_eq!(keep("w", "a", &large).await, Ok(1));
    refused(keep("w", "b", &large).await, "at most 5 MiB");
    // What is there already may come again, and what was deleted makes room.
    assert_eq!(keep("w", "a", &large).await, Ok(0));
    assert_eq!(cores.delete(vec![key("w", "a")]).await, Ok(true));
    assert_eq!(keep("w", "b", &large).await, Ok(1));
    assert_eq!(keep("w", "f", "urn:a").await, Ok(1));
}

/// Holds an adapter to all of it.
macro_rules! conformance {
    ($adapter:ident, $make:expr) => {
        conformance!($adapter, $make;
            what_comes_again_doubles_nothing,
            names_never_meet,
            names_come_in_order_from_any_of_them_on,
            a_deleted_core_is_out_of_reach_at_once_and_purged_later,
            pages_are_bounded_and_go_on_where_the_last_ended,
            what_a_load_brings_by_is_not_kept_again,
            loads_are_known_by_flow_and_collection,
            a_core_is_judged_where_a_collection_that_it_has_parts_of_has_policies,
            a_document_waits_for_its_content_in_its_own_workspace_and_not_for_ever,
            a_workspace_keeps_its_quota_of_cores_and_of_bytes);
    };
    ($adapter:ident, $make:expr; $($promise:ident),*) => {
        mod $adapter {
            use super::*;

            $(#[tokio::test]
            async fn $promise() {
                super::$promise(&$make).await;
            })*
        }
    };
}

conformance!(sqlite, SqliteCores::in_memory(QUOTA).unwrap());

async fn keep(cores: &impl Adapter, workspace: &str) {
    let kept = cores.keep(key(workspace, "urn:doc"), pieces("urn:a"), None);
    assert_eq!(kept.await, Ok(1));
}

#[tokio::test]
async fn a_backup_of_one_workspace_has_the_same_cores() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("knowledge.sqlite");
    let open = || SqliteCores::open(&file, Durability::Process, QUOTA).unwrap();
    let cores = open();
    for workspace in ["other", "acme#7"] {
        keep(&cores, workspace).await;
    }
    drop(cores);
    ONE_WORKSPACE
        .keep(&file, &WorkspaceKey::new("acme", 7))
        .unwrap();
    let cores = open();
    assert_eq!(cores.workspaces().await.unwrap(), ["acme#7"]);
    let found = held(&cores, &key("acme#7", "urn:doc")).await;
    assert_eq!(found, pieces("urn:a"));
}
