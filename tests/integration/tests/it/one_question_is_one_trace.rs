//! One question is one trace, from the gateway to the provider of the model: in one process and over the broker with a process
//! for each service, also where one of them is killed. It is exported as OTLP to a receiver that reads it strictly; one that
//! is away, or refuses, changes no answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tg_testkit::model::{Reply, Rule, ScriptedModel, two_step_react};
use tg_testkit::otlp::{Received, Receiver};
use tg_testkit::process::{Launch, Server, client};
use tg_testkit::services::{ANSWERING, without};
use tg_testkit::shared_node::VirtualHost;
use tokio::time::Instant;

use crate::traces::slow;
use crate::world::{Bus, on_both_buses, wired};

const AGENT: &str = "api/v1/flow/default/service/agent";
const BOUND: Duration = Duration::from_secs(60);
/// A trace and a span of a client.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";
/// In each question, and in no span.
const ASKED: &str = "nonce-nobody-sees";
/// What a provider writes that refuses a question.
const SAID: &str =
    r#"{"error": {"message": "the key sk-test-secret-4711 is bad, says db.internal"}}"#;
/// What is in no span.
const HIDDEN: [&str; 8] = [
    ASKED,
    "What is it",
    "look this up",
    "6*7",
    "sk-test",
    "127.0.0.1",
    "is bad",
    "db.internal",
];

/// A system that exports its traces.
struct Traced {
    receiver: Receiver,
    model: ScriptedModel,
    /// With the gateway.
    server: Server,
    /// Each of the other services, where they are processes.
    others: BTreeMap<String, Server>,
    /// With the data of each.
    folder: TempDir,
    _node: Option<VirtualHost>,
}

impl Traced {
    /// On the embedded bus everything in one process, else each service in one of its own, with settings more.
    async fn start(bus: Bus, rules: Vec<Rule>, settings: &[(&str, &str)]) -> Result<Self> {
        let receiver = Receiver::start().await?;
        let url = receiver.url();
        Self::exporting(bus, rules, (receiver, &url), settings).await
    }

    /// The same, to another address than the receiver's.
    async fn exporting(
        bus: Bus,
        rules: Vec<Rule>,
        (receiver, url): (Receiver, &str),
        settings: &[(&str, &str)],
    ) -> Result<Self> {
        let model = ScriptedModel::start(rules).await?;
        let node = bus.broker().await?;
        let with = |launch| with(launch, &model, url, settings);
        let (mut others, folder) = (BTreeMap::new(), tempfile::tempdir()?);
        let server = match &node {
            None => with(Launch::up()).ready().await?,
            Some(node) => {
                for service in without(&ANSWERING, &["gateway"]) {
                    let launch = with(Launch::serve(&[service], &node.url()));
                    let launch = launch.data(&folder.path().join(service));
                    others.insert(service.to_owned(), launch.spawn().await?);
                }
                with(Launch::serve(&["gateway"], &node.url()))
                    .ready()
                    .await?
            }
        };
        Ok(Self {
            receiver,
            model,
            server,
            others,
            folder,
            _node: node,
        })
    }

    /// Asks the agent over REST, as a part of a trace if one is given. The reply, whole.
    async fn ask(&self, traceparent: Option<&str>) -> Result<Value> {
        let body = json!({"question": format!("What is it? {ASKED}"), "streaming": false});
        let url = format!("{}{AGENT}", self.server.url());
        let mut request = client()?.post(url).json(&body).timeout(BOUND);
        if let Some(traceparent) = traceparent {
            request = request.header("traceparent", traceparent);
        }
        let reply: Value = request.send().await?.json().await?;
        let answer = reply["answer"].as_str().context(reply.to_string())?;
        ensure!(answer.contains(ASKED), "{reply}");
        Ok(reply)
    }

    /// The spans of a trace, once it is whole: both calls of the model, the tool, and nothing whose parent is missing.
    async fn trace(&self, of: impl Fn(&Received) -> bool) -> Result<Vec<Received>> {
        let own = |spans: &[Received]| -> Vec<Received> {
            spans.iter().filter(|span| of(span)).cloned().collect()
        };
        let whole = self
            .receiver
            .until(BOUND, |spans| is_whole(&own(spans)))
            .await;
        let spans = own(&self.receiver.spans());
        let faults = self.receiver.faults();
        ensure!(faults.is_empty(), "{faults:?}");
        ensure!(whole, "{}", drawn(&spans));
        Ok(spans)
    }

    /// The value of a counter in the gateway's metrics.
    async fn counted(&self, series: &str) -> Result<f64> {
        let url = format!("{}metrics", self.server.url());
        let text = client()?.get(url).send().await?.text().await?;
        let line = text.lines().find(|line| line.starts_with(series));
        let value = line.and_then(|line| line.rsplit(' ').next());
        Ok(value.map_or(Ok(0.0), str::parse)?)
    }

    async fn until_counted(&self, series: &str) -> Result<()> {
        let end = Instant::now() + BOUND;
        while self.counted(series).await? == 0.0 {
            ensure!(Instant::now() < end, "{series}\n{}", self.server.log());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }
}

fn with(launch: Launch, model: &ScriptedModel, url: &str, settings: &[(&str, &str)]) -> Launch {
    let launch = wired(launch, model).env("THREADGRAPH_TELEMETRY__OTLP_URL", url);
    let settings = settings.iter();
    settings.fold(launch, |launch, (name, value)| launch.env(name, *value))
}

fn dialog() -> Vec<Rule> {
    two_step_react("calculator", json!({"expression": "6*7"}), 2)
}

/// How many spans have a name that begins so.
fn count(spans: &[Received], name: &str) -> usize {
    spans
        .iter()
        .filter(|span| span.name.starts_with(name))
        .count()
}

fn is_whole(spans: &[Received]) -> bool {
    count(spans, "chat ") >= 2
        && count(spans, "execute_tool ") >= 1
        && count(spans, "agent step") >= 2
        && count(spans, "rest agent") >= 1
        && orphans(spans).is_empty()
}

/// Spans whose parent is none of these, nor the client's.
fn orphans(spans: &[Received]) -> Vec<&Received> {
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.span.as_str()).collect();
    let known = |parent: &String| parent == SPAN || ids.contains(parent.as_str());
    let lost = |span: &&Received| !span.parent.as_ref().is_none_or(known);
    spans.iter().filter(lost).collect()
}

/// The names from a span up to where the trace begins.
fn chain<'a>(spans: &'a [Received], from: &'a Received) -> Vec<&'a Received> {
    let mut chain = vec![from];
    while let Some(parent) = &chain[chain.len() - 1].parent
        && let Some(above) = spans.iter().find(|span| span.span == *parent)
    {
        chain.push(above);
    }
    chain
}

/// Spans as somebody reads them who looks for what is wrong.
fn drawn(spans: &[Received]) -> String {
    let line = |span: &Received| {
        let parent = span.parent.as_deref().unwrap_or("nothing");
        format!(
            "{} {} of {parent}: {} ({})\n",
            span.trace, span.span, span.name, span.service
        )
    };
    spans.iter().map(line).collect()
}

fn hides(spans: &[Received]) -> Result<()> {
    let text = format!("{spans:?}");
    for hidden in HIDDEN {
        ensure!(!text.contains(hidden), "{hidden} in {text}");
    }
    Ok(())
}

/// What holds for every trace of a question with one use of a tool.
fn check(spans: &[Received], bus: Bus) -> Result<()> {
    let ids: BTreeSet<&str> = spans.iter().map(|span| span.span.as_str()).collect();
    ensure!(ids.len() == spans.len(), "an id twice\n{}", drawn(spans));
    hides(spans)?;
    for span in spans.iter().filter(|span| !span.name.starts_with("chat ")) {
        let mut names = span.attributes.keys();
        ensure!(
            !names.any(|name| name.starts_with("gen_ai.usage.")),
            "usage beside a call of a model: {span:?}"
        );
    }
    let (mut calls, mut services) = (0, BTreeSet::new());
    for call in spans.iter().filter(|span| span.name == "chat scripted") {
        calls += 1;
        ensure!(call.kind == 3 && !call.failed, "{call:?}");
        for (what, expected) in [
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "openai"),
            ("gen_ai.request.model", "scripted"),
            ("gen_ai.response.model", "scripted"),
        ] {
            let said = call.attributes.get(what).map(String::as_str);
            ensure!(said == Some(expected), "{what}: {call:?}");
        }
        for tokens in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
            let number: i64 = call.attributes.get(tokens).context(tokens)?.parse()?;
            ensure!(number > 0, "{call:?}");
        }
        let above = chain(spans, call);
        let names: Vec<&str> = above.iter().map(|span| span.name.as_str()).collect();
        let way = [
            "chat scripted",
            "process text-completion-rag",
            "ask text-completion-rag",
            "agent step",
        ];
        ensure!(names.starts_with(&way), "{names:?}\n{}", drawn(spans));
        ensure!(names.ends_with(&["ask agent", "rest agent"]), "{names:?}");
        for (above, below) in above[1..].iter().zip(&above) {
            ensure!(above.began <= below.began, "{above:?} {below:?}");
        }
        services.extend(above.iter().map(|span| span.service.as_str()));
    }
    ensure!(calls == 2, "{}", drawn(spans));
    let expected: &[&str] = match bus {
        Bus::Embedded => &["threadgraph"],
        Bus::Rabbit => &[
            "threadgraph-agent",
            "threadgraph-gateway",
            "threadgraph-llm",
        ],
    };
    ensure!(services.iter().eq(expected), "{services:?}");
    let instances: BTreeSet<&str> = spans.iter().map(|span| span.instance.as_str()).collect();
    ensure!(instances.len() >= expected.len(), "{instances:?}");
    let tool = spans
        .iter()
        .find(|span| span.name == "execute_tool calculator");
    let tool = tool.context("a tool")?;
    let names: Vec<&str> = chain(spans, tool)
        .iter()
        .map(|span| span.name.as_str())
        .collect();
    ensure!(names[1] == "agent step", "{names:?}");
    let below = spans
        .iter()
        .filter(|span| span.parent.as_ref() == Some(&tool.span));
    ensure!(
        below.count() >= 1,
        "the tool is asked within its span\n{}",
        drawn(spans)
    );
    Ok(())
}

async fn a_question_is_one_trace(bus: Bus) -> Result<()> {
    let world = Traced::start(bus, dialog(), &[]).await?;
    world.ask(Some(&format!("00-{TRACE}-{SPAN}-01"))).await?;
    let spans = world.trace(|span| span.trace == TRACE).await?;
    check(&spans, bus)?;
    let gateway = spans
        .iter()
        .find(|span| span.kind == 2)
        .context("a server")?;
    ensure!(gateway.parent.as_deref() == Some(SPAN), "{gateway:?}");

    // Without one of the client's each question begins a trace of its own; one that its client does not record is not.
    world
        .ask(Some(&format!("00-{}-{SPAN}-00", "a".repeat(32))))
        .await?;
    for nth in 1..=2 {
        world.ask(None).await?;
        let more = world.receiver.until(BOUND, |spans| {
            let roots = spans.iter().filter(|span| span.parent.is_none());
            roots.count() == nth
        });
        ensure!(more.await, "{}", drawn(&world.receiver.spans()));
    }
    let all = world.receiver.spans();
    let roots: Vec<&Received> = all.iter().filter(|span| span.parent.is_none()).collect();
    ensure!(roots[0].trace != roots[1].trace, "{roots:?}");
    for root in &roots {
        let spans = world.trace(|span| span.trace == root.trace).await?;
        check(&spans, bus)?;
    }
    let traces: BTreeSet<String> = all.iter().map(|span| span.trace.clone()).collect();
    ensure!(traces.len() == 3, "{traces:?}");
    let told = world
        .model
        .calls()
        .into_iter()
        .filter(|call| call.traceparent.is_some());
    ensure!(told.count() == 0, "a provider is told of traces");
    // The span of a call that fails has the kind of its failure, and nothing that the provider writes.
    world.model.refuse(Reply::status(401, SAID));
    ensure!(world.ask(None).await.is_err(), "an answer");
    let failed = |span: &Received| span.name == "chat scripted" && span.failed;
    let whole = world.receiver.until(BOUND, |spans| {
        let roots = spans.iter().filter(|span| span.parent.is_none());
        roots.count() == 3 && spans.iter().any(failed)
    });
    ensure!(whole.await, "{}", drawn(&world.receiver.spans()));
    hides(&world.receiver.spans())
}

async fn a_socket_begins_a_trace_for_each_question(bus: Bus) -> Result<()> {
    let settings = [("THREADGRAPH_TELEMETRY__TO_PROVIDERS", "true")];
    let world = Traced::start(bus, dialog(), &settings).await?;
    let socket = tg_testkit::socket::Socket::connect(&world.server.url(), "").await?;
    let request = json!({"question": format!("What is it? {ASKED}"), "streaming": true});
    socket.ask("agent", "default", request).await?;
    let came = world
        .receiver
        .until(BOUND, |spans| count(spans, "socket agent") == 1);
    ensure!(came.await, "{}", drawn(&world.receiver.spans()));
    let spans = world.receiver.spans();
    let root = spans
        .iter()
        .find(|span| span.name == "socket agent")
        .context("a root")?;
    let whole = world.receiver.until(BOUND, |spans| {
        count(spans, "chat ") == 2 && orphans(spans).is_empty()
    });
    ensure!(whole.await, "{}", drawn(&world.receiver.spans()));
    let spans = world.receiver.spans();
    ensure!(
        spans.iter().all(|span| span.trace == root.trace),
        "{}",
        drawn(&spans)
    );
    // The provider is told of the span of its own call.
    let told: BTreeSet<String> = world
        .model
        .calls()
        .into_iter()
        .filter_map(|call| call.traceparent)
        .collect();
    let calls = spans.iter().filter(|span| span.name == "chat scripted");
    let calls = calls.map(|span| format!("00-{}-{}-01", span.trace, span.span));
    ensure!(told == calls.collect(), "{told:?}");
    Ok(())
}

async fn what_is_left_is_exported_at_the_end(bus: Bus) -> Result<()> {
    let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20s3cret");
    let world = Traced::start(bus, dialog(), &[headers]).await?;
    world.ask(Some(&format!("00-{TRACE}-{SPAN}-01"))).await?;
    let Traced {
        receiver,
        server,
        others,
        ..
    } = world;
    let mut logs = vec![server.log()];
    ensure!(server.terminate().await? == Some(0), "{}", logs[0]);
    for other in others.into_values() {
        logs.push(other.log());
        other.terminate().await?;
    }
    let spans = receiver.spans();
    ensure!(is_whole(&spans), "{}", drawn(&spans));
    let keys = receiver.header("authorization");
    ensure!(
        !keys.is_empty()
            && keys
                .iter()
                .all(|key| key.as_deref() == Some("Basic s3cret")),
        "{keys:?}"
    );
    for log in logs {
        ensure!(log.contains("traces are exported over OTLP"), "{log}");
        ensure!(!log.contains("s3cret"), "{log}");
    }
    Ok(())
}

async fn a_receiver_that_is_away_changes_no_answer(bus: Bus) -> Result<()> {
    let receiver = Receiver::start().await?;
    // Nobody listens there.
    let nowhere = format!("http://127.0.0.1:{}", tg_testkit::process::free_port()?);
    let world = Traced::exporting(bus, dialog(), (receiver, &nowhere), &[]).await?;
    for _ in 0..3 {
        world.ask(None).await?;
    }
    world
        .until_counted("tg_spans_dropped_total{why=\"unsent\"}")
        .await?;
    ensure!(
        world.counted("tg_spans_exported_total").await? == 0.0,
        "exported"
    );
    let warned = world.server.log();
    let warned = warned
        .lines()
        .filter(|line| line.contains("traces are not exported"));
    ensure!(warned.count() == 1, "{}", world.server.log());
    world.ask(None).await?;
    Ok(())
}

async fn a_receiver_that_refuses_is_heard_again(bus: Bus) -> Result<()> {
    let receiver = Receiver::start().await?;
    receiver.refuse(Some((401, None)));
    let url = receiver.url();
    let world = Traced::exporting(bus, dialog(), (receiver, &url), &[]).await?;
    world.ask(None).await?;
    world
        .until_counted("tg_spans_dropped_total{why=\"refused\"}")
        .await?;
    ensure!(
        !world.server.log().contains("not shown to anybody"),
        "{}",
        world.server.log()
    );
    world.receiver.refuse(None);
    world.ask(Some(&format!("00-{TRACE}-{SPAN}-01"))).await?;
    let spans = world.trace(|span| span.trace == TRACE).await?;
    check(&spans, bus)?;
    world.until_counted("tg_spans_exported_total").await
}

on_both_buses!(
    a_question_is_one_trace,
    a_socket_begins_a_trace_for_each_question,
    what_is_left_is_exported_at_the_end,
    a_receiver_that_is_away_changes_no_answer,
    a_receiver_that_refuses_is_heard_again,
);

/// The agent is killed while its model thinks: who takes the step up goes on in the same trace, and from each call of the model
/// that was answered the way leads up to the gateway.
#[tokio::test]
async fn a_step_that_is_taken_up_goes_on_in_its_trace() -> Result<()> {
    let rules = slow(Duration::from_millis(100));
    let mut world = Traced::start(Bus::Rabbit, rules, &[]).await?;
    let node = world._node.as_ref().context("a broker")?.url();
    let first = world.others.remove("agent");
    let url = world.receiver.url();
    let launch = with(Launch::serve(&["agent"], &node), &world.model, &url, &[])
        .data(&world.folder.path().join("agent"));
    let process = first.context("an agent")?;
    let calls = world.model.count();
    let (asked, body) = (
        format!("{}{AGENT}", world.server.url()),
        json!({"question": format!("What is it? {ASKED}"), "streaming": false}),
    );
    let request = client()?
        .post(asked)
        .json(&body)
        .header("traceparent", format!("00-{TRACE}-{SPAN}-01"))
        .header("x-detach", "true")
        .timeout(BOUND);
    let killed = async {
        ensure!(world.model.wait_calls(calls + 1, BOUND).await, "no call");
        process.kill9().await?;
        launch.clone().spawn().await
    };
    let (answered, successor) = tokio::join!(request.send(), killed);
    let _successor = successor?;
    let answered: Value = answered?.json().await?;
    let came = world.receiver.until(BOUND, |spans| {
        count(spans, "rest agent") == 1
            && count(spans, "chat ") >= 3
            && count(spans, "agent step") >= 2
    });
    ensure!(came.await, "{answered}\n{}", drawn(&world.receiver.spans()));
    let spans = world.receiver.spans();
    let own: Vec<&Received> = spans.iter().filter(|span| span.trace == TRACE).collect();
    ensure!(own.len() == spans.len(), "{}", drawn(&spans));
    let ended = |span: &&Received| span.name == "chat scripted" && !span.failed;
    for call in spans.iter().filter(ended) {
        let names: Vec<&str> = chain(&spans, call)
            .iter()
            .map(|span| span.name.as_str())
            .collect();
        let whole = names.ends_with(&["ask agent", "rest agent"]);
        // What the process that was killed had asked has lost its way, and nothing else.
        ensure!(whole || names.len() < 6, "{names:?}\n{}", drawn(&spans));
    }
    let whole = spans.iter().filter(ended);
    let whole = whole.filter(|call| {
        chain(&spans, call)
            .iter()
            .any(|span| span.name == "rest agent")
    });
    ensure!(whole.count() >= 2, "{}", drawn(&spans));
    Ok(())
}
