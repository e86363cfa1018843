//! Pictures as a client of the mesh sees them: described, refused by their field, and metered.

use std::sync::Arc;

use serde_json::json;
use tg_llm::{Options, processors};
use tg_mesh::Processor;
use tg_schemas::msg::{
    ChatCompletionRequest, ChatCompletionResponse, ChatTurn, ImageToTextRequest,
    ImageToTextResponse, Usage,
};
use tg_schemas::processors::{ProcessorSpec, Reads, Spec};
use tg_schemas::{Class, Error, ErrorCode};
use tg_testkit::config::Config;
use tg_testkit::fakes::RecordingConsumer;
use tg_testkit::flow::{TestFlow, Wiring, topic};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::place::Place;

/// The usage records of the one flow, read from outside of it.
const USAGE: Spec<Reads<Usage>> = Spec::new("usage:default:default").system();

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

struct World {
    flow: TestFlow,
    usage: Arc<RecordingConsumer<Usage>>,
}

async fn world(place: &Place, options: Options) -> World {
    let usage = RecordingConsumer::new();
    let meter = Processor::new(ProcessorSpec::unlisted("meter")).reads(USAGE, usage.clone());
    let host = |mesh: &_| {
        let own = processors(mesh, options).unwrap();
        own.into_iter().chain([meter]).collect()
    };
    let parameters = json!({"model": "chosen"});
    let flow = TestFlow::start_with(place, Config::new(), WIRING, parameters, host).await;
    World { flow, usage }
}

impl World {
    async fn ask(&self, image: &str, mime_type: &str) -> Result<ImageToTextResponse, Error> {
        let ask = ImageToTextRequest {
            image: image.to_owned(),
            mime_type: mime_type.to_owned(),
            ..ImageToTextRequest::default()
        };
        let to = topic(Class::Request, "image-to-text");
        let answer: tg_mesh::Answer<ImageToTextResponse> =
            self.flow.mesh.ask(&to, &ask, self.flow.options());
        answer.last().await
    }
}

async fn a_picture_is_described_and_metered(place: Place) {
    let rule = Rule::contains("Describe this image", Reply::pieces(["a red ", "lamp"]));
    let server = ScriptedModel::start(vec![rule]).await.unwrap();
    let options = Options {
        url: Some(server.url()),
        ..Options::default()
    };
    let world = world(&place, options).await;
    let told = world.ask(PNG, "image/png").await.unwrap();
    assert_eq!(told.description, "a red lamp");
    assert_eq!(told.model.as_deref(), Some("chosen"));
    let usage = world.usage.until(|all| !all.is_empty()).await.remove(0);
    assert_eq!(
        (usage.processor.as_str(), usage.outcome.as_str()),
        ("image-to-text", "ok")
    );
    assert_eq!(Some(usage.out_token), told.out_token);
    for (image, mime_type, told) in [
        (PNG, "image/gif", "mime_type: must be that of the image"),
        (
            "aGVsbG8=",
            "image/png",
            "image: must be a PNG, JPEG, GIF or WebP picture in base64",
        ),
    ] {
        let error = world.ask(image, mime_type).await.unwrap_err();
        assert_eq!(
            (error.code(), error.message.as_str()),
            (ErrorCode::BadRequest, told)
        );
    }
    assert_eq!(server.calls().len(), 1, "nothing else was sent on");
}

async fn the_builtin_reader_reads_none(place: Place) {
    let world = world(&place, Options::default()).await;
    let error = world.ask(PNG, "").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::NotImplemented);
    assert!(error.message.contains("reads no pictures"), "{error:?}");
    // Nor does it fetch any.
    let chat = ChatCompletionRequest {
        messages: vec![ChatTurn {
            role: "user".to_owned(),
            content: "go".to_owned(),
            images: vec!["https://nowhere.invalid/a.png".to_owned()],
            ..ChatTurn::default()
        }],
        ..ChatCompletionRequest::default()
    };
    let to = topic(Class::Request, "chat-completion");
    let mut answer: tg_mesh::Answer<ChatCompletionResponse> =
        world.flow.mesh.ask(&to, &chat, world.flow.options());
    let error = answer.next().await.unwrap().unwrap().error.unwrap();
    assert_eq!(error.code(), ErrorCode::NotImplemented, "{error:?}");
}

tg_testkit::on_both_buses!(
    a_picture_is_described_and_metered,
    the_builtin_reader_reads_none,
);
