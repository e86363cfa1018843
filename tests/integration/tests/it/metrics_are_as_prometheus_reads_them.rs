//! `/metrics` is read by Prometheus: every sample has its HELP and TYPE, histograms are whole and in buckets of their unit,
//! nothing is told twice, and the gauges of what waits are right. So it is where a process has a gateway and where not.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel, two_step_react};
use tg_testkit::process::{Launch, Server, root, tg};
use tg_testkit::shared_node::VirtualHost;
use tokio::time::Instant;

use crate::world::{Bus, World, launch, post};

/// A document is processed, or a gauge told, by then, also on a busy machine.
const BOUND: Duration = Duration::from_secs(60);

type Labels = BTreeMap<String, String>;

/// An exposition, read without mercy.
#[derive(Debug, Default)]
struct Page {
    help: BTreeMap<String, String>,
    kinds: BTreeMap<String, String>,
    samples: Vec<(String, Labels, f64)>,
}

impl Page {
    fn read(text: &str) -> Result<Self> {
        let mut page = Self::default();
        let mut families: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            page.line(line, &mut families)
                .with_context(|| line.to_owned())?;
        }
        page.histograms()?;
        page.units()?;
        Ok(page)
    }

    fn line(&mut self, line: &str, families: &mut Vec<String>) -> Result<()> {
        if let Some(rest) = line.strip_prefix("# ") {
            let (what, rest) = rest.split_once(' ').context("a comment")?;
            let (name, text) = rest.split_once(' ').context("a name and a text")?;
            let into = match what {
                "HELP" => &mut self.help,
                "TYPE" => &mut self.kinds,
                _ => anyhow::bail!("{what}"),
            };
            ensure!(
                into.insert(name.to_owned(), text.to_owned()).is_none(),
                "twice"
            );
            return Ok(());
        }
        let (series, value) = line.rsplit_once(' ').context("a value")?;
        let value: f64 = value.parse()?;
        let (name, labels) = labels(series)?;
        let family = self.family(&name).context("a type, told before")?;
        ensure!(
            self.help.get(&family).is_some_and(|text| text.len() > 10),
            "no help"
        );
        // What belongs together stands together.
        if families.last() != Some(&family) {
            ensure!(
                !families.contains(&family),
                "{family} is told in two places"
            );
            families.push(family);
        }
        let known = self
            .samples
            .iter()
            .any(|(n, l, _)| *n == name && *l == labels);
        ensure!(!known, "told twice");
        self.samples.push((name, labels, value));
        Ok(())
    }

    /// The metric that a sample belongs to.
    fn family(&self, name: &str) -> Option<String> {
        if let Some(kind) = self.kinds.get(name) {
            return (kind != "histogram").then(|| name.to_owned());
        }
        let mut ends = ["_bucket", "_sum", "_count"].into_iter();
        ends.find_map(|end| {
            let family = name.strip_suffix(end)?;
            (self.kinds.get(family)? == "histogram").then(|| family.to_owned())
        })
    }

    /// Buckets rise, the last is everything, and it is as many as the count says.
    fn histograms(&self) -> Result<()> {
        for (family, _) in self.kinds.iter().filter(|(_, kind)| *kind == "histogram") {
            let of = |end: &str| {
                let name = format!("{family}{end}");
                self.samples.iter().filter(move |(own, ..)| *own == name)
            };
            let mut buckets: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for (_, labels, value) in of("_bucket") {
                let mut labels = labels.clone();
                let le = labels.remove("le").context("le")?;
                let le = if le == "+Inf" {
                    f64::INFINITY
                } else {
                    le.parse()?
                };
                buckets.entry(labels).or_default().push((le, *value));
            }
            ensure!(!buckets.is_empty(), "{family}");
            for (labels, buckets) in buckets {
                let rise = buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1);
                ensure!(rise, "{family} {labels:?} {buckets:?}");
                let (last, all) = *buckets.last().context("buckets")?;
                let count = of("_count").find(|one| one.1 == labels).context("count")?;
                let sum = of("_sum").find(|one| one.1 == labels).context("sum")?;
                ensure!(last.is_infinite() && all == count.2, "{family} {labels:?}");
                ensure!(sum.2 >= 0.0, "{family} {labels:?}");
                let counts = !family.ends_with("_seconds");
                let whole = buckets
                    .iter()
                    .all(|(le, _)| le.is_infinite() || le.fract() == 0.0);
                ensure!(
                    counts == whole,
                    "{family}: buckets of another unit: {buckets:?}"
                );
            }
        }
        Ok(())
    }

    /// Names end as their kind does.
    fn units(&self) -> Result<()> {
        for (name, kind) in &self.kinds {
            ensure!(
                name.ends_with("_total") == (kind == "counter"),
                "{name} is a {kind}"
            );
            ensure!(
                ["counter", "gauge", "histogram"].contains(&kind.as_str()),
                "{name}: {kind}"
            );
            ensure!(self.help.contains_key(name), "{name} has no help");
        }
        ensure!(self.help.len() == self.kinds.len(), "help without a type");
        Ok(())
    }

    /// The sum of the samples of a name whose labels hold these.
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let fits = |own: &Labels| {
            let mut labels = labels.iter();
            labels.all(|(label, value)| own.get(*label).is_some_and(|own| own == value))
        };
        let mut found = self
            .samples
            .iter()
            .filter(|one| one.0 == name && fits(&one.1))
            .peekable();
        found.peek()?;
        Some(found.map(|one| one.2).sum())
    }
}

/// The name and the labels of a series.
fn labels(series: &str) -> Result<(String, Labels)> {
    let Some((name, rest)) = series.split_once('{') else {
        return Ok((series.to_owned(), Labels::new()));
    };
    let mut rest = rest.strip_suffix('}').context("}")?;
    let mut labels = Labels::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"").context("=")?;
        let (value, after) = after.split_once('"').context("\"")?;
        ensure!(
            labels.insert(label.to_owned(), value.to_owned()).is_none(),
            "{label} twice"
        );
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    Ok((name.to_owned(), labels))
}

async fn scrape(url: &str) -> Result<Page> {
    let answer = tg_testkit::process::client()?.get(url).send().await?;
    ensure!(answer.status() == 200, "{}", answer.status());
    let kind = answer.headers()["content-type"].to_str()?.to_owned();
    ensure!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    Page::read(&answer.text().await?)
}

async fn of(server: &Server) -> Result<Page> {
    scrape(&format!("{}metrics", server.url())).await
}

/// The page once something holds of it.
async fn until(server: &Server, what: &str, so: impl Fn(&Page) -> bool) -> Result<Page> {
    let end = Instant::now() + BOUND;
    loop {
        let page = of(server).await?;
        if so(&page) {
            return Ok(page);
        }
        ensure!(Instant::now() < end, "{what}: {page:?}\n{}", server.log());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

async fn works(bus: Bus) -> Result<()> {
    let (server, _node) = crate::world::up(bus).await?;
    let question = json!({"question": "What is 6 * 7?", "streaming": false});
    let (status, said) = post(&server.url(), "api/v1/flow/default/service/agent", question).await?;
    ensure!(status == 200 && said.to_string().contains("42"), "{said}");
    let file = root().join("demo/documents/uncommon-clocks.pdf");
    ensure!(file.exists(), "{}", file.display());
    let added = tg(&server.url(), &["add", "--wait", &file.to_string_lossy()]).await?;
    ensure!(added.code == Some(0), "{added:?}");

    let up = |page: &Page| {
        page.sum("tg_flow_waiting_messages", &[("flow", "default")])
            .is_some()
    };
    let page = until(&server, "gauges", up).await?;
    for (name, least) in [
        ("tg_agent_session_total", 1.0),
        ("tg_agent_run_iterations_count", 1.0),
        ("tg_agent_tool_invocation_total", 1.0),
        ("tg_text_completion_duration_seconds_count", 2.0),
        ("tg_graph_triples_written_total", 1.0),
        ("tg_vectors_written_total", 1.0),
        ("tg_keywords_indexed_total", 1.0),
        ("tg_model_up", 1.0),
        ("tg_build_info", 1.0),
        ("process_resident_memory_bytes", 1e6),
        ("process_cpu_seconds_total", 0.01),
        ("process_open_fds", 10.0),
        ("process_max_fds", 10.0),
        ("process_threads", 2.0),
        ("process_start_time_seconds", 1.7e9),
    ] {
        let sum = page.sum(name, &[]);
        ensure!(sum.is_some_and(|sum| sum >= least), "{name}: {sum:?}");
    }
    let run = page.sum("tg_agent_run_iterations_bucket", &[("le", "2")]);
    ensure!(run == Some(1.0), "{run:?}");
    let all: BTreeSet<&str> = page.kinds.keys().map(String::as_str).collect();
    ensure!(all.len() > 30, "{all:?}");
    Ok(())
}

#[tokio::test]
async fn after_real_work_on_the_embedded_bus() -> Result<()> {
    works(Bus::Embedded).await
}

#[tokio::test]
async fn after_real_work_over_a_broker() -> Result<()> {
    works(Bus::Rabbit).await
}

const DEAD: [(&str, &str); 1] = [("reason", "dead")];

/// A document that nothing can read is one dead letter, in the gauge, too, and not any more when it is discarded.
async fn bad_document(bus: Bus) -> Result<()> {
    let (server, _node) = crate::world::up(bus).await?;
    let none = until(&server, "none", |page| {
        page.sum("tg_dead_letters", &DEAD).is_some()
    })
    .await?;
    ensure!(none.sum("tg_dead_letters", &[]) == Some(0.0), "{none:?}");
    let add = json!({"operation": "add-document", "document-metadata": {"id": "urn:bad:pdf",
        "kind": "application/pdf", "title": "bad", "comments": "", "metadata": [], "tags": []},
        "content": STANDARD.encode("Only words.")});
    let process = json!({"operation": "add-processing", "processing-metadata": {"id": "urn:bad:work",
        "document-id": "urn:bad:pdf", "flow": "default", "collection": "default", "tags": []}});
    for body in [add, process] {
        let (status, told) = post(&server.url(), "api/v1/librarian", body).await?;
        ensure!(
            status == 200 && told.get("error").is_none_or(Value::is_null),
            "{told}"
        );
    }
    let here = [
        ("workspace", "default"),
        ("flow", "default"),
        ("reason", "dead"),
    ];
    let page = until(&server, "one", |page| {
        page.sum("tg_dead_letters", &DEAD) == Some(1.0)
    })
    .await?;
    ensure!(page.sum("tg_dead_letters", &[]) == Some(1.0), "{page:?}");
    ensure!(
        page.sum("tg_flow_dead_letters", &here) == Some(1.0),
        "{page:?}"
    );
    let waits = |page: &Page| page.sum("tg_dead_letter_oldest_seconds", &DEAD) > Some(0.0);
    until(&server, "it waits", waits).await?;
    let text = page
        .samples
        .iter()
        .map(|(_, labels, _)| format!("{labels:?}"));
    ensure!(
        !text.collect::<String>().contains("urn:bad"),
        "an id of a document"
    );

    let discard = json!({"operation": "discard-put-aside", "flow-id": "default"});
    let (status, told) = post(&server.url(), "api/v1/flow", discard).await?;
    ensure!(status == 200, "{told}");
    let gone = until(&server, "gone", |page| {
        page.sum("tg_dead_letters", &DEAD) == Some(0.0)
    })
    .await?;
    ensure!(
        gone.sum("tg_flow_dead_letters", &here) == Some(0.0),
        "{gone:?}"
    );
    ensure!(
        gone.sum("tg_dead_letter_oldest_seconds", &DEAD) == Some(0.0),
        "{gone:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_bad_document_is_gauged_on_the_embedded_bus() -> Result<()> {
    bad_document(Bus::Embedded).await
}

#[tokio::test]
async fn a_bad_document_is_gauged_over_a_broker() -> Result<()> {
    bad_document(Bus::Rabbit).await
}

/// While the model is away its gauge says so, and what is tried again for it is gauged, too, in what two of the alerts of
/// docs/operate.md ask about; once it answers, it is there.
async fn model_away(bus: Bus) -> Result<()> {
    let away = Rule::always(Reply::status(503, "away"));
    let world = World::with(bus, vec![away]).await?;
    let server = &world.server;
    let file = root().join("demo/documents/uncommon-clocks.txt");
    let added = tg(&server.url(), &["add", &file.to_string_lossy()]).await?;
    ensure!(added.code == Some(0), "{added:?}");
    let retry = [("reason", "retry")];
    let is_away = |page: &Page| {
        page.sum("tg_model_up", &[]) == Some(0.0)
            && page.sum("tg_dead_letters", &retry) > Some(0.0)
            && page.sum("tg_flow_dead_letters", &retry) > Some(0.0)
    };
    until(server, "away", is_away).await?;
    world
        .model
        .set_rules(vec![Rule::always(Reply::text("There."))]);
    // The model that failed rests for a minute; another of the same provider is asked at once.
    let turns = json!([{"role": "user", "content": "p"}]);
    let ask = json!({"model": "scripted-large", "messages": turns});
    let (_, said) = world
        .post("api/v1/flow/default/service/chat-completion", ask)
        .await?;
    ensure!(said.to_string().contains("There."), "{said}");
    until(server, "there", |page| {
        page.sum("tg_model_up", &[]) == Some(1.0)
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_model_away_is_gauged_on_the_embedded_bus() -> Result<()> {
    model_away(Bus::Embedded).await
}

#[tokio::test]
async fn a_model_away_is_gauged_over_a_broker() -> Result<()> {
    model_away(Bus::Rabbit).await
}

/// What a slow model does not keep up with waits in the queues of the flow, and is gauged.
async fn slow_model(bus: Bus) -> Result<()> {
    let slow = Rule::always(Reply::text("Late.").delayed(BOUND * 2));
    let world = World::with(bus, vec![slow]).await?;
    let server = &world.server;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("long.txt");
    let line =
        |n| format!("The lamp number {n} of Pellworth is made of glass and brass. ").repeat(40);
    std::fs::write(
        &file,
        (0..800).map(|n| line(n) + "\n\n").collect::<String>(),
    )?;
    let added = tg(&server.url(), &["add", &file.to_string_lossy()]).await?;
    ensure!(added.code == Some(0), "{added:?}");
    let here = [("workspace", "default"), ("flow", "default")];
    let waits = |page: &Page| page.sum("tg_flow_waiting_messages", &here) > Some(0.0);
    until(server, "waits", waits).await?;
    Ok(())
}

#[tokio::test]
async fn what_waits_is_gauged_on_the_embedded_bus() -> Result<()> {
    slow_model(Bus::Embedded).await
}

#[tokio::test]
async fn what_waits_is_gauged_over_a_broker() -> Result<()> {
    slow_model(Bus::Rabbit).await
}

/// A process without a gateway tells its own at an address of its own, and nothing else there.
#[tokio::test]
async fn a_process_without_a_gateway_is_scraped() -> Result<()> {
    let node = VirtualHost::new().await?;
    let model = ScriptedModel::start(two_step_react("calculator", json!({}), 2)).await?;
    let _all = launch(&model, Some(&node)).ready().await?;
    let mut lone = Launch::serve(&["tool"], &node.url())
        .env("THREADGRAPH_METRICS__LISTEN", "127.0.0.1:0")
        .spawn()
        .await?;
    let end = Instant::now() + BOUND;
    let port = loop {
        match lone.report_port() {
            Ok(port) => break port,
            Err(error) => ensure!(
                lone.alive() && Instant::now() < end,
                "{error}\n{}",
                lone.log()
            ),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let page = scrape(&format!("http://127.0.0.1:{port}/metrics")).await?;
    ensure!(page.sum("tg_tasks_total", &[]) >= Some(1.0), "{page:?}");
    ensure!(page.sum("tg_build_info", &[]) == Some(1.0), "{page:?}");
    let client = tg_testkit::process::client()?;
    let other = client
        .get(format!("http://127.0.0.1:{port}/api/v1/flow"))
        .send()
        .await?;
    ensure!(other.status() == 404, "{}", other.status());
    Ok(())
}

#[test]
fn what_is_wrong_is_found() {
    let good = "# HELP tg_a_seconds How long a took.\n# TYPE tg_a_seconds histogram\n\
        tg_a_seconds_bucket{le=\"0.5\"} 1\ntg_a_seconds_bucket{le=\"+Inf\"} 2\ntg_a_seconds_sum 3\ntg_a_seconds_count 2\n";
    assert!(Page::read(good).is_ok());
    for (from, to) in [
        ("# HELP tg_a_seconds How long a took.\n", ""),
        ("# TYPE tg_a_seconds histogram\n", ""),
        ("le=\"0.5\"} 1", "le=\"0.5\"} 3"),
        ("_count 2", "_count 3"),
        ("tg_a_seconds_sum 3\n", ""),
        ("0.5", "1"),
        (
            "tg_a_seconds_sum 3\n",
            "tg_a_seconds_sum 3\ntg_a_seconds_sum 3\n",
        ),
        ("seconds", "steps"),
    ] {
        let bad = good.replace(from, to);
        assert!(Page::read(&bad).is_err(), "{bad}");
    }
}
