//! Spans over the bus: a question, its server, what that asks and writes are one trace, each below whoever caused it.

use std::sync::Arc;

use async_trait::async_trait;
use tg_mesh::telemetry::{Finished, Sampling, SpanKind, Spans, Tracer};
use tg_mesh::{Cx, MeshOptions, RequestHandler, Responder, clock};
use tg_schemas::msg::{
    PromptRequest, PromptResponse, TextCompletionRequest, TextCompletionResponse,
};
use tg_schemas::{Error, Topic};
use tg_testkit::bus::{until, within};
use tg_testkit::on_both_buses;
use tg_testkit::place::{Place, host_with};

use crate::three::{self, Three};

const TOLD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const UNRECORDED: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

/// Asks within a span of its own, then outside of its handler's, then passes the question on.
struct Middle(Topic);

#[async_trait]
impl RequestHandler<PromptRequest, PromptResponse> for Middle {
    async fn serve(
        &self,
        cx: Cx,
        question: PromptRequest,
        out: Responder<PromptResponse>,
    ) -> Result<(), Error> {
        let ask = TextCompletionRequest {
            prompt: question.id.clone(),
            ..TextCompletionRequest::default()
        };
        let span = cx.span(SpanKind::Internal, || "inside".to_owned());
        let inside = cx.clone().within(&span);
        let _: TextCompletionResponse = inside.ask_topic(&self.0, &ask).last().await?;
        drop(span);
        // Twice within comes out as far as once.
        let outside = inside.outliving();
        let _: TextCompletionResponse = outside.ask_topic(&self.0, &ask).last().await?;
        cx.forward_on(&self.0, &ask, out).await
    }
}

struct Model;

#[async_trait]
impl RequestHandler<TextCompletionRequest, TextCompletionResponse> for Model {
    async fn serve(
        &self,
        cx: Cx,
        question: TextCompletionRequest,
        mut out: Responder<TextCompletionResponse>,
    ) -> Result<(), Error> {
        if question.prompt == "fail" {
            return Err(Error::typed("llm-error", "the model said no"));
        }
        out.send(TextCompletionResponse {
            response: cx.headers.traceparent.clone().unwrap_or_default(),
            end_of_stream: true,
            ..TextCompletionResponse::default()
        })
        .await
    }
}

/// Three processes, each with a tracer.
struct World {
    three: Three,
    spans: [Spans; 3],
}

async fn world(place: &Place) -> World {
    let process = async || {
        let sampling = Sampling {
            share: 0.0,
            to_providers: false,
        };
        let (tracer, spans) = Tracer::new(sampling, clock::nanos);
        let options = MeshOptions {
            tracer,
            ..MeshOptions::default()
        };
        (host_with(place.connect().await, options).await, spans)
    };
    let (asker, of_asker) = process().await;
    let (second, of_second) = process().await;
    let (third, of_third) = process().await;
    let passes = |model| Arc::new(Middle(model)) as three::Passer;
    let says = Some(Arc::new(Model) as three::Model);
    World {
        three: Three::start([asker, second, third], passes, says).await,
        spans: [of_asker, of_second, of_third],
    }
}

impl World {
    async fn ask(&self, text: &str, traceparent: Option<&str>) -> Result<PromptResponse, Error> {
        within(self.three.ask(text, traceparent).last()).await
    }

    /// So many spans of each process, in the order in which they ended.
    async fn ended(&mut self, counts: [usize; 3]) -> [Vec<Finished>; 3] {
        let waiting = |spans: &[Spans; 3]| spans.each_ref().map(Spans::waiting);
        until(async || waiting(&self.spans) == counts).await;
        self.spans.each_mut().map(|spans| spans.here(99))
    }
}

fn named<'a>(spans: &'a [Finished], name: &str) -> Vec<&'a Finished> {
    spans
        .iter()
        .filter(|span| span.name.starts_with(name))
        .collect()
}

fn below(span: &Finished, parent: &Finished) -> bool {
    span.parent == Some(parent.context.span()) && span.began >= parent.began
}

async fn a_question_and_all_that_it_leads_to_is_one_trace(place: Place) {
    let mut world = world(&place).await;
    let reply = world.ask("hello", Some(TOLD)).await.unwrap();
    let [asker, middle, model] = world.ended([1, 5, 3]).await;
    let [asked] = named(&asker, "ask middle-").try_into().unwrap();
    assert_eq!((asked.kind, asked.failed), (SpanKind::Client, None));
    assert_eq!(asked.parent, Some(0x00f0_67aa_0ba9_02b7_u64.to_be_bytes()));
    let [handled] = named(&middle, "process middle-").try_into().unwrap();
    assert_eq!(handled.kind, SpanKind::Consumer);
    assert!(below(handled, asked));
    let [inside] = named(&middle, "inside").try_into().unwrap();
    assert!(below(inside, handled));
    let [first, second, passed] = named(&middle, "ask model-").try_into().unwrap();
    assert!(below(first, inside));
    // As if the asker had asked it: of what the handler's process takes along nothing is named.
    assert!(below(second, asked));
    assert!(below(passed, handled));
    assert_eq!(
        (first.kind, passed.kind),
        (SpanKind::Client, SpanKind::Producer)
    );
    let answered = named(&model, "process model-");
    // They end in any order.
    for parent in [first, second, passed] {
        let its = answered.iter().filter(|span| below(span, parent));
        assert_eq!(its.count(), 1, "{answered:?} {parent:?}");
    }
    let all = [asker.clone(), middle.clone(), model.clone()].concat();
    assert!(
        all.iter()
            .all(|span| span.context.to_string()[..35] == TOLD[..35])
    );
    assert_eq!(reply.text, answered[2].context.to_string());
}

async fn a_failure_is_one_of_the_span_too(place: Place) {
    let mut world = world(&place).await;
    let error = world.ask("fail", Some(TOLD)).await.unwrap_err();
    assert_eq!(error.message, "the model said no");
    // The first question fails, and the middle one with it.
    let [asker, middle, model] = world.ended([1, 3, 1]).await;
    let code = error.code().as_str();
    let failed: Vec<_> = asker.iter().map(|span| span.failed).collect();
    assert_eq!(failed, [Some(code)]);
    let failed: Vec<_> = named(&middle, "ask model-")
        .iter()
        .map(|span| span.failed)
        .collect();
    assert_eq!(failed, [Some(code)]);
    for handled in named(&middle, "process ")
        .into_iter()
        .chain(named(&model, "process "))
    {
        assert!(handled.failed.is_some(), "{handled:?}");
    }
}

async fn what_is_not_recorded_goes_on_as_it_came(place: Place) {
    let mut world = world(&place).await;
    for told in [Some(UNRECORDED), None] {
        let reply = world.ask("hello", told).await.unwrap();
        assert_eq!(reply.text, told.unwrap_or_default());
    }
    assert_eq!(world.ended([0, 0, 0]).await, [const { Vec::new() }; 3]);
}

on_both_buses!(
    a_question_and_all_that_it_leads_to_is_one_trace,
    a_failure_is_one_of_the_span_too,
    what_is_not_recorded_goes_on_as_it_came,
);
