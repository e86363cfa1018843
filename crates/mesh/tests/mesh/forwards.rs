//! A question that is passed on: whoever it is passed to answers the asker itself.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tg_mesh::{Answer, Ask, Cx, Host, RequestHandler, Responder};
use tg_schemas::msg::{
    PromptRequest, PromptResponse, TextCompletionRequest, TextCompletionResponse,
};
use tg_schemas::{Class, Error, ErrorCode, Topic};
use tg_testkit::bus::{until, within};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;
use tokio::sync::Notify;

use crate::dialogs::mesh;
use crate::serving::serving;

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

/// An asker, one that passes on, and a model: a process each.
struct Three {
    asker: Host,
    passer: Host,
    model: Host,
    handler: Arc<Model>,
    topic: Topic,
}

async fn three(place: &Place, with_model: bool) -> Three {
    let base = |what: &str| format!("{what}-{}", uuid::Uuid::new_v4().simple());
    let (ask, model_base) = (base("passer"), base("model"));
    let (asker, passer, model) = (mesh(place).await, mesh(place).await, mesh(place).await);
    let handler = Arc::new(Model::default());
    if with_model {
        let processor = serving(model_base.clone(), handler.clone());
        model.host(processor).await.unwrap();
    }
    let passes = Passer {
        model: Topic::system(Class::Request, &model_base),
    };
    let processor = serving(ask.clone(), Arc::new(passes));
    passer.host(processor).await.unwrap();
    Three {
        asker,
        passer,
        model,
        handler,
        topic: Topic::system(Class::Request, &ask),
    }
}

impl Three {
    fn ask(&self, text: &str) -> Answer<PromptResponse> {
        self.ask_traced(text, None)
    }

    fn ask_traced(&self, text: &str, traceparent: Option<&str>) -> Answer<PromptResponse> {
        let question = PromptRequest {
            id: text.to_owned(),
            ..PromptRequest::default()
        };
        let options = Ask {
            forward: true,
            traceparent: traceparent.map(str::to_owned),
            ..Ask::default()
        };
        self.asker.ask(&self.topic, &question, options)
    }
}

async fn whom_it_is_passed_to_answers(place: Place) {
    let three = three(&place, true).await;
    let words: Vec<_> = (0..600).map(|n| n.to_string()).collect();
    let mut answer = three.ask(&words.join(" "));
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
    let error = within(three.ask("fail").last()).await.unwrap_err();
    assert_eq!(error.message, "the model said no");
}

async fn the_trace_goes_with_it(place: Place) {
    let three = three(&place, true).await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for told in [Some(trace), None] {
        within(three.ask_traced("hello", told).last())
            .await
            .unwrap();
    }
    let traced = three.handler.traced.lock().clone();
    assert_eq!(traced, [Some(trace.to_owned()), None]);
}

async fn who_gives_up_stops_whom_it_was_passed_to(place: Place) {
    let three = three(&place, true).await;
    let mut answer = three.ask("hang");
    tokio::select! {
        part = answer.next() => panic!("an answer: {part:?}"),
        () = three.handler.started.notified() => {}
    }
    until(async || three.passer.load().1 == 0).await;
    assert_eq!(three.model.load().1, 1, "only the model is at it");
    drop(answer);
    within(three.handler.cancelled.notified()).await;
    // The handler says that it was cancelled before it returns; only then is it counted as over.
    until(async || three.model.load().1 == 0).await;
}

async fn nobody_there_is_told(place: Place) {
    let three = three(&place, false).await;
    let error = within(three.ask("hello").last()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::NobodyServes, "{error:?}");
}

/// Silence is the answerer's to break: heartbeats come from where the question is now.
async fn a_silent_answerer_is_waited_for(place: Place) {
    let three = three(&place, true).await;
    let mut answer = three.ask("hang");
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
