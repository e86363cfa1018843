//! Several backends of a model over the mesh: who answers where one fails, what is told of it, and that no text comes
//! twice. Every backend is a real server.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tg_llm::{Options, processors};
use tg_mesh::Processor;
use tg_schemas::msg::{
    ChatCompletionRequest, ChatCompletionResponse, ChatTool, ChatTurn, ModelRest,
    TextCompletionRequest, TextCompletionResponse, Usage,
};
use tg_schemas::processors::{ProcessorSpec, Reads, Spec};
use tg_schemas::{Class, ErrorCode, Topic, limits};
use tg_testkit::config::Config;
use tg_testkit::fakes::RecordingConsumer;
use tg_testkit::flow::{SOON, TestFlow, Wiring, topic};
use tg_testkit::model::{End, Options as Listing, Reply, Rule, ScriptedModel};
use tg_testkit::place::Place;

/// The usage records of the one flow, read from outside of it.
const USAGE: Spec<Reads<Usage>> = Spec::new("usage:default:default").system();

const WIRING: &[Wiring] = &[(
    "text-completion",
    &[("request", Class::Request, "text-completion")],
)];

/// Pause between two looks at what is told of backends.
const LOOK: Duration = Duration::from_millis(10);

struct World {
    flow: TestFlow,
    /// Preferred, and the other one.
    servers: [ScriptedModel; 2],
    usage: Arc<RecordingConsumer<Usage>>,
}

/// Two backends, with what the settings say of the first besides.
async fn world(place: &Place, first: Vec<Rule>, second: Vec<Rule>, own: Value) -> World {
    let servers = [
        ScriptedModel::start(first).await.unwrap(),
        ScriptedModel::start(second).await.unwrap(),
    ];
    over(place, servers, own, Config::new()).await
}

/// The same over such servers, with what the workspace says.
async fn over(place: &Place, servers: [ScriptedModel; 2], own: Value, config: Config) -> World {
    let mut near =
        json!({"name": "near", "provider": "openai", "url": servers[0].url(), "priority": 1});
    for (key, value) in own.as_object().unwrap() {
        near[key] = value.clone();
    }
    let far = json!({"name": "far", "provider": "openai", "url": servers[1].url(), "priority": 2});
    let given = [
        ("backends", json!([near, far]).to_string()),
        ("model", "scripted".to_owned()),
        ("retry_base_delay", "0.01".to_owned()),
        ("retry_max_delay", "0.02".to_owned()),
    ];
    let given = given.into_iter().map(|(key, text)| (key.to_owned(), text));
    let (options, faults) = tg_settings::read::<Options>(given.collect());
    assert_eq!(faults, []);
    let usage = RecordingConsumer::new();
    let meter = Processor::new(ProcessorSpec::unlisted("meter")).reads(USAGE, usage.clone());
    let host = |mesh: &_| {
        let own = processors(mesh, options).unwrap();
        own.into_iter().chain([meter]).collect()
    };
    let flow = TestFlow::start_with(place, config, WIRING, json!({}), host).await;
    World {
        flow,
        servers,
        usage,
    }
}

impl World {
    fn ask(&self, prompt: &str) -> tg_mesh::Answer<TextCompletionResponse> {
        let question = TextCompletionRequest {
            prompt: prompt.to_owned(),
            streaming: true,
            ..TextCompletionRequest::default()
        };
        let to = topic(Class::Request, "text-completion");
        self.flow.mesh.ask(&to, &question, self.flow.options())
    }

    async fn text(&self, prompt: &str) -> String {
        let mut answer = self.ask(prompt);
        let mut text = String::new();
        while let Some(part) = answer.next().await {
            text += &part.unwrap().response;
        }
        text
    }

    async fn chat(&self, question: &ChatCompletionRequest) -> ChatCompletionResponse {
        let to = topic(Class::Request, "chat-completion");
        let mut answer = self.flow.mesh.ask(&to, question, self.flow.options());
        // An error is a part as well, with what its type does not say.
        answer.next().await.unwrap().unwrap()
    }

    async fn about(&self, operation: &str) -> ChatCompletionResponse {
        self.chat(&ChatCompletionRequest {
            operation: operation.to_owned(),
            ..ChatCompletionRequest::default()
        })
        .await
    }

    /// Answers to completions: lists of models are asked for as well.
    fn calls(&self) -> [usize; 2] {
        let of = |server: &ScriptedModel| {
            let calls = server.calls();
            let chats = calls
                .iter()
                .filter(|call| call.path.ends_with("completions"));
            chats.count()
        };
        [of(&self.servers[0]), of(&self.servers[1])]
    }
}

fn says(text: &str) -> Vec<Rule> {
    vec![Rule::always(Reply::pieces([text, "!"]))]
}

async fn line_151_one_that_fails_is_left_for_the_next_and_all_failing_are_told_in_general(
    place: Place,
) {
    let broken = || vec![Rule::always(Reply::status(500, "secret words"))];
    let world = world(&place, broken(), says("far"), json!({})).await;
    assert_eq!(world.text("go").await, "far!");
    assert_eq!(world.calls(), [1, 1]);
    let used = world.usage.until(|all| !all.is_empty()).await.remove(0);
    assert_eq!(
        (used.outcome.as_str(), used.model.as_str()),
        ("ok", "scripted")
    );
    assert!(used.out_token > 0);

    // Who failed is told with the end of its rest, and nobody is asked for that.
    let route = world.about("route").await.route.unwrap();
    assert_eq!(route.chosen.as_deref(), Some("far"));
    assert_eq!(route.backends[0].state, "skipped");
    assert!(
        route.backends[0].reason.starts_with("cooling, "),
        "{route:?}"
    );
    assert!(route.backends[0].until.is_some());
    let health = world.about("health").await.health;
    let resting = health
        .iter()
        .find(|one| one.model == "near/scripted")
        .unwrap();
    assert!(!resting.available);
    assert_eq!(world.calls(), [1, 1]);

    world.servers[1].set_rules(broken());
    let error = world.ask("go").last().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Provider);
    assert!(!error.message.contains("secret") && !error.message.contains("127.0"));
    assert_eq!(
        world.calls(),
        [1, 5],
        "the one that is left is asked four times"
    );
    let error = world.ask("go").last().await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Unavailable);
    assert!(error.message.contains("try again in"), "{}", error.message);
    assert_eq!(world.calls(), [1, 5]);
}

async fn a_limit_and_a_stall_go_elsewhere_and_a_cut_says_nothing_twice(place: Place) {
    let rules = vec![
        Rule::contains("limit", Reply::rate_limited(7)),
        Rule::contains("stall", Reply::Silence),
        Rule::contains("cut", Reply::pieces(["half "]).ending(End::Disconnect)),
        Rule::always(Reply::text("near")),
    ];
    for prompt in ["limit", "stall"] {
        let place = place.another().await;
        let world = world(&place, rules.clone(), says("far"), json!({"timeout": 1})).await;
        let begun = std::time::Instant::now();
        assert_eq!(world.text(prompt).await, "far!", "{prompt}");
        assert!(begun.elapsed() < Duration::from_secs(60));
        assert_eq!(world.calls(), [1, 1]);
    }
    let world = world(&place, rules, says("far"), json!({})).await;
    assert_eq!(world.text("whole").await, "near");
    let mut answer = world.ask("cut");
    let first = answer.next().await.unwrap().unwrap();
    assert_eq!(first.response, "half ");
    let last = answer.next().await.unwrap().unwrap();
    assert_eq!(last.error.unwrap().code(), ErrorCode::Provider);
    assert!(answer.next().await.is_none());
    assert_eq!(world.calls(), [2, 0]);
}

async fn an_asker_that_leaves_frees_the_place_and_blames_nobody(place: Place) {
    let hang = vec![
        Rule::contains("hang", Reply::pieces(["one "]).ending(End::Hang)),
        Rule::always(Reply::text("near")),
    ];
    let world = world(&place, hang, says("far"), json!({"max_concurrent": 1})).await;
    let mut answer = world.ask("hang");
    assert_eq!(answer.next().await.unwrap().unwrap().response, "one ");
    drop(answer);
    assert!(world.servers[0].wait_closed(1, SOON).await);
    assert_eq!(world.text("go").await, "near");
    assert_eq!(world.calls(), [2, 0]);
}

/// 108: what one process learns the others know.
async fn line_108_processes_tell_each_other_who_rests(place: Place) {
    let near = vec![
        Rule::contains("fail", Reply::status(500, "")),
        Rule::always(Reply::text("near")),
    ];
    let world = world(&place, near, says("far"), json!({})).await;
    let other = tg_testkit::place::host(place.connect().await).await;
    let notices = Topic::system(Class::Notify, "model-rests");
    let mut heard = other.tap::<ModelRest>(&notices).await.unwrap();
    assert_eq!(world.text("fail").await, "far!");
    let told = tokio::time::timeout(SOON, heard.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(
        (told.backend.as_str(), told.model.as_str()),
        ("near", "scripted")
    );
    assert_eq!((told.failures, told.rest_ms), (1, 60_000));

    // It answers elsewhere: it is asked here again. Then it fails elsewhere: it is not.
    let tell = async |failures: i64| {
        let note = ModelRest {
            process: "another".to_owned(),
            failures,
            rest_ms: 60_000 * failures,
            ..told.clone()
        };
        other.notify(&notices, &note).await.unwrap();
    };
    for (failures, chosen) in [(0, "near"), (2, "far")] {
        tell(failures).await;
        let until = std::time::Instant::now() + SOON;
        loop {
            let route = world.about("route").await.route.unwrap();
            if route.chosen.as_deref() == Some(chosen) {
                break;
            }
            assert!(std::time::Instant::now() < until, "{route:?}");
            tokio::time::sleep(LOOK).await;
        }
    }
    assert_eq!(world.calls(), [1, 1]);
}

/// A chat about a model.
fn about(model: &str) -> ChatCompletionRequest {
    ChatCompletionRequest {
        model: Some(model.to_owned()),
        messages: vec![ChatTurn {
            role: "user".to_owned(),
            content: "go".to_owned(),
            ..ChatTurn::default()
        }],
        ..ChatCompletionRequest::default()
    }
}

/// 95: where the window is too small nobody is asked, of a text as of a chat.
async fn line_095_a_model_that_reads_too_little_is_not_asked(place: Place) {
    let servers = [
        ScriptedModel::start(says("near")).await.unwrap(),
        ScriptedModel::start(says("far")).await.unwrap(),
    ];
    let config = Config::new();
    for (model, window) in [
        ("scripted", 15_999),
        ("tiny", 1),
        ("least", 16_000),
        ("few", 32_000),
    ] {
        let row = json!({ "context_window": window }).to_string();
        config.put("llm-model", model, &row);
    }
    let world = over(&place, servers, json!({}), config).await;
    let told = world.chat(&about("scripted")).await;
    assert_eq!(told.failure.as_deref(), Some("context_window_too_small"));
    let message = told.error.unwrap().message;
    assert!(
        message.contains("15999") && message.contains("16000"),
        "{message}"
    );
    let error = world.ask("go").last().await.unwrap_err();
    assert_eq!(error.message, message);
    assert_eq!(world.calls(), [0, 0]);
    for (calls, model) in [(1, "least"), (2, "few"), (3, "unsaid")] {
        let told = world.chat(&about(model)).await;
        assert_eq!(
            (told.error, told.content.as_str()),
            (None, "near!"),
            "{model}"
        );
        assert_eq!(world.calls(), [calls, 0]);
    }
    // So it is with the models that may answer instead.
    let instead = |model: &str, others: &[&str]| ChatCompletionRequest {
        models: others.iter().map(|other| (*other).to_owned()).collect(),
        ..about(model)
    };
    let told = world.chat(&instead("scripted", &["tiny"])).await;
    assert_eq!(told.failure.as_deref(), Some("context_window_too_small"));
    assert_eq!(told.error.unwrap().message, message);
    let told = world.chat(&instead("scripted", &["tiny", "least"])).await;
    assert_eq!((told.error, told.content.as_str()), (None, "near!"));
    assert_eq!(world.calls(), [4, 0]);
    for server in &world.servers {
        server.set_rules(vec![Rule::always(Reply::status(401, "no"))]);
    }
    let told = world.chat(&instead("few", &["tiny", "least"])).await;
    assert!(told.error.is_some(), "{told:?}");
    let calls = world.servers.iter().flat_map(ScriptedModel::calls);
    for call in calls {
        assert!(call.body["model"] != "scripted" && call.body["model"] != "tiny");
    }
}

/// 96: what the workspace says of a model comes before what its provider lists, and that before what is said of all.
async fn line_096_what_the_provider_lists_of_a_model_counts(place: Place) {
    let listed = |window: u64| Listing {
        window,
        ..Listing::default()
    };
    for (window, row, calls) in [
        (15_999, None, 0),
        (16_000, None, 1),
        (15_999, Some(20_000), 1),
        (64_000, Some(15_999), 0),
    ] {
        let near = ScriptedModel::start_with(listed(window), says("near")).await;
        let far = ScriptedModel::start_with(listed(window), says("far")).await;
        let config = Config::new();
        if let Some(row) = row {
            let row = json!({ "context_window": row }).to_string();
            config.put("llm-model", "scripted", &row);
        }
        let servers = [near.unwrap(), far.unwrap()];
        let place = place.another().await;
        let world = over(&place, servers, json!({}), config).await;
        // It lists its models, as at the start of every process.
        assert!(!world.about("list-models").await.models.is_empty());
        let told = world.chat(&about("scripted")).await;
        assert_eq!(told.error.is_none(), calls == 1, "{window} {row:?}");
        assert_eq!(world.calls(), [calls, 0]);
        let of_one = world.chat(&about("far/scripted")).await;
        let fits = row != Some(20_000) && window >= 16_000;
        assert_eq!(of_one.error.is_none(), fits, "{window} {row:?}");
    }
}

/// As the trail of turns has it: of an answer that came after another backend had failed, and of one that is left alone then.
async fn an_answer_says_its_backend_and_how_often_one_was_asked(place: Place) {
    let broken = vec![Rule::always(Reply::status(500, "secret words"))];
    let world = world(&place, broken, says("far"), json!({})).await;
    let last = world.ask("go").last().await.unwrap();
    let known = (last.backend.as_deref(), last.attempts);
    assert_eq!(known, (Some("far"), Some(2)));
    let question = ChatCompletionRequest {
        messages: vec![ChatTurn {
            role: "user".to_owned(),
            content: "go".to_owned(),
            ..ChatTurn::default()
        }],
        ..ChatCompletionRequest::default()
    };
    let last = world.chat(&question).await;
    let known = (last.backend.as_deref(), last.attempts);
    assert_eq!(known, (Some("far"), Some(1)));
}

async fn a_chat_has_turns_tools_and_the_name_of_who_answered(place: Place) {
    let world = world(&place, says("near"), says("far"), json!({})).await;
    let turn = |role: &str, content: &str| ChatTurn {
        role: role.to_owned(),
        content: content.to_owned(),
        ..ChatTurn::default()
    };
    let mut question = ChatCompletionRequest {
        messages: vec![
            turn("system", "s"),
            turn("user", "u"),
            turn("assistant", "a"),
            turn("user", "v"),
        ],
        max_tokens: Some(5),
        ..ChatCompletionRequest::default()
    };
    let told = world.chat(&question).await;
    assert_eq!(
        (told.content.as_str(), told.finish_reason.as_deref()),
        ("near!", Some("stop"))
    );
    assert_eq!(told.backend.as_deref(), Some("near"));
    assert!(told.usage.unwrap().total > 0);
    let body = world.servers[0].calls().pop().unwrap().body;
    assert_eq!(body["messages"].as_array().unwrap().len(), 4);
    assert_eq!(body["max_tokens"], 5);
    question.model = Some("far/scripted".to_owned());
    assert_eq!(world.chat(&question).await.backend.as_deref(), Some("far"));
    // A model that writes its call as text.
    let call = r#"{"name": "add", "arguments": {"a": 1}}"#;
    let pieces = call.split_inclusive(' ').map(str::to_owned);
    world.servers[1].set_rules(vec![Rule::always(Reply::pieces(pieces))]);
    question.tools = vec![ChatTool {
        name: "add".to_owned(),
        ..ChatTool::default()
    }];
    for streaming in [false, true] {
        question.streaming = streaming;
        let told = world.chat(&question).await;
        assert_eq!(
            told.finish_reason.as_deref(),
            Some("tool_calls"),
            "{told:?}"
        );
        assert_eq!(told.tool_calls[0].arguments, r#"{"a":1}"#);
        assert_eq!((told.delta.as_str(), told.content.as_str()), ("", ""));
    }
    question.messages.clear();
    let told = world.chat(&question).await.error.unwrap();
    assert_eq!(told.code(), ErrorCode::BadRequest);
    assert!(told.message.starts_with("messages: "), "{}", told.message);
}

/// The question was not too large.
async fn an_answer_to_a_chat_that_is_too_long_is_the_fault_of_the_provider(place: Place) {
    let long = "x".repeat(limits::MODEL_TEXT + 1);
    let long = vec![Rule::always(Reply::text(long))];
    let world = world(&place, long, says("far"), json!({})).await;
    let error = world.chat(&about("scripted")).await.error.unwrap();
    assert_eq!(error.code(), ErrorCode::Provider);
    assert_eq!(
        error.message,
        "the answer of the model is longer than 15 MiB"
    );
    assert_eq!(world.calls(), [1, 0]);
}

/// Pictures of a turn reach the backend with its text, and the network of the system is looked at for nobody.
async fn pictures_of_a_chat_reach_the_backend_and_private_addresses_are_not_asked(place: Place) {
    const PNG: &str = "data:image/png;base64,iVBORw0KGgo=";
    let world = world(&place, says("near"), says("far"), json!({})).await;
    let asked = |images: &[&str]| {
        let mut question = about("scripted");
        question.messages[0].images = images.iter().map(|image| (*image).to_owned()).collect();
        question
    };
    let told = world.chat(&asked(&[PNG, PNG])).await;
    assert_eq!((told.error, told.content.as_str()), (None, "near!"));
    let body = world.servers[0].calls().pop().unwrap().body;
    let picture = json!({"type": "image_url", "image_url": {"url": PNG}});
    let text = json!({"type": "text", "text": "go"});
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": [text, picture, picture]}])
    );
    for wrong in [
        "https://127.0.0.1/a.png",
        "http://example.org/a.png",
        "data:text/plain;base64,aGVsbG8=",
    ] {
        let told = world.chat(&asked(&[wrong])).await.error.unwrap();
        assert_eq!(told.code(), ErrorCode::BadRequest, "{wrong}: {told:?}");
    }
    assert_eq!(world.calls(), [1, 0]);
}

async fn line_110_health_has_a_row_for_each_model_that_is_asked_about(place: Place) {
    let broken = vec![Rule::always(Reply::status(500, "no"))];
    let own = json!({"supported_models": ["scripted"]});
    let world = world(&place, broken, says("far"), own).await;
    assert_eq!(world.text("go").await, "far!");
    let calls = world.calls();
    let names = ["near/scripted", "far/scripted", "near/other"];
    let asked = ChatCompletionRequest {
        operation: "health".to_owned(),
        models: names.map(str::to_owned).to_vec(),
        ..ChatCompletionRequest::default()
    };
    let health = world.chat(&asked).await.health;
    let told: Vec<&str> = health.iter().map(|one| one.model.as_str()).collect();
    assert_eq!(told, names);
    let reason = |at: usize| health[at].reason.as_deref().unwrap_or_default();
    assert!(reason(0).starts_with("cooling, "), "{health:?}");
    assert_eq!((reason(1), reason(2)), ("", "provider unknown"));
    let well: Vec<bool> = health.iter().map(|one| one.available).collect();
    assert_eq!(well, [false, true, false]);
    assert_eq!(world.calls(), calls, "nobody is asked for it");
}

tg_testkit::on_both_buses!(
    an_answer_to_a_chat_that_is_too_long_is_the_fault_of_the_provider,
    line_110_health_has_a_row_for_each_model_that_is_asked_about,
    pictures_of_a_chat_reach_the_backend_and_private_addresses_are_not_asked,
    line_151_one_that_fails_is_left_for_the_next_and_all_failing_are_told_in_general,
    a_limit_and_a_stall_go_elsewhere_and_a_cut_says_nothing_twice,
    an_asker_that_leaves_frees_the_place_and_blames_nobody,
    line_108_processes_tell_each_other_who_rests,
    line_095_a_model_that_reads_too_little_is_not_asked,
    line_096_what_the_provider_lists_of_a_model_counts,
    an_answer_says_its_backend_and_how_often_one_was_asked,
    a_chat_has_turns_tools_and_the_name_of_who_answered,
);
