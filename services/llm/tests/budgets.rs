//! Questions to models in the budgets of their key and workspace, with the agent's ledger played by the test.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tg_llm::{Options, processors};
use tg_mesh::{Ask, Deadline, Processor};
use tg_schemas::msg::{
    ChatCompletionRequest, ChatCompletionResponse, ChatTurn, ImageToTextRequest,
    ImageToTextResponse, TextCompletionRequest, TextCompletionResponse, UsageCall, UsageRequest,
    UsageResponse,
};
use tg_schemas::processors::agent_manager;
use tg_schemas::{Class, CountedBy, Error, ErrorCode, Message, Reply, WorkspaceId};
use tg_testkit::bus::until;
use tg_testkit::config::Config;
use tg_testkit::fakes::Played;
use tg_testkit::flow::{TestFlow, Wiring, topic};
use tg_testkit::model::{End, Reply as Says, Rule, ScriptedModel};
use tg_testkit::place::Place;

const WIRING: &[Wiring] = &[
    (
        "text-completion",
        &[("request", Class::Request, "text-completion")],
    ),
    (
        "image-to-text",
        &[("request", Class::Request, "image-to-text")],
    ),
];
/// The first bytes of a PNG, in base64.
const PNG: &str = "iVBORw0KGgo=";
const WHY: &str = "Stopped by the budget of its key for the day (tokens): 9 of 9 tokens are used";

struct World {
    flow: TestFlow,
    server: ScriptedModel,
    ledger: Ledger,
}

/// With a ledger that says this to each call, or without the agent that has one.
async fn begun(place: &Place, config: Config, says: Option<UsageResponse>) -> World {
    let reply = Says::pieces(["one ", "two ", "three"]);
    let says = says.map(|says| Played::new(move |_, _: UsageRequest| Ok(says.clone())));
    begun_of(place, config, reply, says).await
}

type Ledger = Arc<Played<UsageRequest, UsageResponse>>;

/// The same with a model that answers this, and this ledger.
async fn begun_of(place: &Place, config: Config, reply: Says, ledger: Option<Ledger>) -> World {
    let server = ScriptedModel::start(vec![Rule::always(reply)])
        .await
        .unwrap();
    let options = Options {
        url: Some(server.url()),
        ..Options::default()
    };
    let is_hosted = ledger.is_some();
    let none = || Played::new(|_, _: UsageRequest| Ok(UsageResponse::default()));
    let ledger = ledger.unwrap_or_else(none);
    let agent = is_hosted.then(|| {
        Processor::new(agent_manager::PROCESSOR).serves(agent_manager::USAGE_TOTALS, ledger.clone())
    });
    let host = |mesh: &_| {
        let own = processors(mesh, options).unwrap();
        own.into_iter().chain(agent).collect()
    };
    let parameters = json!({"model": "chosen"});
    let flow = TestFlow::start_with(place, config, WIRING, parameters, host).await;
    World {
        flow,
        server,
        ledger,
    }
}

/// With a ledger that says this to each call.
async fn world(place: &Place, says: UsageResponse) -> World {
    let reply = Says::pieces(["one ", "two ", "three"]);
    world_of(place, reply, says).await
}

/// The same with a model that answers this.
async fn world_of(place: &Place, reply: Says, says: UsageResponse) -> World {
    let ledger = Played::new(move |_, _: UsageRequest| Ok(says.clone()));
    world_with(place, reply, ledger).await
}

/// The same with a ledger.
async fn world_with(place: &Place, reply: Says, ledger: Ledger) -> World {
    let world = begun_of(place, Config::new(), reply, Some(ledger)).await;
    // The ledger is asked in the workspace, not in the flow.
    let workspace = WorkspaceId::new("default").unwrap();
    let to = agent_manager::USAGE_TOTALS.of_workspace(&workspace);
    until(async || {
        let listing = UsageRequest::default();
        let answer = world
            .flow
            .mesh
            .ask::<_, UsageResponse>(&to, &listing, Ask::default());
        answer.last().await.is_ok() && world.flow.mesh.presence().hosted("agent-manager")
    })
    .await;
    world
}

impl World {
    async fn ask<Q: Message, R: Reply>(
        &self,
        base: &str,
        question: &Q,
        counted: Option<CountedBy>,
    ) -> Result<R, Error> {
        let to = topic(Class::Request, base);
        let ask = self.asks(counted);
        self.flow.mesh.ask(&to, question, ask).last().await
    }

    fn asks(&self, counted: Option<CountedBy>) -> Ask {
        Ask {
            credential: Some("key:k".to_owned()),
            user_id: Some("rita".to_owned()),
            counted,
            ..self.flow.options()
        }
    }

    /// The first part of the answer to a chat: an error is a part as well, with what its type does not say.
    async fn chat(&self, question: &ChatCompletionRequest) -> ChatCompletionResponse {
        let to = topic(Class::Request, "chat-completion");
        let mut answer = self.flow.mesh.ask(&to, question, self.asks(None));
        answer.next().await.unwrap().unwrap()
    }

    async fn complete(&self, counted: Option<CountedBy>) -> Result<TextCompletionResponse, Error> {
        let question = TextCompletionRequest {
            prompt: "x".repeat(400),
            ..TextCompletionRequest::default()
        };
        self.ask("text-completion", &question, counted).await
    }

    /// What the ledger was asked by an operation.
    fn calls(&self, operation: &str) -> Vec<UsageCall> {
        let asked = self.ledger.asked.lock();
        let asked = asked.iter().filter(|ask| ask.operation == operation);
        asked.flat_map(|ask| ask.calls.clone()).collect()
    }
}

async fn a_budget_refuses_every_kind_of_question(place: Place) {
    let says = UsageResponse {
        bound: true,
        refused: WHY.to_owned(),
        retry_after: 60,
        ..UsageResponse::default()
    };
    let world = world(&place, says).await;
    let refused = |error: &Error| {
        assert_eq!(error.code(), ErrorCode::Busy, "{error:?}");
        assert_eq!(error.message, format!("{WHY}; try again in 60 s"));
    };
    refused(&world.complete(None).await.unwrap_err());
    let chat = ChatCompletionRequest {
        messages: vec![ChatTurn {
            role: "user".to_owned(),
            content: "go".to_owned(),
            ..ChatTurn::default()
        }],
        ..ChatCompletionRequest::default()
    };
    let told = world.chat(&chat).await;
    refused(&told.error.unwrap());
    assert_eq!(
        (told.failure.as_deref(), told.retry_after),
        (Some("budget_exhausted"), Some(60))
    );
    let picture = ImageToTextRequest {
        image: PNG.to_owned(),
        mime_type: "image/png".to_owned(),
        ..ImageToTextRequest::default()
    };
    let told: Result<ImageToTextResponse, Error> = world.ask("image-to-text", &picture, None).await;
    refused(&told.unwrap_err());
    assert_eq!(world.calls("reserve-call").len(), 3);
    let settled = world.calls("settle-call");
    assert_eq!((settled.len(), world.server.calls().len()), (0, 0));
}

async fn an_answer_counts_for_its_key_and_its_workspace(place: Place) {
    let says = UsageResponse {
        bound: true,
        ..UsageResponse::default()
    };
    let world = world(&place, says).await;
    let told = world.complete(None).await.unwrap();
    assert_eq!(told.response, "one two three");
    let reserved = world.calls("reserve-call").remove(0);
    assert_eq!(
        (reserved.key.as_str(), reserved.of.as_str()),
        ("key:k", "direct")
    );
    assert_eq!((reserved.in_token, reserved.out_token), (100, 256));
    // It is counted before the answer is there.
    let settled = world.calls("settle-call").remove(0);
    assert_eq!(settled.id, reserved.id);
    assert_eq!(
        (told.in_token, told.out_token),
        (Some(settled.in_token), Some(settled.out_token))
    );
    assert_eq!((settled.model.as_str(), settled.out_token), ("chosen", 3));
    world.complete(None).await.unwrap();
    assert_eq!(world.calls("reserve-call")[1].model, "chosen");
}

/// What the model has written counts for the model that was asked, however the answer ends.
async fn an_answer_that_breaks_off_counts_what_was_written(place: Place) {
    let says = UsageResponse {
        bound: true,
        ..UsageResponse::default()
    };
    let pieces = ["x".repeat(8_000), "y".to_owned()];
    let reply = Says::pieces(pieces).ending(End::Disconnect);
    let world = world_of(&place, reply.clone(), says.clone()).await;
    // The model of the first one rests.
    let other = world_of(&place.another().await, reply, says).await;
    let chat = ChatCompletionRequest {
        messages: vec![ChatTurn {
            role: "user".to_owned(),
            content: "go".to_owned(),
            ..ChatTurn::default()
        }],
        streaming: true,
        ..ChatCompletionRequest::default()
    };
    let told: Result<ChatCompletionResponse, Error> =
        world.ask("chat-completion", &chat, None).await;
    assert_eq!(told.unwrap_err().code(), ErrorCode::Provider);
    let text = TextCompletionRequest {
        prompt: "go".to_owned(),
        streaming: true,
        ..TextCompletionRequest::default()
    };
    let told: Result<TextCompletionResponse, Error> =
        other.ask("text-completion", &text, None).await;
    assert_eq!(told.unwrap_err().code(), ErrorCode::Provider);
    for world in [world, other] {
        until(async || !world.calls("settle-call").is_empty()).await;
        let settled = world.calls("settle-call").remove(0);
        assert_eq!(
            (settled.model.as_str(), settled.out_token),
            ("chosen", 2_000)
        );
    }
}

/// Each picture of a chat counts, and the budget is asked before one is fetched.
async fn pictures_of_chats_count_before_they_are_fetched(place: Place) {
    let says = UsageResponse {
        bound: true,
        refused: WHY.to_owned(),
        retry_after: 60,
        ..UsageResponse::default()
    };
    let world = world(&place, says).await;
    let chat = ChatCompletionRequest {
        messages: vec![ChatTurn {
            role: "user".to_owned(),
            content: "x".repeat(400),
            images: vec![
                format!("data:image/png;base64,{PNG}"),
                "https://nowhere.invalid/a.png".to_owned(),
            ],
            ..ChatTurn::default()
        }],
        ..ChatCompletionRequest::default()
    };
    let told = world.chat(&chat).await;
    assert_eq!(
        told.failure.as_deref(),
        Some("budget_exhausted"),
        "{told:?}"
    );
    let reserved = world.calls("reserve-call").remove(0);
    assert_eq!(reserved.in_token, 100 + 2 * 1_000);
}

/// The budget is not asked before there is memory for the pictures of a chat: what it reserves would be held for as long as another
/// question has the memory.
async fn a_chat_that_waits_for_memory_reserves_nothing(place: Place) {
    let says = UsageResponse {
        bound: true,
        ..UsageResponse::default()
    };
    let reply = Says::text("a lamp").delayed(Duration::from_secs(600));
    let world = world_of(&place, reply, says).await;
    // With what a picture needs that is fetched it is more than half of the memory, which is what a workspace may have.
    let large = ImageToTextRequest {
        image: format!("iVBORw0KGgoA{}", "AAAA".repeat(6 << 18)),
        mime_type: "image/png".to_owned(),
        ..ImageToTextRequest::default()
    };
    let chat = ChatCompletionRequest {
        messages: vec![ChatTurn {
            role: "user".to_owned(),
            content: "go".to_owned(),
            images: vec!["https://nowhere.invalid/a.png".to_owned()],
            ..ChatTurn::default()
        }],
        ..ChatCompletionRequest::default()
    };
    let described = world.ask::<_, ImageToTextResponse>("image-to-text", &large, None);
    let waited = async {
        until(async || world.server.count() == 1).await;
        let ask = Ask {
            deadline: Some(Deadline::after(Duration::from_secs(6))),
            ..world.asks(None)
        };
        let to = topic(Class::Request, "chat-completion");
        let mut answer = world.flow.mesh.ask(&to, &chat, ask);
        let told: ChatCompletionResponse = answer.next().await.unwrap().unwrap();
        world.server.hurry();
        told
    };
    let (described, told) = tokio::join!(described, waited);
    assert_eq!(described.unwrap().description, "a lamp");
    let error = told.error.unwrap();
    assert_eq!((error.code(), told.failure), (ErrorCode::Busy, None));
    assert_eq!(world.calls("reserve-call").len(), 1);
}

/// As much as the question lets the model write is reserved for its reply.
async fn a_stated_reply_is_reserved_whole(place: Place) {
    let says = UsageResponse {
        bound: true,
        ..UsageResponse::default()
    };
    let world = world(&place, says).await;
    for (stated, reserved) in [(4096, 4096), (9, 9), (i64::MAX, 1_000_000)] {
        let chat = ChatCompletionRequest {
            messages: vec![ChatTurn {
                role: "user".to_owned(),
                content: "go".to_owned(),
                ..ChatTurn::default()
            }],
            max_tokens: Some(stated),
            ..ChatCompletionRequest::default()
        };
        let told: ChatCompletionResponse = world.ask("chat-completion", &chat, None).await.unwrap();
        assert!(told.error.is_none(), "{:?}", told.error);
        let asked = world.calls("reserve-call");
        assert_eq!(asked.last().unwrap().out_token, reserved, "{stated}");
    }
}

async fn runs_count_themselves_and_records_are_never_refused(place: Place) {
    let says = UsageResponse {
        bound: true,
        refused: WHY.to_owned(),
        ..UsageResponse::default()
    };
    let world = world(&place, says).await;
    world.complete(Some(CountedBy::Run)).await.unwrap();
    world.complete(Some(CountedBy::Record)).await.unwrap();
    until(async || !world.calls("settle-call").is_empty()).await;
    let settled = world.calls("settle-call");
    assert_eq!((settled.len(), settled[0].of.as_str()), (1, "documents"));
    assert_eq!((settled[0].key.as_str(), settled[0].out_token), ("", 3));
    assert!(world.calls("reserve-call").is_empty());
}

/// What is not bounded is counted without asking first.
async fn without_budgets_nothing_is_reserved(place: Place) {
    let world = world(&place, UsageResponse::default()).await;
    for _ in 0..4 {
        world.complete(None).await.unwrap();
    }
    until(async || world.calls("settle-call").len() == 4).await;
    assert_eq!(world.calls("reserve-call").len(), 1, "the first one asks");
}

/// The process waits for what it does when it begins to stop, and that is counted.
async fn what_is_under_way_at_a_stop_is_counted(place: Place) {
    let world = world(&place, UsageResponse::default()).await;
    world.complete(None).await.unwrap();
    until(async || world.calls("settle-call").len() == 1).await;
    world.flow.mesh.stopping().cancel();
    world.complete(None).await.unwrap();
    until(async || world.calls("settle-call").len() == 2).await;
}

/// A ledger that cannot reserve a call is not asked to count it before the answer ends, but once, afterwards.
async fn what_could_not_be_reserved_is_counted_afterwards(place: Place) {
    let ledger = Played::new(|_, ask: UsageRequest| match ask.calls.is_empty() {
        true => Ok(UsageResponse::default()),
        false => Err(Error::new(ErrorCode::Internal, "the ledger is broken")),
    });
    let world = world_with(&place, Says::text("yes"), ledger).await;
    for _ in 0..2 {
        world.complete(None).await.unwrap();
    }
    let ids = || -> Vec<String> {
        let settled = world.calls("settle-call").into_iter();
        settled.map(|call| call.id).collect()
    };
    // Calls are counted in order.
    until(async || ids().iter().any(|id| *id != ids()[0])).await;
    let (ids, first) = (ids(), ids()[0].clone());
    let times = ids.iter().filter(|id| **id == first).count();
    assert_eq!(times, 1, "{ids:?}");
}

/// Nobody can say whether a call fits: where something is bounded it is refused, else it is made as ever.
async fn while_no_agent_is_there_a_bound_refuses(place: Place) {
    let bounded = Config::new();
    bounded.put("agent", "budget", r#"{"key": {"tokens": 1000000}}"#);
    let world = begun(&place, bounded, None).await;
    let error = world.complete(None).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Busy, "{error:?}");
    assert!(error.pause().is_some(), "{}", error.message);
    assert_eq!(world.server.calls().len(), 0);
    for counted in [CountedBy::Run, CountedBy::Record] {
        world.complete(Some(counted)).await.unwrap();
    }
    for row in ["", r#"{"tokens": 5, "session": {"tokens": 5}}"#] {
        let config = Config::new();
        if !row.is_empty() {
            config.put("agent", "budget", row);
        }
        let world = begun(&place.another().await, config, None).await;
        world.complete(None).await.unwrap();
    }
}

async fn a_question_without_an_answer_to_come_is_not_reserved(place: Place) {
    let world = world(&place, UsageResponse::default()).await;
    let question = TextCompletionRequest {
        response_format: Some("verse".to_owned()),
        ..TextCompletionRequest::default()
    };
    let told: Result<TextCompletionResponse, Error> =
        world.ask("text-completion", &question, None).await;
    assert_eq!(told.unwrap_err().code(), ErrorCode::BadRequest);
    assert!(world.calls("reserve-call").is_empty());
}

tg_testkit::on_both_buses!(
    a_budget_refuses_every_kind_of_question,
    an_answer_counts_for_its_key_and_its_workspace,
    an_answer_that_breaks_off_counts_what_was_written,
    pictures_of_chats_count_before_they_are_fetched,
    a_chat_that_waits_for_memory_reserves_nothing,
    a_stated_reply_is_reserved_whole,
    runs_count_themselves_and_records_are_never_refused,
    without_budgets_nothing_is_reserved,
    what_is_under_way_at_a_stop_is_counted,
    what_could_not_be_reserved_is_counted_afterwards,
    while_no_agent_is_there_a_bound_refuses,
    a_question_without_an_answer_to_come_is_not_reserved,
);
