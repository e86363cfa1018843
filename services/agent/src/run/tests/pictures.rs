//! Pictures of the library, and those that tools return, are described by the flow's own service.

use std::sync::Arc;

use base64::Engine;
use serde_json::{Value, json};
use tg_clients::library::BASE64;
use tg_mesh::Processor;
use tg_schemas::msg::*;
use tg_schemas::processors::{ProcessorSpec, Serves, Spec};
use tg_schemas::{Class, Error, ErrorCode, limits};
use tg_testkit::config::Config;
use tg_testkit::fakes::{Play, Played};
use tg_testkit::place::Place;

use super::delegated::observed;
use super::replayed;
use super::world::{Say, World, ask_for, question, rows, topic};

const SERVICE: Spec<Serves<ImageToTextRequest, ImageToTextResponse>> =
    Spec::pair("request", "response");
const LIBRARY: Spec<Serves<LibrarianRequest, LibrarianResponse>> =
    Spec::pair("request", "response");
const SNAP: &str = "Action: snap\nArgs: {}";
const END: &str = "Final Answer: done";

type Seer = Arc<Played<ImageToTextRequest, ImageToTextResponse>>;

fn config(described: bool) -> Config {
    let config = rows();
    config.put("tool-native", "image_to_text", r#"{"name": "look"}"#);
    let snap = json!({"name": "snap", "type": "mcp-tool", "mcp-tool": "camera", "arguments": []});
    config.put("tool", "snap", &snap.to_string());
    let pictures = topic(Class::Request, "pictures").to_string();
    ask_for(&config, "librarian-request", "pictures", &pictures);
    if described {
        let request = topic(Class::Request, "image-to-text").to_string();
        ask_for(&config, "image-to-text-request", "seer", &request);
    }
    config
}

/// Says which bytes it was shown; of some it cannot.
fn seer() -> Seer {
    Played::new(move |_, ask: ImageToTextRequest| {
        let bytes = BASE64.decode(&ask.image).expect("base64");
        if bytes == b"second" {
            return Err(Error::new(ErrorCode::RateLimited, "too many pictures"));
        }
        Ok(Play::from(ImageToTextResponse {
            description: format!(" {} bytes of {}\n", bytes.len(), ask.mime_type),
            in_token: Some(7),
            out_token: Some(3),
            ..ImageToTextResponse::default()
        }))
    })
}

/// Holds a picture, a text, and a picture that is too large.
fn library() -> Arc<Played<LibrarianRequest, LibrarianResponse>> {
    Played::new(|_, ask: LibrarianRequest| {
        let (kind, bytes) = match ask.document_id.as_str() {
            "urn:picture" => ("image/png", 9),
            "urn:large" => ("image/png", limits::PICTURE + 1),
            "urn:text" => ("text/plain", 9),
            _ => return Err(Error::new(ErrorCode::NotFound, "the document is not there")),
        };
        if ask.operation == "get-document-metadata" {
            let about = DocumentMetadata {
                id: ask.document_id,
                kind: kind.to_owned(),
                ..DocumentMetadata::default()
            };
            return Ok(Play::from(LibrarianResponse {
                document_metadata: Some(about),
                is_final: true,
                ..LibrarianResponse::default()
            }));
        }
        assert_eq!((&*ask.operation, kind), ("stream-document", "image/png"));
        let half = bytes / 2;
        let parts = [half, bytes - half].map(|bytes| LibrarianResponse {
            content: BASE64.encode(vec![b'x'; bytes]),
            is_final: bytes != half,
            ..LibrarianResponse::default()
        });
        Ok(Play::of(parts.into()))
    })
}

async fn world(place: &Place, described: bool, calls: &[&'static str]) -> (World, Seer) {
    let calls = calls.iter().map(|call| Say::Text(call));
    let script: Vec<Say> = calls.chain([Say::Text(END)]).collect();
    let seer = seer();
    let serving = Processor::new(ProcessorSpec::unlisted("seer")).serves(SERVICE, seer.clone());
    let held = Processor::new(ProcessorSpec::unlisted("pictures")).serves(LIBRARY, library());
    let world = World::among(place, script, config(described), vec![serving, held]).await;
    world.attached(&["pictures"]).await;
    if described {
        world.attached(&["seer"]).await;
    }
    (world, seer)
}

async fn a_picture_of_the_library_is_asked_about(place: Place) {
    let calls = [
        "Action: look\nArgs: {\"document-id\": \"urn:picture\", \"question\": \"Which?\"}",
        "Action: look\nArgs: {\"document-id\": \"urn:text\"}",
        "Action: look\nArgs: {\"document-id\": \"urn:none\"}",
        "Action: look\nArgs: {\"document-id\": \"urn:large\"}",
    ];
    let (world, seer) = world(&place, true, &calls).await;
    let ask = replayed::asks("looks", false);
    let chunks = replayed::run(&world, question("q", true), ask).await;
    let seen = observed(&chunks);
    assert_eq!(seen[0], "9 bytes of image/png");
    for (seen, told) in seen[1..].iter().zip([
        "the document is not a picture: it is 'text/plain'",
        "the document is not there",
        "the picture is larger than 8 MiB",
    ]) {
        assert!(seen.contains(told), "{seen}");
    }
    assert_eq!(seen.len(), 4);
    let asked = seer.asked.lock().clone();
    let [one] = asked.as_slice() else {
        panic!("{}", asked.len());
    };
    assert_eq!(one.prompt, "Which?");
    // Five questions to the model of the run, and what the picture took.
    let last = chunks.last().unwrap();
    assert_eq!((last.in_token, last.out_token), (Some(507), Some(53)));
    replayed::same_again(&world, "looks", &chunks).await;
    assert_eq!(seer.asked.lock().len(), 1);
}

async fn pictures_of_a_tool_are_described_where_they_stood(place: Place) {
    let (world, seer) = world(&place, true, &[SNAP]).await;
    let chunks = world.run(&question("q", true)).await;
    let shown = "see\n[image, image/png: 5 bytes of image/png]\n\
                 [image, image/png: it could not be described: too many pictures]";
    assert_eq!(observed(&chunks), [shown]);
    let asked = seer.asked.lock();
    let asked: Vec<_> = asked.iter().map(|ask| &*ask.image).collect();
    assert_eq!(asked, ["Zmlyc3Q=", "c2Vjb25k"]);
    let last = chunks.last().unwrap();
    assert_eq!((last.in_token, last.out_token), (Some(207), Some(23)));
}

async fn without_such_a_service_a_picture_is_named(place: Place) {
    let look = "Action: look\nArgs: {\"document-id\": \"urn:picture\"}";
    let (world, seer) = world(&place, false, &[SNAP, look]).await;
    let chunks = world.run(&question("q", true)).await;
    let seen = observed(&chunks);
    assert_eq!(seen[0], "see\n[image, image/png]\n[image, image/png]");
    let told = "this flow has no service that describes pictures";
    assert!(seen[1].contains(told), "{seen:?}");
    assert!(seer.asked.lock().is_empty());
    let asked = world.tools.asked.lock();
    let wanted: Vec<Value> = asked.iter().map(|ask| json!(ask.pictures)).collect();
    assert_eq!(wanted, [json!(false)]);
}

tg_testkit::on_both_buses!(
    a_picture_of_the_library_is_asked_about,
    pictures_of_a_tool_are_described_where_they_stood,
    without_such_a_service_a_picture_is_named,
);
