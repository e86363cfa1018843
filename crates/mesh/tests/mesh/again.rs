//! A question that is asked again under its id when its answer is over: it is answered again.

use tg_mesh::{Ask, Host};
use tg_schemas::Topic;
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
use tg_testkit::bus::within;
use tg_testkit::fakes::Played;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use crate::dialogs::mesh;
use crate::serving::{at, serving};

/// Parts of an answer: more than an asker takes before it says what it has used up.
const PARTS: usize = 200;

async fn ask(asker: &Host, topic: &Topic) {
    let question = TextCompletionRequest {
        prompt: "word".to_owned(),
        ..TextCompletionRequest::default()
    };
    let options = Ask {
        id: Some("same".to_owned()),
        ..Ask::default()
    };
    let mut answer = asker.ask::<_, TextCompletionResponse>(topic, &question, options);
    let mut parts = 0;
    while let Some(part) = within(answer.next()).await {
        assert_eq!(part.unwrap().response, "word");
        parts += 1;
    }
    assert_eq!(parts, PARTS);
}

async fn it_is_answered_again(place: Place) {
    let (server, asker) = (mesh(&place).await, mesh(&place).await);
    let words = Played::<_, TextCompletionResponse>::new(|_, question: TextCompletionRequest| {
        let part = |n| TextCompletionResponse {
            response: question.prompt.clone(),
            end_of_stream: n == PARTS,
            ..TextCompletionResponse::default()
        };
        Ok((1..=PARTS).map(part).collect::<Vec<_>>())
    });
    let processor = serving("words", words);
    server.host(processor).await.unwrap();
    let topic = at("words");
    for _ in 0..50 {
        ask(&asker, &topic).await;
    }
    // Somebody else under the same id, at once after it.
    ask(&mesh(&place).await, &topic).await;
}

on_both_buses!(it_is_answered_again);
