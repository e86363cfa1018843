//! A collection is changed to another model: what stands in the way is told, the old vectors serve meanwhile, then the new.

use std::sync::atomic::Ordering;

use tg_mesh::Ask;
use tg_schemas::msg::{
    DocumentEmbeddings, DocumentEmbeddingsRequest, DocumentEmbeddingsResponse, ReembedRequest,
    ReembedResponse, Reembedding,
};
use tg_schemas::processors::graph_embeddings_write::REEMBED;
use tg_schemas::{Class, Error, ErrorCode};
use tg_testkit::config::Config;
use tg_testkit::fakes::Embeddings;
use tg_testkit::flow::{TestFlow, topic};
use tg_testkit::place::Place;

use super::system::{metadata, start_beside};
use super::{CHUNK_STORE, chunk};

const CHUNKS: usize = 300;

fn ask(operation: &str, model: &str) -> ReembedRequest {
    ReembedRequest {
        operation: operation.to_owned(),
        workspace: "default".to_owned(),
        collection: "c".to_owned(),
        model: model.to_owned(),
        topic: topic(Class::Request, "embeddings").to_string(),
        ..ReembedRequest::default()
    }
}

async fn told(system: &TestFlow, ask: &ReembedRequest) -> Result<Reembedding, Error> {
    let asked = system
        .mesh
        .ask::<_, ReembedResponse>(&REEMBED.of_system(), ask, Ask::default());
    Ok(asked.last().await?.reembedding.unwrap_or_default())
}

/// How many chunks a question of a model finds, and which model it has to be asked of instead.
async fn found(system: &TestFlow, model: &str, numbers: usize) -> (usize, String) {
    let ask = DocumentEmbeddingsRequest {
        vector: vec![1.0; numbers],
        collection: "c".to_owned(),
        limit: 1_000,
        model: model.to_owned(),
        tell_model: true,
        ..DocumentEmbeddingsRequest::default()
    };
    let answer: DocumentEmbeddingsResponse = system.ask("document-embeddings", &ask).await.unwrap();
    (answer.chunks.len(), answer.model)
}

fn of_text(id: &str) -> DocumentEmbeddings {
    let mut record = chunk(id, &[1.0, 0.5]);
    record.chunks[0].text = format!("text of {id}");
    record
}

pub async fn the_old_vectors_serve_until_the_switch(place: Place) {
    let played = Embeddings::new("three/3", |text| vec![1.0, 2.0, text.len() as f32]);
    played.down.store(true, Ordering::SeqCst);
    let (system, _dir) = start_beside(&place, Config::new(), played.clone()).await;
    for n in 0..CHUNKS {
        system.write(CHUNK_STORE, &of_text(&format!("k{n}"))).await;
    }
    system
        .until(async || found(&system, "m", 2).await.0 == CHUNKS)
        .await;
    let nothing = told(&system, &ask("show", "")).await.unwrap();
    assert_eq!(
        (nothing.state.as_str(), nothing.serving),
        ("nothing", vec!["m".to_owned()])
    );
    let nameless = told(&system, &ask("begin", "")).await.unwrap_err();
    assert_eq!(nameless.message, "model: is required");
    let unknown = told(&system, &ask("end", "")).await.unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::BadOperation);

    told(&system, &ask("begin", "three/3")).await.unwrap();
    // Nobody makes vectors: that is told, and the old ones serve.
    system
        .until(async || {
            let told = told(&system, &ask("show", "")).await.unwrap();
            assert_eq!(told.state, "running");
            told.reason.contains("out of order")
        })
        .await;
    assert_eq!(found(&system, "m", 2).await, (CHUNKS, String::new()));
    assert_eq!(found(&system, "three/3", 3).await, (0, "m".to_owned()));
    // What a flow writes that has the new model already waits for the switch.
    let mut fresh = of_text("fresh");
    fresh.model = "three/3".to_owned();
    fresh.chunks[0].vector = vec![1.0, 2.0, 3.0];
    system.write(CHUNK_STORE, &fresh).await;
    played.down.store(false, Ordering::SeqCst);
    system
        .until(async || told(&system, &ask("show", "")).await.unwrap().state == "switched")
        .await;
    let told = told(&system, &ask("show", "")).await.unwrap();
    assert_eq!((told.done, told.total), (CHUNKS as i64, CHUNKS as i64));
    assert_eq!(told.serving, ["three/3"]);
    system
        .until(async || found(&system, "three/3", 3).await.0 == CHUNKS + 1)
        .await;
    assert_eq!(found(&system, "m", 2).await, (0, "three/3".to_owned()));
}

async fn until_it_is(system: &TestFlow, state: &str) -> Reembedding {
    system
        .until(async || told(system, &ask("show", "")).await.unwrap().state == state)
        .await;
    told(system, &ask("show", "")).await.unwrap()
}

pub async fn a_refused_text_holds_up_the_switch_alone_and_may_be_left_out(place: Place) {
    let played = Embeddings::new("three/3", |text| vec![1.0, 2.0, text.len() as f32]);
    let (system, _dir) = start_beside(&place, Config::new(), played).await;
    for n in 0..20 {
        let mut record = of_text(&format!("k{n}"));
        if n == 7 {
            record.chunks[0].text = "poison".to_owned();
        }
        system.write(CHUNK_STORE, &record).await;
    }
    system
        .until(async || found(&system, "m", 2).await.0 == 20)
        .await;
    told(&system, &ask("begin", "three/3")).await.unwrap();
    let waits = until_it_is(&system, "waiting").await;
    assert_eq!((waits.done, waits.total, waits.refused), (19, 20, 1));
    assert_eq!(waits.refusal, "chunk k7: texts: too long");
    assert!(
        waits.reason.contains("refuses texts (chunk k7"),
        "{waits:?}"
    );
    assert_eq!(found(&system, "m", 2).await, (20, String::new()));
    let without = ReembedRequest {
        leave_out: true,
        ..ask("begin", "three/3")
    };
    told(&system, &without).await.unwrap();
    let over = until_it_is(&system, "switched").await;
    assert_eq!((over.refused, over.textless), (1, 0), "{over:?}");
    system
        .until(async || found(&system, "three/3", 3).await.0 == 19)
        .await;
}

pub async fn a_slow_collection_delays_no_other(place: Place) {
    let played = Embeddings::new("three/3", |text| vec![1.0, 2.0, text.len() as f32]);
    let (system, _dir) = start_beside(&place, Config::new(), played.clone()).await;
    let mut slow = of_text("k");
    slow.chunks[0].text = "molasses".to_owned();
    system.write(CHUNK_STORE, &slow).await;
    // More batches than one, each of which would wait for the slow one.
    for n in 0..CHUNKS {
        let mut record = of_text(&format!("k{n}"));
        record.metadata = metadata("doc", "quick");
        system.write(CHUNK_STORE, &record).await;
    }
    let quick = |operation: &str| ReembedRequest {
        collection: "quick".to_owned(),
        ..ask(operation, "three/3")
    };
    let there = async || told(&system, &quick("show")).await.unwrap().serving;
    system.until(async || there().await == ["m"]).await;
    system
        .until(async || found(&system, "m", 2).await.0 == 1)
        .await;
    told(&system, &ask("begin", "three/3")).await.unwrap();
    told(&system, &quick("begin")).await.unwrap();
    system
        .until(async || told(&system, &quick("show")).await.unwrap().state == "switched")
        .await;
    let still = told(&system, &ask("show", "")).await.unwrap();
    assert_eq!((still.state.as_str(), still.done), ("running", 0));
    played.hurry();
    until_it_is(&system, "switched").await;
}

/// Whoever asks while the switch happens has an answer that is whole and of one model; never none, and never an error.
pub async fn who_asks_at_the_switch_has_a_whole_answer(place: Place) {
    let played = Embeddings::new("three/3", |text| vec![1.0, 2.0, text.len() as f32]);
    let (system, _dir) = start_beside(&place, Config::new(), played.clone()).await;
    for n in 0..CHUNKS {
        system.write(CHUNK_STORE, &of_text(&format!("k{n}"))).await;
    }
    let mut slow = of_text("slow");
    slow.chunks[0].text = "molasses".to_owned();
    system.write(CHUNK_STORE, &slow).await;
    let all = CHUNKS + 1;
    system
        .until(async || found(&system, "m", 2).await.0 == all)
        .await;
    told(&system, &ask("begin", "three/3")).await.unwrap();
    let (system, over) = (&system, &std::cell::Cell::new(false));
    let asks = |_| async move {
        let mut seen = (0, 0);
        let mut model = ("m", 2);
        // Some more after it is over: what served is being thrown away.
        let mut after = 0;
        while after < 20 {
            after += usize::from(over.get());
            let (count, other) = found(system, model.0, model.1).await;
            match other.as_str() {
                "" => {
                    assert_eq!(count, all, "{model:?}");
                    match model.0 {
                        "m" => seen.0 += 1,
                        _ => seen.1 += 1,
                    }
                }
                "three/3" => model = ("three/3", 3),
                _ => panic!("{other}: the former model serves again"),
            }
        }
        assert!(seen.0 > 0 && seen.1 > 0, "{seen:?}");
    };
    let switches = async {
        system
            .until(async || told(system, &ask("show", "")).await.unwrap().done > 0)
            .await;
        played.hurry();
        until_it_is(system, "switched").await;
        over.set(true);
    };
    tokio::join!(switches, asks(0), asks(1), asks(2), asks(3));
}
