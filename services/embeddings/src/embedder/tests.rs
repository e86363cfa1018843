//! Answers, the memory of what was made before, and failures of a provider.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::provider::endpoint::{Dialect, Endpoint};
use crate::provider::statics::StaticModel;
use crate::testing;
use tg_testkit::json_server::{Server, openai};

const LEFT: Duration = Duration::from_secs(20);

fn over(server: &Server, bounds: Bounds) -> Embedder {
    let endpoint = Endpoint::new(Dialect::OpenAi, &server.url, None, None).unwrap();
    let provider = Provider::Endpoint {
        server: Arc::new(endpoint),
        model: "m".into(),
    };
    Embedder::new(provider, bounds)
}

fn texts(of: &[&str]) -> Vec<String> {
    of.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn answers_name_the_model_and_its_dimension() {
    let lexical = Embedder::new(Provider::Lexical, Bounds::default());
    let none = lexical.embed(Asked::Flows(None), &[], LEFT).await.unwrap();
    assert_eq!(
        (none.model.as_str(), none.vectors.len()),
        ("lexical/1024", 0)
    );
    let two = lexical
        .embed(Asked::Flows(None), &texts(&["a pump", "a pump", ""]), LEFT)
        .await
        .unwrap();
    assert_eq!(two.vectors.len(), 3);
    assert_eq!(two.vectors[0], two.vectors[1]);
    let dir = tempfile::tempdir().unwrap();
    testing::write_model(dir.path(), "", false);
    let provider = Provider::Static {
        name: "tiny".into(),
        model: Arc::new(StaticModel::load(dir.path(), None).unwrap()),
    };
    let table = Embedder::new(provider, Bounds::default());
    assert_eq!(
        table
            .embed(Asked::Flows(None), &texts(&["pump"]), LEFT)
            .await
            .unwrap()
            .model,
        "static/tiny/2"
    );
    let by_name = table
        .embed(Asked::Flows(Some("lexical")), &texts(&["pump"]), LEFT)
        .await
        .unwrap();
    assert_eq!(by_name.model, "lexical/1024");
    let unknown = table
        .embed(Asked::Flows(Some("other")), &[], LEFT)
        .await
        .unwrap_err();
    assert_eq!(unknown, EmbedError::UnknownModel(None));
}

#[tokio::test]
async fn the_same_text_is_made_once_also_at_the_same_time() {
    let server = Server::start(|_, body| openai(body)).await;
    let bounds = Bounds {
        batch: 3,
        ..Bounds::default()
    };
    let embedder = Arc::new(over(&server, bounds));
    let all: Vec<String> = (0..10).map(|n| "x".repeat(n + 1)).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (embedder, all) = (embedder.clone(), all.clone());
        tasks.spawn(async move {
            embedder
                .embed(Asked::Flows(None), &all, LEFT)
                .await
                .unwrap()
        });
    }
    while let Some(done) = tasks.join_next().await {
        let embedded = done.unwrap();
        assert_eq!(embedded.model, "openai/m/2");
        let lengths: Vec<f32> = embedded.vectors.iter().map(|vector| vector[0]).collect();
        assert_eq!(lengths, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
    }
    assert_eq!(server.texts(), 10);
    let most = server
        .asked
        .lock()
        .iter()
        .map(|(_, _, body)| body["input"].as_array().unwrap().len())
        .max();
    assert_eq!(most, Some(3));
    embedder
        .embed(Asked::Flows(Some("other")), &all[..1], LEFT)
        .await
        .unwrap();
    assert_eq!(server.texts(), 11, "another model's vector is another");
}

#[tokio::test]
async fn passing_failures_are_tried_again_and_final_ones_told() {
    let flaky = Server::start(|number, body| match number {
        1 => Some((503, String::new(), json!({}))),
        2 => Some((429, "retry-after: 0\r\n".to_owned(), json!({}))),
        _ => openai(body),
    })
    .await;
    let embedder = over(&flaky, Bounds::default());
    assert_eq!(
        embedder
            .embed(Asked::Flows(None), &texts(&["a"]), LEFT)
            .await
            .unwrap()
            .vectors
            .len(),
        1
    );
    assert_eq!(flaky.asked.lock().len(), 3);

    let closed = Server::start(|_, _| Some((401, String::new(), json!({})))).await;
    let embedder = over(&closed, Bounds::default());
    for asked in 1..3 {
        let error = embedder
            .embed(Asked::Flows(None), &texts(&["a"]), LEFT)
            .await
            .unwrap_err();
        assert_eq!(error, EmbedError::Auth(Some(401)));
        assert_eq!(
            closed.asked.lock().len(),
            asked,
            "a failure is not remembered"
        );
    }
    let silent = Server::start(|_, _| None).await;
    let error = over(&silent, Bounds::default())
        .embed(
            Asked::Flows(None),
            &texts(&["a"]),
            Duration::from_millis(20),
        )
        .await;
    assert_eq!(error, Err(EmbedError::Timeout));
}

#[tokio::test]
async fn too_much_is_refused_by_name() {
    let embedder = Embedder::new(Provider::Lexical, Bounds::default());
    let long = vec!["x".to_owned(), "y".repeat(MOST_TEXT + 1)];
    let error = embedder
        .embed(Asked::Flows(None), &long, LEFT)
        .await
        .unwrap_err();
    assert!(
        error.to_string().starts_with("texts[1]: is longer than"),
        "{error}"
    );
    let many = vec![String::new(); MOST_TEXTS + 1];
    let error = tg_schemas::Error::from(
        embedder
            .embed(Asked::Flows(None), &many, LEFT)
            .await
            .unwrap_err(),
    );
    assert_eq!(error.code(), tg_schemas::ErrorCode::TooLarge);
}

#[tokio::test]
async fn a_model_is_asked_for_by_the_name_of_its_vectors() {
    let server = Server::start(|_, body| openai(body)).await;
    let embedder = over(&server, Bounds::default());
    let all = texts(&["a"]);
    let usual = embedder
        .embed(Asked::Flows(None), &all, LEFT)
        .await
        .unwrap();
    for model in [usual.model.as_str(), "lexical/1024"] {
        let exactly = Asked::Exactly(model);
        let made = embedder.embed(exactly, &all, LEFT).await.unwrap();
        assert_eq!(made.model, model);
    }
    let longer = format!("{}0", usual.model);
    for unknown in [
        &longer,
        "openai/m",
        "lexical/7",
        "lexical",
        "ollama/m/2",
        "static/x/3",
        "",
    ] {
        let made = embedder.embed(Asked::Exactly(unknown), &all, LEFT).await;
        assert_eq!(made, Err(EmbedError::UnknownModel(None)), "{unknown}");
    }
}
