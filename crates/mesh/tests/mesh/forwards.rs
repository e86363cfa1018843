//! A question that is passed on: whoever it is passed to answers the asker itself.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_mesh::{Cx, RequestHandler, Responder};
use tg_schemas::msg::{
    PromptRequest, PromptResponse, TextCompletionRequest, TextCompletionResponse,
};
use tg_schemas::{Error, ErrorCode, Topic};
use tg_testkit::bus::{until, within};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;
use tokio::sync::Notify;

use crate::dialogs::mesh;
use crate::three::{self, Three};

/// Passes everything on to the model.
struct Passer {
    model: Topic,
}

#[async_trait]
impl RequestHandler<PromptRequest, PromptResponse> for Passer {
    async fn serve(
        &self,
        cx: Cx,
        question: PromptRequest,
        out: Responder<PromptResponse>,
    ) -> Result<(), Error> {
        assert!(cx.forwards());
        let question = TextCompletionRequest {
            prompt: question.id,
            ..TextCompletionRequest::default()
        };
        cx.forward_on(&self.model, &question, out).await
    }
}

/// Says each word; "hang" waits to be cancelled.
#[derive(Default)]
struct Model {
    started: Notify,
    cancelled: Notify,
    traced: Mutex<Vec<Option<String>>>,
}

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Model {
    async fn serve(
        &self,
        cx: Cx,
        question: TextCompletionRequest,
        mut out: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        assert_eq!(cx.headers.depth, Some(1), "one deeper than the question");
        self.traced.lock().push(cx.headers.traceparent.clone());
        self.started.notify_one();
        if question.prompt == "hang" {
            cx.cancel.cancelled().await;
            self.cancelled.notify_one();
            return Ok(());
        }
        if question.prompt == "fail" {
            return Err(Error::typed("llm-error", "the model said no"));
        }
        for word in question.prompt.split(' ') {
            out.send(TextCompletionResponse {
                response: word.to_owned(),
                ..TextCompletionResponse::default()
            })
            .await?;
        }
        out.send(TextCompletionResponse {
            in_token: Some(7),
            end_of_stream: true,
            ..TextCompletionResponse::default()
        })
        .await
    }
}

async fn three(place: &Place, with_model: bool) -> (Three, Arc<Model>) {
    let hosts = [mesh(place).await, mesh(place).await, mesh(place).await];
    let handler = Arc::new(Model::default());
    let says = with_model.then(|| handler.clone() as three::Model);
    let passes = |model| Arc::new(Passer { model }) as three::Passer;
    (Three::start(hosts, passes, says).await, handler)
}

async fn whom_it_is_passed_to_answers(place: Place) {
    let (three, _) = three(&place, true).await;
    let words: Vec<_> = (0..600).map(|n| n.to_string()).collect();
    let mut answer = three.ask(&words.join(" "), None);
    let (mut seen, mut tokens) = (Vec::new(), None);
    while let Some(part) = within(answer.next()).await {
        let part = part.unwrap();
        if part.end_of_stream {
            tokens = part.in_token;
        } else {
            seen.push(part.text);
        }
    }
    assert_eq!((seen, tokens), (words, Some(7)));
    let error = within(three.ask("fail", None).last()).await.unwrap_err();
    assert_eq!(error.message, "the model said no");
}

async fn the_trace_goes_with_it(place: Place) {
    let (three, model) = three(&place, true).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for told in [Some(trace), None] {
        within(three.ask("hello", told).last()).await.unwrap();
    }
    let traced = model.traced.lock().clone();
    assert_eq!(traced, [Some(trace.to_owned()), None]);
}

async fn who_gives_up_stops_whom_it_was_passed_to(place: Place) {
    let (three, model) = three(&place, true).await;
    let mut answer = three.ask("hang", None);
    tokio::select! {
        part = answer.next() => panic!("an answer: {part:?}"),
        () = model.started.notified() => {}
    }
    until(async || three.passer.load().1 == 0).await;
    assert_eq!(three.model.load().1, 1, "only the model is at it");
    drop(answer);
    within(model.cancelled.notified()).await;
    // The handler says that it was cancelled before it returns; only then is it counted as over.
    until(async || three.model.load().1 == 0).await;
}

async fn nobody_there_is_told(place: Place) {
    let (three, _) = three(&place, false).await;
    let error = within(three.ask("hello", None).last()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::NobodyServes, "{error:?}");
}

/// Silence is the answerer's to break: heartbeats come from where the question is now.
async fn a_silent_answerer_is_waited_for(place: Place) {
    let (three, _) = three(&place, true).await;
    let mut answer = three.ask("hang", None);
    let patience = Duration::from_secs(4);
    assert!(
        tokio::time::timeout(patience, answer.next()).await.is_err(),
        "longer than an asker waits for a sign of life"
    );
    assert_eq!(three.model.load().1, 1, "asked once, and still at it");
}

on_both_buses!(
    whom_it_is_passed_to_answers,
    the_trace_goes_with_it,
    who_gives_up_stops_whom_it_was_passed_to,
    nobody_there_is_told,
    a_silent_answerer_is_waited_for
);
