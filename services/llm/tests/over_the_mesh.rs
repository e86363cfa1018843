//! Text completion as a client of the mesh sees it: streamed, whole, failing, cancelled, with a usage
//! record for each call.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tg_llm::{Backoff, Options, processors};
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{Ask, Cx, Host, MeshOptions, Out, Processor, Read, ReadFault, Serve};
use tg_schemas::msg::{
    ConfigRequest, ConfigResponse, ConfigValue, TextCompletionRequest, TextCompletionResponse,
    Usage,
};
use tg_schemas::{Error, ErrorCode, Topic};
use tg_testkit::model::{End, Reply, Rule, ScriptedModel};
use tokio::sync::mpsc;

const BOUND: Duration = Duration::from_secs(20);
const TOPIC: &str = "request:tg:text-completion:default:f";

/// A config service with one flow.
struct Config;

#[async_trait]
impl Serve<ConfigRequest, ConfigResponse> for Config {
    async fn serve(
        &self,
        _cx: Cx,
        ask: ConfigRequest,
        mut out: Out<ConfigResponse>,
    ) -> Result<(), Error> {
        let row = ConfigValue {
            workspace: "default".to_owned(),
            r#type: "processor:text-completion".to_owned(),
            key: "f".to_owned(),
            value: format!(
                r#"{{"topics": {{"request": "{TOPIC}"}}, "epoch": 1,
                    "parameters": {{"model": "chosen", "temperature": "0.5"}}}}"#
            ),
        };
        let values = if row.r#type == ask.r#type {
            vec![row]
        } else {
            Vec::new()
        };
        out.send(ConfigResponse {
            version: 1,
            values,
            ..ConfigResponse::default()
        })
        .await
    }
}

struct Meter(mpsc::Sender<Usage>);

#[async_trait]
impl Read<Usage> for Meter {
    async fn read(&self, _cx: Cx, usage: Usage) -> Result<(), ReadFault> {
        let _ = self.0.send(usage).await;
        Ok(())
    }
}

struct World {
    mesh: Host,
    server: ScriptedModel,
    usage: mpsc::Receiver<Usage>,
}

async fn world(rules: Vec<Rule>) -> World {
    let server = ScriptedModel::start(rules).await.unwrap();
    let mesh = Host::start(Arc::new(EmbeddedBus::in_memory()), MeshOptions::default())
        .await
        .unwrap();
    mesh.host(Processor::new("config-svc").serves_system("config", Arc::new(Config)))
        .await
        .unwrap();
    let (tx, usage) = mpsc::channel(64);
    mesh.host(Processor::new("metering").reads_system("usage:default:f", Arc::new(Meter(tx))))
        .await
        .unwrap();
    let backoff = Backoff {
        attempts: 1,
        ..Backoff::default()
    };
    let options = Options {
        openai_base_url: Some(server.url()),
        backoff,
        ..Options::default()
    };
    for processor in processors(&mesh, options).unwrap() {
        mesh.host(processor).await.unwrap();
    }
    let there = |view: &tg_mesh::PresenceView| view.attached("text-completion", "default", "f", 1);
    assert!(mesh.presence().until(BOUND, there).await);
    World {
        mesh,
        server,
        usage,
    }
}

impl World {
    fn ask(&self, ask: &TextCompletionRequest) -> tg_mesh::Answer<TextCompletionResponse> {
        let options = Ask {
            epoch: Some(1),
            ..Ask::default()
        };
        self.mesh.ask(&Topic::parse(TOPIC).unwrap(), ask, options)
    }

    async fn usage(&mut self) -> Usage {
        tokio::time::timeout(BOUND, self.usage.recv())
            .await
            .unwrap()
            .unwrap()
    }
}

fn question(prompt: &str, streaming: bool) -> TextCompletionRequest {
    TextCompletionRequest {
        system: "sys".to_owned(),
        prompt: prompt.to_owned(),
        streaming,
        ..TextCompletionRequest::default()
    }
}

#[tokio::test]
async fn a_stream_has_pieces_and_ends_with_the_totals() {
    let reply = Reply::pieces(["one ", "two ", "three"]).delayed(Duration::from_millis(20));
    let mut world = world(vec![Rule::always(reply)]).await;
    let mut answer = world.ask(&question("go", true));
    let mut pieces = Vec::new();
    while let Some(part) = answer.next().await {
        pieces.push(part.unwrap());
    }
    let last = pieces.pop().unwrap();
    assert_eq!(
        (
            last.response.as_str(),
            last.in_token,
            last.out_token,
            last.model.as_deref()
        ),
        ("", Some(2), Some(3), Some("chosen"))
    );
    assert!(last.end_of_stream);
    assert_eq!(pieces.len(), 3);
    assert!(
        pieces
            .iter()
            .all(|piece| !piece.end_of_stream && piece.in_token.is_none())
    );
    let text: String = pieces.into_iter().map(|piece| piece.response).collect();
    assert_eq!(text, "one two three");
    let usage = world.usage().await;
    assert_eq!(
        (
            usage.processor.as_str(),
            usage.model.as_str(),
            usage.outcome.as_str()
        ),
        ("text-completion", "chosen", "ok")
    );
    assert_eq!((usage.in_token, usage.out_token), (2, 3));
    let call = &world.server.calls()[0];
    assert_eq!(call.body["temperature"], 0.5);
}

#[tokio::test]
async fn a_whole_answer_is_one_message() {
    let mut world = world(vec![Rule::always(Reply::pieces(["one ", "two"]))]).await;
    let mut answer = world.ask(&question("go", false));
    let only = answer.next().await.unwrap().unwrap();
    assert_eq!(
        (only.response.as_str(), only.end_of_stream),
        ("one two", true)
    );
    assert!(answer.next().await.is_none());
    let models = TextCompletionRequest {
        operation: "list-models".to_owned(),
        ..Default::default()
    };
    let listed = world.ask(&models).last().await.unwrap();
    assert_eq!(listed.models[0].id, "scripted");
    let which = TextCompletionRequest {
        operation: "which-model".to_owned(),
        ..Default::default()
    };
    let told = world.ask(&which).last().await.unwrap();
    assert_eq!(told.model.as_deref(), Some("openai/chosen"));
    let wrong = TextCompletionRequest {
        operation: "dance".to_owned(),
        ..Default::default()
    };
    let error = world.ask(&wrong).last().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::BadOperation);
    assert_eq!(world.usage().await.outcome, "ok");
}

#[tokio::test]
async fn failures_are_typed_metered_and_silent_about_the_provider() {
    let refusal = Reply::status(401, r#"{"error": {"message": "key sk-leak is bad"}}"#);
    let mut world = world(vec![
        Rule::contains("bad", refusal),
        Rule::contains("limit", Reply::rate_limited(7)),
        Rule::contains("break", Reply::pieces(["half "]).ending(End::Disconnect)),
    ])
    .await;
    for (prompt, kind) in [
        ("bad", "llm-error"),
        ("limit", "rate-limited"),
        ("break", "llm-error"),
    ] {
        let error = world.ask(&question(prompt, true)).last().await.unwrap_err();
        assert_eq!(error.kind, kind, "{prompt}");
        assert!(
            !error.message.contains("leak") && !error.message.contains("127.0"),
            "{error:?}"
        );
        assert_eq!(world.usage().await.outcome, kind);
    }
}

#[tokio::test]
async fn an_asker_that_leaves_closes_the_providers_socket() {
    let hang = Reply::pieces(["one "]).ending(End::Hang);
    let mut world = world(vec![Rule::always(hang)]).await;
    let mut answer = world.ask(&question("go", true));
    assert_eq!(answer.next().await.unwrap().unwrap().response, "one ");
    drop(answer);
    assert!(world.server.wait_closed(1, BOUND).await);
    assert_eq!(world.usage().await.outcome, "cancelled");
}
