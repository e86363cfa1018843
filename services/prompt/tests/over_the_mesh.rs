//! Prompts as a client of the mesh sees them, over a model that plays back given replies.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tg_mesh::Processor;
use tg_prompt::{Options, processors};
use tg_schemas::msg::{
    ModelSettings, PromptRequest, PromptResponse, TextCompletionRequest, TextCompletionResponse,
};
use tg_schemas::processors;
use tg_schemas::{Class, Error, ErrorCode};
use tg_testkit::config::Config;
use tg_testkit::fakes::Played;
use tg_testkit::flow::{TestFlow, Wiring};
use tg_testkit::place::Place;

const WIRING: &[Wiring] = &[
    (
        "prompt",
        &[
            ("request", Class::Request, "prompt"),
            ("text-completion-request", Class::Request, "text-completion"),
        ],
    ),
    (
        "text-completion",
        &[("request", Class::Request, "text-completion")],
    ),
];

fn config() -> Config {
    let config = Config::new();
    config
        .put("prompt", "system", r#""Be {{ tone }}.""#)
        .put("prompt", "template.say", r#"{"prompt": "Say {{ word }}"}"#)
        .put(
            "prompt",
            "template.count",
            r#"{"prompt": "Count", "response-type": "json", "schema": {
                "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
                "additionalProperties": false}}"#,
        )
        .put(
            "prompt",
            "template.list",
            r#"{"prompt": "List", "response-type": "jsonl"}"#,
        );
    config
}

/// What the model says to each question.
type Replies = Arc<Mutex<VecDeque<Result<&'static [&'static str], Error>>>>;

/// Plays back replies.
fn model(replies: Replies) -> Arc<Played<TextCompletionRequest, TextCompletionResponse>> {
    Played::new(move |_, ask: TextCompletionRequest| {
        let reply = replies.lock().pop_front();
        let pieces = reply.unwrap_or(Ok(&[]))?;
        let part = |text: &str| TextCompletionResponse {
            response: text.to_owned(),
            ..Default::default()
        };
        let (mut parts, rest) = match ask.streaming {
            true => (pieces.iter().map(|piece| part(piece)).collect(), part("")),
            false => (Vec::new(), part(&pieces.concat())),
        };
        parts.push(TextCompletionResponse {
            in_token: Some(5),
            out_token: Some(2),
            model: Some("m".to_owned()),
            end_of_stream: true,
            ..rest
        });
        Ok(parts)
    })
}

struct World {
    flow: TestFlow,
    replies: Replies,
    model: Arc<Played<TextCompletionRequest, TextCompletionResponse>>,
}

async fn world(place: &Place) -> World {
    let replies = Replies::default();
    let model = model(replies.clone());
    let played = Processor::new(processors::text_completion::PROCESSOR)
        .serves(processors::text_completion::REQUEST, model.clone());
    let host = |mesh: &_| {
        let own = processors(mesh, Options::default());
        own.into_iter().chain([played]).collect()
    };
    let flow = TestFlow::start(place, config(), WIRING, host).await;
    World {
        flow,
        replies,
        model,
    }
}

impl World {
    fn replies(&self, replies: impl IntoIterator<Item = &'static [&'static str]>) {
        self.replies.lock().extend(replies.into_iter().map(Ok));
    }

    async fn ask(&self, id: &str, streaming: bool) -> Result<Vec<PromptResponse>, Error> {
        let terms = BTreeMap::from([
            ("word".to_owned(), "\"hi\"".to_owned()),
            ("tone".to_owned(), "\"kind\"".to_owned()),
        ]);
        let ask = PromptRequest {
            id: id.to_owned(),
            terms,
            streaming,
            ..PromptRequest::default()
        };
        let parts: Vec<PromptResponse> = self.flow.parts("prompt", &ask).await?;
        if let Some(error) = parts.iter().find_map(|part| part.error.clone()) {
            return Err(error);
        }
        Ok(parts)
    }
}

async fn text_is_rendered_and_relayed_streamed_and_whole(place: Place) {
    let world = world(&place).await;
    world.replies([&["he", "llo"][..], &["he", "llo"][..]]);
    let parts = world.ask("say", true).await.unwrap();
    let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    assert_eq!(texts, ["he", "llo", ""]);
    let last = parts.last().unwrap();
    assert!(last.end_of_stream && !parts[0].end_of_stream);
    assert_eq!((last.in_token, last.model.as_deref()), (Some(5), Some("m")));
    let parts = world.ask("say", false).await.unwrap();
    assert_eq!((parts.len(), parts[0].text.as_str()), (1, "hello"));
    let asked = world.model.asked.lock();
    assert_eq!(
        (asked[0].system.as_str(), asked[0].prompt.as_str()),
        ("Be kind.", "Say hi")
    );
    assert_eq!(asked[0].response_format, None);
}

/// Also where the model is asked a second time.
async fn what_the_asker_says_of_the_model_reaches_it(place: Place) {
    let world = world(&place).await;
    world.replies([&["hi"][..], &["hi"][..], &["no"][..], &["{\"n\": 3}"][..]]);
    let settings = Some(ModelSettings {
        model: "m1".to_owned(),
        temperature: Some(0.5),
        ..ModelSettings::default()
    });
    for (id, streaming) in [("say", true), ("say", false), ("count", false)] {
        let ask = PromptRequest {
            id: id.to_owned(),
            terms: ["word", "tone"]
                .map(|name| (name.to_owned(), "\"x\"".to_owned()))
                .into(),
            streaming,
            settings: settings.clone(),
            ..PromptRequest::default()
        };
        let _: Vec<PromptResponse> = world.flow.parts("prompt", &ask).await.unwrap();
    }
    let asked = world.model.asked.lock();
    let told: Vec<_> = asked.iter().map(|one| one.settings.clone()).collect();
    assert_eq!(told, vec![settings; 4]);
}

async fn json_is_enforced_repaired_once_and_answered_in_one_message(place: Place) {
    let world = world(&place).await;
    world.replies([
        &["{\"n\": \"many\"}"][..],
        &["```json\n{\"n\": 3}\n```"][..],
    ]);
    let parts = world.ask("count", true).await.unwrap();
    assert_eq!(parts.len(), 1);
    assert_eq!(
        (parts[0].object.as_str(), parts[0].text.as_str()),
        ("{\"n\":3}", "")
    );
    assert_eq!((parts[0].in_token, parts[0].out_token), (Some(10), Some(4)));
    {
        let asked = world.model.asked.lock();
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[0].response_format.as_deref(), Some("json"));
        assert!(asked[0].schema.is_some() && !asked[0].streaming);
        assert!(
            asked[1].prompt.contains("many") && asked[1].prompt.contains("Schema validation fail")
        );
    }
    world.replies([&["no"][..], &["still no"][..]]);
    let error = world.ask("count", false).await.unwrap_err();
    assert_eq!(error.kind, "llm-error");
    assert!(error.message.starts_with("JSON parse fail"), "{error:?}");
}

async fn lines_keep_what_is_good(place: Place) {
    let world = world(&place).await;
    world.replies([
        &["{\"a\": 1}\nnoise\n{\"a\": 2}\n"][..],
        &[""][..],
        &["noise"][..],
        &["noise"][..],
    ]);
    for expected in [("[{\"a\":1},{\"a\":2}]", 1), ("[]", 0), ("[]", 1)] {
        let parts = world.ask("list", false).await.unwrap();
        let (object, dropped) = (parts[0].object.as_str(), parts[0].dropped);
        assert_eq!((object, dropped), expected);
    }
    assert_eq!(world.model.asked.lock().len(), 4);
}

async fn errors_keep_their_kind_and_words(place: Place) {
    let world = world(&place).await;
    for streaming in [true, false] {
        let limited = Error::new(ErrorCode::RateLimited, "too many; try again in 7 s");
        world.replies.lock().push_back(Err(limited.clone()));
        assert_eq!(world.ask("say", streaming).await.unwrap_err(), limited);
    }
    let unknown = world.ask("nothing", false).await.unwrap_err();
    assert_eq!(unknown.code(), ErrorCode::NotFound);
    assert!(unknown.message.contains("'nothing'"));
    let empty = world.ask("say", false).await.unwrap_err();
    assert_eq!(empty.message, "the model gave an empty answer");
}

tg_testkit::on_both_buses!(
    text_is_rendered_and_relayed_streamed_and_whole,
    what_the_asker_says_of_the_model_reaches_it,
    json_is_enforced_repaired_once_and_answered_in_one_message,
    lines_keep_what_is_good,
    errors_keep_their_kind_and_words,
);
