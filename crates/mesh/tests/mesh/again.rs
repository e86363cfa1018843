//! A question that is asked again under its id when its answer is over: it is answered again.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::{Ask, Cx, Host, RequestHandler, Responder};
use tg_schemas::msg::{TextCompletionRequest, TextCompletionResponse};
use tg_schemas::{Class, Error, Topic};
use tg_testkit::bus::within;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use crate::dialogs::mesh;
use crate::serving::serving;

/// Parts of an answer: more than an asker takes before it says what it has used up.
const PARTS: usize = 200;

struct Words;

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Words {
    async fn serve(
        &self,
        _: Cx,
        question: TextCompletionRequest,
        mut out: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        for n in 1..=PARTS {
            out.send(TextCompletionResponse {
                response: question.prompt.clone(),
                end_of_stream: n == PARTS,
                ..TextCompletionResponse::default()
            })
            .await?;
        }
        Ok(())
    }
}

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
    let processor = serving("words", Arc::new(Words));
    server.host(processor).await.unwrap();
    let topic = Topic::system(Class::Request, "words");
    for _ in 0..50 {
        ask(&asker, &topic).await;
    }
    // Somebody else under the same id, at once after it.
    ask(&mesh(&place).await, &topic).await;
}

on_both_buses!(it_is_answered_again);
