//! Providers as they answer over HTTP.

use serde_json::json;
use tg_provider_http::{Cause, Outage, Secret};

use super::*;
use tg_testkit::json_server::{self, Server};

async fn openai(
    server: &Server,
    key: Option<Secret>,
    texts: &[&str],
) -> Result<Vec<Vec<f32>>, EmbedError> {
    let endpoint = Endpoint::new(
        Dialect::OpenAi,
        &format!("{}/v1/", server.url),
        key,
        Some(2),
    )
    .unwrap();
    endpoint.embed("m", texts).await
}

#[tokio::test]
async fn the_openai_dialect_is_spoken() {
    let server = Server::start(|_, body| json_server::openai(body)).await;
    let vectors = openai(&server, Some(Secret::new("k")), &["a", "bcd"])
        .await
        .unwrap();
    assert_eq!(
        vectors,
        [[1.0, 1.0], [3.0, 1.0]],
        "in the order of the texts"
    );
    let asked = server.asked.lock();
    let (path, key, body) = &asked[0];
    assert_eq!(
        (path.as_str(), key.as_str()),
        ("/v1/embeddings", "Bearer k")
    );
    let wanted =
        json!({"model": "m", "input": ["a", "bcd"], "dimensions": 2, "encoding_format": "float"});
    assert_eq!(*body, wanted);
}

#[tokio::test]
async fn the_ollama_dialect_is_spoken() {
    let answer = |_: usize, _: &serde_json::Value| {
        Some((200, String::new(), json!({"embeddings": [[0.5, 1.0]]})))
    };
    let server = Server::start(answer).await;
    let endpoint = Endpoint::new(Dialect::Ollama, &server.url, None, None).unwrap();
    assert_eq!(endpoint.embed("m", &["a"]).await.unwrap(), [[0.5, 1.0]]);
    assert_eq!(
        endpoint.embed("m", &["a", "b"]).await,
        Err(EmbedError::Malformed),
        "one is missing"
    );
    let asked = server.asked.lock();
    assert_eq!(asked[0].0, "/api/embed");
    assert_eq!(
        asked[0].2,
        json!({"model": "m", "input": ["a"], "truncate": true})
    );
}

#[tokio::test]
async fn refusals_say_what_kind_they_are_and_nothing_else() {
    let refused = async |status: u16, headers: &'static str| {
        let rule = move |_: usize, _: &serde_json::Value| {
            Some((
                status,
                headers.to_owned(),
                json!({"error": {"message": "secret words"}}),
            ))
        };
        let server = Server::start(rule).await;
        openai(&server, None, &["a"]).await.unwrap_err()
    };
    assert_eq!(refused(401, "").await, EmbedError::Auth(Some(401)));
    assert_eq!(refused(404, "").await, EmbedError::UnknownModel(Some(404)));
    assert_eq!(refused(400, "").await, EmbedError::Refused(Some(400)));
    assert_eq!(
        refused(500, "").await,
        EmbedError::Unavailable(Outage::Status(500))
    );
    let limited = refused(429, "retry-after: 7\r\n").await;
    let text = tg_schemas::Error::from(limited).message;
    assert!(text.ends_with("try again in 7 s"), "{text}");
    let nobody = Endpoint::new(Dialect::OpenAi, "http://127.0.0.1:9", None, None).unwrap();
    assert_eq!(
        nobody.embed("m", &["a"]).await,
        Err(EmbedError::Unavailable(Outage::Unreachable(Cause::Refused)))
    );
}

#[tokio::test]
async fn half_answers_are_no_answers() {
    for data in [
        json!([]),
        json!([{"embedding": []}]),
        json!([{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]),
        json!([{"embedding": [1e39]}]),
        json!([{"embedding": ["x"]}]),
    ] {
        let count = data.as_array().unwrap().len().max(1);
        let server =
            Server::start(move |_, _| Some((200, String::new(), json!({"data": data.clone()}))))
                .await;
        let texts = vec!["t"; count];
        assert_eq!(
            openai(&server, None, &texts).await,
            Err(EmbedError::Malformed)
        );
    }
}

#[test]
fn a_flow_may_name_a_model_where_there_is_a_choice() {
    let name =
        |provider: &Provider, asked: Option<&str>| provider.choose(asked).map(|(_, name)| name);
    assert_eq!(name(&Provider::Lexical, Some("")).unwrap(), "lexical");
    assert_eq!(
        name(&Provider::Lexical, Some("x")),
        Err(EmbedError::UnknownModel(None))
    );
    let server = Endpoint::new(Dialect::Ollama, "http://h", None, None).unwrap();
    let server = Provider::Endpoint {
        server: Arc::new(server),
        model: "usual".into(),
    };
    assert_eq!(name(&server, None).unwrap(), "ollama/usual");
    assert_eq!(name(&server, Some("other")).unwrap(), "ollama/other");
    assert_eq!(name(&server, Some("lexical")).unwrap(), "lexical");
}

/// Servers say 200 and an error, list their models in a plain array, and do not know every wish.
#[tokio::test]
async fn servers_of_the_dialect_differ() {
    let rate = || EmbedError::RateLimited {
        retry_after: None,
        status: Some(429),
    };
    for (body, expected) in [
        (
            json!({"error": {"message": "slow down", "code": 429}}),
            rate(),
        ),
        (
            json!({"object": "error", "message": "m", "code": "429"}),
            rate(),
        ),
        (
            json!({"data": [], "error": {"code": 401}}),
            EmbedError::Auth(Some(401)),
        ),
        (json!({"data": null}), EmbedError::Malformed),
    ] {
        let told = body.clone();
        let server = Server::start(move |_, _| Some((200, String::new(), told.clone()))).await;
        assert_eq!(openai(&server, None, &["a"]).await, Err(expected), "{body}");
    }
    let unknown = json!({"detail": [{"loc": ["body", "encoding_format"], "msg": "Extra inputs are not permitted"}]});
    let server = Server::start(move |_, body| match body.get("encoding_format") {
        Some(_) => Some((422, String::new(), unknown.clone())),
        None => json_server::openai(body),
    })
    .await;
    let endpoint = Endpoint::new(Dialect::OpenAi, &server.url, None, None).unwrap();
    for _ in 0..2 {
        assert_eq!(endpoint.embed("m", &["a"]).await, Ok(vec![vec![1.0, 1.0]]));
    }
    assert_eq!(server.asked.lock().len(), 3, "it is remembered");
    for listed in [
        json!([{"id": "a"}]),
        json!({"data": [{"id": "a"}]}),
        json!({"models": ["a"]}),
    ] {
        assert_eq!(
            super::endpoint::names(&listed),
            Ok(vec!["a".to_owned()]),
            "{listed}"
        );
    }
}

/// What servers say that take fewer texts at once; the number is remembered, what one call was too long for is not.
#[tokio::test]
async fn a_server_that_refuses_so_many_texts_is_asked_for_fewer() {
    let texts: Vec<String> = (1..=9).map(|length| "x".repeat(length)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let lengths: Vec<f32> = (1_u8..=9).map(f32::from).collect();
    for (status, message, again) in [
        (413, "batch size 9 > maximum allowed batch size 4", 3),
        (
            422,
            "litellm.BadRequestError: batch size 9 > maximum allowed batch size 4",
            3,
        ),
        (
            400,
            "Value error, batch size is invalid, it should not be larger than 4.: input.contents",
            3,
        ),
        (400, "Too many inputs. The max number of inputs is 4", 3),
        (400, "Too many tokens in batch", 4),
        (413, "length limit exceeded", 4),
    ] {
        let refused = json!({"error": {"message": message}});
        let server = Server::start(move |_, body| {
            let count = body["input"].as_array().map_or(0, Vec::len);
            match count > 4 {
                true => Some((status, String::new(), refused.clone())),
                false => json_server::openai(body),
            }
        })
        .await;
        let endpoint = Endpoint::new(Dialect::OpenAi, &server.url, None, None).unwrap();
        for calls in [4, again] {
            server.asked.lock().clear();
            let vectors = endpoint.embed("m", &texts).await.unwrap();
            let first: Vec<f32> = vectors.iter().map(|vector| vector[0]).collect();
            assert_eq!(first, lengths, "{message}");
            assert_eq!(server.asked.lock().len(), calls, "{message}");
        }
    }
    // One text that is too long, and what is refused for another reason, are not asked for again.
    for (status, message) in [
        (413, "`inputs` must have less than 512 tokens. Given: 600"),
        (400, "input cannot be an empty string"),
    ] {
        let refused = json!({"error": {"message": message}});
        let server =
            Server::start(move |_, _| Some((status, String::new(), refused.clone()))).await;
        let endpoint = Endpoint::new(Dialect::OpenAi, &server.url, None, None).unwrap();
        assert!(endpoint.embed("m", &texts).await.is_err(), "{message}");
        assert_eq!(server.asked.lock().len(), 1, "{message}");
    }
}
