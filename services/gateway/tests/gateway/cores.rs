//! Knowledge cores: frames on a socket, files over plain HTTP.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_gateway::AuthMode;
use tg_testkit::place::Place;

use crate::fakes::{LARGE, PART};
use crate::world::{BOUND, World};

async fn a_core_comes_frame_by_frame_with_whole_documents(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let socket = world.socket("").await;
    let ask = |request: Value| {
        let socket = &socket;
        async move {
            let frames = socket
                .send(json!({"service": "knowledge", "request": request}))
                .await;
            frames.unwrap().all(BOUND).await.unwrap()
        }
    };
    let frames = ask(json!({"operation": "get-kg-core", "id": "core"})).await;
    let keys: Vec<_> = frames
        .iter()
        .map(|frame| {
            frame["response"]
                .as_object()
                .unwrap()
                .keys()
                .next()
                .unwrap()
                .clone()
        })
        .collect();
    assert_eq!(keys, ["triples", "library-metadata", "library-blob", "eos"]);
    let blob = &frames[2]["response"]["library-blob"];
    let content = STANDARD.decode(blob["data"].as_str().unwrap()).unwrap();
    assert_eq!(content.len(), LARGE);
    assert!(blob.get("total").is_none());
    assert_eq!(frames[3]["complete"], true);
    // Who can put parts together may have them.
    let frames = ask(json!({"operation": "get-kg-core", "id": "core", "blob-parts": true})).await;
    assert_eq!(frames.len(), 6);
    assert_eq!(frames[3]["response"]["library-blob"]["offset"], PART);
    // An error is one frame, and the last.
    let frames = ask(json!({"operation": "get-kg-core", "id": "nope"})).await;
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0]["response"]["error"]["type"], "load-error");
    assert_eq!(frames[0]["complete"], true);
}

async fn a_large_document_is_put_in_parts(place: Place) {
    let world = World::start(&place, AuthMode::None).await;
    let content: Vec<u8> = (0..LARGE).map(|at| (at % 251) as u8).collect();
    let (status, reply) = world
        .post(
            "/api/v1/knowledge",
            "",
            json!({"operation": "put-kg-core", "id": "core", "workspace": "acme",
                   "library-blob": {"id": "d", "data": STANDARD.encode(&content)}}),
        )
        .await;
    assert_eq!((status, reply), (200, json!({})));
    let put = world.fakes.put.lock();
    let mut seen = Vec::new();
    for (workspace, request) in put.iter() {
        assert_eq!(workspace, "acme");
        let blob = request.library_blob.as_ref().unwrap();
        assert_eq!(blob.offset as usize, seen.len());
        assert_eq!(blob.total as usize, LARGE);
        seen.extend(STANDARD.decode(&blob.data).unwrap());
    }
    assert_eq!(put.len(), 3);
    assert!(seen == content);
}

async fn a_file_that_is_exported_can_be_imported_elsewhere(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    let path = world.url("/api/v1/export-core?id=core");
    let get = world.http.get(&path).bearer_auth("tg_admin").timeout(BOUND);
    let response = get.send().await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    assert_eq!(
        response.headers()["content-type"],
        "application/octet-stream"
    );
    let file = response.bytes().await.unwrap();
    let post = world
        .http
        .post(world.url("/api/v1/import-core?id=copy&workspace=acme"))
        .bearer_auth("tg_admin")
        .body(file.clone())
        .timeout(BOUND);
    let reply: Value = post.send().await.unwrap().json().await.unwrap();
    assert_eq!(
        reply,
        json!({"records": 3, "triples": 1, "library-metadata": 1, "library-blobs": 1})
    );
    {
        let put = world.fakes.put.lock();
        assert!(
            put.iter()
                .all(|(workspace, put)| workspace == "acme" && put.id == "copy")
        );
        let triples = put[0].1.triples.as_ref().unwrap();
        let metadata = triples.metadata.as_ref().unwrap();
        assert_eq!(
            (metadata.id.as_str(), metadata.collection.as_str()),
            ("copy", "default")
        );
        let bytes: usize = put
            .iter()
            .filter_map(|(_, put)| put.library_blob.as_ref())
            .map(|blob| STANDARD.decode(&blob.data).unwrap().len())
            .sum();
        assert_eq!(bytes, LARGE);
    }
    // A file that is cut off says where.
    let post = world
        .http
        .post(world.url("/api/v1/import-core?id=copy"))
        .bearer_auth("tg_admin")
        .body(file.slice(..file.len() - 10))
        .timeout(BOUND);
    let response = post.send().await.unwrap();
    assert_eq!(response.status().as_u16(), 400);
    let reply: Value = response.json().await.unwrap();
    assert_eq!(reply["error"]["message"], "record 3: is cut off");
}

async fn doors_of_cores_are_for_administrators_and_name_what_is_missing(place: Place) {
    let world = World::start(&place, AuthMode::Iam).await;
    for (path, status) in [
        ("/api/v1/export-core?id=core", 403),
        ("/api/v1/export-core?id=core&workspace=default", 403),
    ] {
        assert_eq!(world.get(path, "tg_reader").await.0, status);
    }
    let (status, reply) = world.get("/api/v1/export-core", "tg_admin").await;
    assert_eq!(
        (status, &reply["error"]["message"]),
        (400, &json!("id: is required"))
    );
    let (status, _) = world.get("/api/v1/export-core?id=nope", "tg_admin").await;
    assert!(status >= 400);
    // Reading cores takes less, in the caller's own workspace.
    let list = json!({"operation": "list-kg-cores"});
    let (_, reply) = world.post("/api/v1/knowledge", "tg_reader", list).await;
    assert_eq!(reply, json!({"ids": ["acme"]}));
    let list = json!({"operation": "list-kg-cores", "workspace": "default"});
    assert_eq!(
        world.post("/api/v1/knowledge", "tg_reader", list).await.0,
        403
    );
    let put = json!({"operation": "delete-kg-core", "id": "x"});
    assert_eq!(
        world.post("/api/v1/knowledge", "tg_reader", put).await.0,
        403
    );
}

/// A list of a million lists is a megabyte, and hundreds as a tree: it is refused before that is made.
async fn a_record_is_counted_before_it_is_read(place: Place) {
    let world = World::with(&place, AuthMode::None, |options| {
        options.settings.parsing_mb = 64;
    })
    .await;
    // `["t", {"t": […]}]`
    let lists = 1_000_000_u32;
    let head = [
        &[0x92, 0xa1, b't', 0x81, 0xa1, b't', 0xdd][..],
        &lists.to_be_bytes(),
    ];
    let mut file = head.concat();
    file.resize(file.len() + lists as usize, 0x90);
    let post = world
        .http
        .post(world.url("/api/v1/import-core?id=copy"))
        .body(file)
        .timeout(BOUND);
    let response = post.send().await.unwrap();
    assert_eq!(response.status().as_u16(), 413);
    let reply: Value = response.json().await.unwrap();
    let told = reply["error"]["message"].as_str().unwrap();
    assert!(
        told.starts_with("record 1: the request is too large"),
        "{reply}"
    );
    assert!(world.fakes.put.lock().is_empty());
}

tg_testkit::on_both_buses!(
    a_record_is_counted_before_it_is_read,
    a_core_comes_frame_by_frame_with_whole_documents,
    a_large_document_is_put_in_parts,
    a_file_that_is_exported_can_be_imported_elsewhere,
    doors_of_cores_are_for_administrators_and_name_what_is_missing,
);
