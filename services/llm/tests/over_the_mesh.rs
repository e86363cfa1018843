//! Text completion as a client of the mesh sees it: streamed, whole, failing, cancelled, with a usage
//! record for each call.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tg_llm::{Options, processors};
use tg_mesh::{Ask, Processor};
use tg_schemas::msg::{
    ChatCompletionRequest, ChatCompletionResponse, ModelService, ModelSettings,
    TextCompletionRequest, TextCompletionResponse, Usage,
};
use tg_schemas::processors::{ProcessorSpec, Reads, Spec};
use tg_schemas::{Class, ErrorCode};
use tg_testkit::config::Config;
use tg_testkit::fakes::RecordingConsumer;
use tg_testkit::flow::{SOON, TestFlow, Wiring, topic};
use tg_testkit::model::{End, Reply, Rule, ScriptedModel};
use tg_testkit::place::Place;
use tg_testkit::process::free_port;
use tokio::time::Instant;

/// The usage records of the one flow, read from outside of it.
const USAGE: Spec<Reads<Usage>> = Spec::new("usage:default:default").system();

const WIRING: &[Wiring] = &[(
    "text-completion",
    &[("request", Class::Request, "text-completion")],
)];

struct World {
    flow: TestFlow,
    server: ScriptedModel,
    usage: Arc<RecordingConsumer<Usage>>,
    metered: usize,
}

async fn world(place: &Place, rules: Vec<Rule>) -> World {
    world_with(place, rules, Options::default()).await
}

/// With further options; an address that they lack is the scripted model's.
async fn world_with(place: &Place, rules: Vec<Rule>, own: Options) -> World {
    let server = ScriptedModel::start(rules).await.unwrap();
    let options = Options {
        url: own.url.clone().or_else(|| Some(server.url())),
        retries: 0,
        ..own
    };
    let usage = RecordingConsumer::new();
    let meter = Processor::new(ProcessorSpec::unlisted("meter")).reads(USAGE, usage.clone());
    let host = |mesh: &_| {
        let own = processors(mesh, options).unwrap();
        own.into_iter().chain([meter]).collect()
    };
    let parameters = json!({"model": "chosen", "temperature": "0.5"});
    let flow = TestFlow::start_with(place, Config::new(), WIRING, parameters, host).await;
    World {
        flow,
        server,
        usage,
        metered: 0,
    }
}

impl World {
    fn ask(&self, ask: &TextCompletionRequest) -> tg_mesh::Answer<TextCompletionResponse> {
        let to = topic(Class::Request, "text-completion");
        self.flow.mesh.ask(&to, ask, self.flow.options())
    }

    async fn usage(&mut self) -> Usage {
        let at = self.metered;
        self.metered += 1;
        self.usage.until(|all| all.len() > at).await.remove(at)
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

async fn a_stream_has_pieces_and_ends_with_the_totals(place: Place) {
    let reply = Reply::pieces(["one ", "two ", "three"]).delayed(Duration::from_millis(20));
    let mut world = world(&place, vec![Rule::always(reply)]).await;
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
        ("", Some(3), Some(3), Some("chosen"))
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
    assert_eq!((usage.in_token, usage.out_token), (3, 3));
    let call = &world.server.calls()[0];
    assert_eq!(call.body["temperature"], 0.5);
}

/// By a fourth of the characters, in the answer as in the usage record.
async fn output_that_the_provider_does_not_report_is_estimated(place: Place) {
    let reply = |usage: serde_json::Value| {
        let body = json!({
            "choices": [{"message": {"content": "one two three"}, "finish_reason": "stop"}],
            "usage": usage,
        });
        Reply::status(200, body.to_string())
    };
    // A 0 is no report: the answer has words.
    let zero = json!({"prompt_tokens": 7, "completion_tokens": 0});
    let rules = vec![
        Rule::contains("zero", reply(zero)),
        Rule::always(reply(json!({"prompt_tokens": 7}))),
    ];
    let mut world = world(&place, rules).await;
    for (prompt, streaming) in [("go", true), ("go", false), ("zero", true), ("zero", false)] {
        let last = world
            .ask(&question(prompt, streaming))
            .last()
            .await
            .unwrap();
        assert_eq!((last.in_token, last.out_token), (Some(7), Some(3)));
        let usage = world.usage().await;
        let counts = (usage.in_token, usage.out_token, usage.estimated);
        assert_eq!(counts, (7, 3, true));
    }
}

async fn a_question_names_its_model_and_those_in_its_place(place: Place) {
    let unknown = || Reply::status(404, "");
    let rules = vec![
        Rule::contains("alone", unknown()),
        Rule::always(unknown()).times(1),
        Rule::always(Reply::pieces(["yes"])),
    ];
    let world = world(&place, rules).await;
    let asked = |settings: ModelSettings| TextCompletionRequest {
        settings: Some(settings),
        ..question("go", false)
    };
    let settings = ModelSettings {
        model: "gone".to_owned(),
        models: vec!["own".to_owned()],
        max_tokens: Some(9),
        temperature: Some(1.5),
        service: None,
    };
    let told = world.ask(&asked(settings.clone())).last().await.unwrap();
    assert_eq!(told.response, "yes");
    let models = |calls: &[tg_testkit::model::Call]| -> Vec<String> {
        let named = calls.iter().map(|call| call.body["model"].as_str());
        named
            .map(|name| name.unwrap_or_default().to_owned())
            .collect()
    };
    let calls = world.server.calls();
    assert_eq!(models(&calls), ["gone", "own"]);
    for call in calls {
        assert_eq!(
            (&call.body["max_tokens"], &call.body["temperature"]),
            (&json!(9), &json!(1.5))
        );
    }
    // Without another one it fails, and without a name the flow's own is asked.
    let alone = TextCompletionRequest {
        settings: Some(ModelSettings {
            models: Vec::new(),
            ..settings
        }),
        ..question("alone", false)
    };
    assert!(world.ask(&alone).last().await.is_err());
    world
        .ask(&asked(ModelSettings::default()))
        .last()
        .await
        .unwrap();
    assert_eq!(world.server.calls().last().unwrap().body["model"], "chosen");
}

/// 67: another server than that of the flow, which is told the credential of the workspace.
async fn line_067_the_service_of_a_workspace_answers(place: Place) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, "sk-own").unwrap();
    let reference = format!("file:{}", file.display());
    let credentials = json!(format!("default={reference}"));
    let own = Options {
        credentials: Some(serde_json::from_value(credentials).unwrap()),
        private_addresses: true,
        ..Options::default()
    };
    let world = world_with(&place, vec![Rule::always(Reply::text("flow"))], own).await;
    let near = ScriptedModel::start(vec![Rule::always(Reply::text("own"))])
        .await
        .unwrap();
    let settings = |credential: &str| ModelSettings {
        model: "m9".to_owned(),
        service: Some(ModelService {
            provider: "openai".to_owned(),
            url: near.url(),
            credential: credential.to_owned(),
            timeout_ms: 0,
        }),
        ..ModelSettings::default()
    };
    let asked = |credential: &str| TextCompletionRequest {
        settings: Some(settings(credential)),
        ..question("go", false)
    };
    let told = world.ask(&asked(&reference)).last().await.unwrap();
    assert_eq!(told.response, "own");
    let call = near.calls().remove(0);
    assert_eq!(call.body["model"], "m9");
    let signed = call.authorization.unwrap_or_default();
    assert!(signed.ends_with("sk-own"), "{signed}");
    // One that is not listed is not read, and nobody is asked.
    let refused = world.ask(&asked("env:PATH")).last().await.unwrap_err();
    assert!(!refused.message.contains("PATH"), "{refused:?}");
    assert_eq!((near.calls().len(), world.server.calls().len()), (1, 0));
}

/// 108: as the flow's provider does, and for nobody else. A row with another address is answered at once.
async fn line_108_the_service_of_a_workspace_rests(place: Place) {
    let own = Options {
        private_addresses: true,
        ..Options::default()
    };
    let world = world_with(&place, vec![Rule::always(Reply::text("flow"))], own).await;
    let fails = Rule::contains("fail", Reply::status(500, ""));
    let rules = vec![fails, Rule::always(Reply::text("own"))];
    let near = ScriptedModel::start(rules).await.unwrap();
    let mended = ScriptedModel::start(vec![Rule::always(Reply::text("mended"))]);
    let mended = mended.await.unwrap();
    let asked = |prompt: &str, at: &ScriptedModel| TextCompletionRequest {
        settings: Some(ModelSettings {
            model: "m9".to_owned(),
            service: Some(ModelService {
                provider: "ollama".to_owned(),
                url: at.url(),
                ..ModelService::default()
            }),
            ..ModelSettings::default()
        }),
        ..question(prompt, false)
    };
    let failed = world.ask(&asked("fail", &near)).last().await.unwrap_err();
    assert_eq!(failed.code(), ErrorCode::Provider);
    let rests = world.ask(&asked("go", &near)).last().await.unwrap_err();
    assert_eq!(rests.code(), ErrorCode::Unavailable);
    assert!(rests.pause().is_some(), "{rests:?}");
    assert!(!rests.message.contains("llm.url"), "{rests:?}");
    assert_eq!(near.calls().len(), 1);
    let told = world.ask(&asked("go", &mended)).last().await.unwrap();
    assert_eq!(told.response, "mended");
    let told = world.ask(&question("go", false)).last().await.unwrap();
    assert_eq!(told.response, "flow");
}

/// Who does not ask for what the model thinks is told the answer alone, as ever.
async fn what_a_model_thinks_is_told_to_who_wants_it(place: Place) {
    let reply = || Reply::pieces(["<thi", "nk>Act", "ion: x</th", "ink>\n", "yes", "!"]);
    let world = world(&place, vec![Rule::always(reply())]).await;
    for (streaming, thinking) in [(true, true), (true, false), (false, true), (false, false)] {
        let asked = TextCompletionRequest {
            thinking,
            ..question("go", streaming)
        };
        let mut answer = world.ask(&asked);
        let (mut thought, mut text) = (String::new(), String::new());
        while let Some(part) = answer.next().await {
            let part = part.unwrap();
            assert!(part.end_of_stream || !(part.response.is_empty() && part.thinking.is_empty()));
            assert!(part.thinking.is_empty() || text.is_empty());
            thought += &part.thinking;
            text += &part.response;
        }
        let expected = if thinking { "Action: x" } else { "" };
        assert_eq!((thought.as_str(), text.as_str()), (expected, "yes!"));
    }
}

async fn a_whole_answer_is_one_message(place: Place) {
    let mut world = world(&place, vec![Rule::always(Reply::pieces(["one ", "two"]))]).await;
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
    assert_eq!(told.model.as_deref(), Some("openai/chosen at 0.5"));
    let wrong = TextCompletionRequest {
        operation: "dance".to_owned(),
        ..Default::default()
    };
    let error = world.ask(&wrong).last().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::BadOperation);
    assert_eq!(world.usage().await.outcome, "ok");
}

async fn failures_are_typed_metered_and_silent_about_the_provider(place: Place) {
    let refusal = Reply::status(401, r#"{"error": {"message": "key sk-leak is bad"}}"#);
    let mut world = world(
        &place,
        vec![
            Rule::contains("bad", refusal),
            Rule::contains("limit", Reply::rate_limited(7)),
            Rule::contains("break", Reply::pieces(["half "]).ending(End::Disconnect)),
        ],
    )
    .await;
    // Of a model each: one that failed rests.
    let asked = |prompt: &str| TextCompletionRequest {
        settings: Some(ModelSettings {
            model: prompt.to_owned(),
            ..ModelSettings::default()
        }),
        ..question(prompt, true)
    };
    for (prompt, kind) in [
        ("bad", "llm-error"),
        ("limit", "rate-limited"),
        ("break", "llm-error"),
    ] {
        let error = world.ask(&asked(prompt)).last().await.unwrap_err();
        assert_eq!(error.kind, kind, "{prompt}");
        assert!(
            !error.message.contains("leak") && !error.message.contains("127.0"),
            "{error:?}"
        );
        assert_eq!(world.usage().await.outcome, kind);
    }
}

/// 108, 109, 110: also where there is one provider, a model that failed rests, and `health` tells it of each model.
async fn line_108_the_only_provider_rests_and_health_tells_it(place: Place) {
    let rules = vec![
        Rule::contains("fail", Reply::status(500, "")),
        Rule::always(Reply::text("yes")),
    ];
    let world = world(&place, rules).await;
    let failed = world.ask(&question("fail", true)).last().await.unwrap_err();
    assert_eq!(failed.code(), ErrorCode::Provider);
    let rests = world.ask(&question("go", true)).last().await.unwrap_err();
    assert_eq!(rests.code(), ErrorCode::Unavailable);
    assert!(rests.message.contains("; set by llm.url"), "{rests:?}");
    assert!(rests.pause().is_some(), "{rests:?}");
    let health = async |models: &[&str]| -> Vec<(String, bool)> {
        let asked = ChatCompletionRequest {
            operation: "health".to_owned(),
            models: models.iter().map(|model| (*model).to_owned()).collect(),
            ..ChatCompletionRequest::default()
        };
        let to = topic(Class::Request, "chat-completion");
        let answer: tg_mesh::Answer<ChatCompletionResponse> =
            world.flow.mesh.ask(&to, &asked, world.flow.options());
        let told = answer.last().await.unwrap().health;
        told.into_iter()
            .map(|one| (one.model, one.available))
            .collect()
    };
    let of = |model: &str, available: bool| (model.to_owned(), available);
    assert_eq!(health(&[]).await, [of("chosen", false)]);
    let both = [of("chosen", false), of("other", true)];
    assert_eq!(health(&["chosen", "other"]).await, both);
    let calls = world.server.calls();
    let chats = calls
        .iter()
        .filter(|call| call.path.ends_with("completions"));
    assert_eq!(chats.count(), 1);
}

async fn a_provider_that_is_away_is_told_by_cause_and_setting(place: Place) {
    let nobody = format!("http://u:hidden@127.0.0.1:{}/v1", free_port().unwrap());
    for tells_address in [true, false] {
        let own = Options {
            url: Some(nobody.clone()),
            tells_address,
            ..Options::default()
        };
        // On a bus of its own: who served the one before may still listen on its.
        let world = world_with(&place.another().await, Vec::new(), own).await;
        let told = "(connection refused); set by llm.url; model chosen";
        let error = world.ask(&question("go", true)).last().await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::Provider);
        let away = "the model provider cannot be reached or is failing";
        let looked = world.ask(&status()).last().await.unwrap_err().message;
        match tells_address {
            true => {
                let address = nobody.replace("u:hidden@", "");
                let at = told.replace(')', &format!(" at {address})"));
                assert_eq!(error.message, format!("{away} {at}"));
                assert_eq!(looked, format!("cannot reach {address} {told}"));
            }
            false => {
                assert_eq!(error.message, format!("{away} {told}"));
                assert_eq!(looked, error.message);
            }
        }
    }
}

async fn the_model_is_held_against_the_providers_list(place: Place) {
    // The flow asks for a model that the provider does not list.
    let own = || Options {
        tells_address: true,
        ..Options::default()
    };
    let world = world_with(&place, Vec::new(), own()).await;
    let error = world.ask(&status()).last().await.unwrap_err();
    let at = format!("({}); set by llm.url; model chosen", world.server.url());
    assert_eq!(
        error.message,
        format!("the model provider does not list the model; it has scripted, scripted-large {at}")
    );
}

fn status() -> TextCompletionRequest {
    TextCompletionRequest {
        operation: "status".to_owned(),
        ..Default::default()
    }
}

/// How many leave, and how soon the provider's connection is closed, of 99 in 100.
const LEAVE: usize = 100;
const CLOSED: Duration = Duration::from_millis(100);

/// From when each asker leaves until the provider's connection is closed.
async fn left(place: &Place) -> Vec<Duration> {
    let hang = Reply::pieces(["one "]).ending(End::Hang);
    let mut world = world(place, vec![Rule::always(hang)]).await;
    let mut took = Vec::new();
    for closed in 1..=LEAVE {
        let mut answer = world.ask(&question("go", true));
        assert_eq!(answer.next().await.unwrap().unwrap().response, "one ");
        let began = Instant::now();
        drop(answer);
        assert!(world.server.wait_closed(closed, SOON).await);
        took.push(began.elapsed());
        assert_eq!(world.usage().await.outcome, "cancelled");
    }
    took
}

async fn an_asker_that_leaves_closes_the_providers_socket(place: Place) {
    // Each of them is waited for there.
    left(&place).await;
}

async fn an_asker_that_leaves_closes_the_providers_socket_at_once(place: Place) {
    let mut took = left(&place).await;
    took.sort_unstable();
    let slow = took[LEAVE * 99 / 100];
    assert!(slow <= CLOSED, "{slow:?}");
}

/// Not even for who listens from outside of the flow.
async fn usage_that_nobody_of_the_flow_reads_is_not_published(place: Place) {
    let mut world = world(&place, vec![Rule::always(Reply::pieces(["one"]))]).await;
    world.ask(&question("go", false)).last().await.unwrap();
    assert_eq!(world.usage().await.outcome, "ok");
    let usage = topic(Class::Flow, "usage");
    let row = json!({
        "topics": {"request": topic(Class::Request, "text-completion").to_string()},
        "parameters": {"model": "chosen"},
        "epoch": 2,
        "unread": [usage.to_string()],
    });
    let flow = &world.flow;
    let kind = "processor:text-completion";
    flow.config
        .apply(&flow.mesh, kind, "default", Some(&row))
        .await;
    flow.attached(&["text-completion"], 2).await;
    let options = || Ask {
        epoch: Some(2),
        ..flow.options()
    };
    let to = topic(Class::Request, "text-completion");
    for _ in 0..3 {
        let asked = question("go", false);
        let answer = flow
            .mesh
            .ask::<_, TextCompletionResponse>(&to, &asked, options());
        answer.last().await.unwrap();
    }
    let mark = Usage {
        outcome: "mark".to_owned(),
        ..Usage::default()
    };
    flow.mesh.record(&usage, &mark, options()).await.unwrap();
    assert_eq!(world.usage().await.outcome, "mark");
}

tg_testkit::on_both_buses!(
    usage_that_nobody_of_the_flow_reads_is_not_published,
    a_stream_has_pieces_and_ends_with_the_totals,
    output_that_the_provider_does_not_report_is_estimated,
    a_question_names_its_model_and_those_in_its_place,
    line_067_the_service_of_a_workspace_answers,
    line_108_the_service_of_a_workspace_rests,
    a_whole_answer_is_one_message,
    what_a_model_thinks_is_told_to_who_wants_it,
    failures_are_typed_metered_and_silent_about_the_provider,
    line_108_the_only_provider_rests_and_health_tells_it,
    a_provider_that_is_away_is_told_by_cause_and_setting,
    the_model_is_held_against_the_providers_list,
    an_asker_that_leaves_closes_the_providers_socket,
    an_asker_that_leaves_closes_the_providers_socket_at_once,
);
