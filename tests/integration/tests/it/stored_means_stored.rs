//! An importer that waits for the stores is told which of its lines are stored, which a store refused and why, and which
//! nobody confirmed. What it is told is stored is there at once, whatever happens to the store meanwhile.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{SinkExt, Stream, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tg_testkit::process::{Launch, Server, client, tg};
use tg_testkit::services::{ANSWERING, without};
use tg_testkit::shared_node::VirtualHost;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::world::{Bus, launched, on_both_buses, post};

/// Triples of a line, and what the graph of a workspace may hold: two lines, and not a third.
const EACH: usize = 400;
const QUOTA: &str = "1000";
const SCHEMA: &str = r#"{"name": "lamps", "description": "Lamps", "fields": [
    {"name": "id", "type": "integer", "primary_key": true}, {"name": "maker", "type": "string"}]}"#;
/// Seconds that a store may take.
const SETTLE: &str = "2";
/// Imports of which each is cut by a kill, how many lines are sent between two looks whether it came, the most before it and
/// how many more after it: fewer together than the numbers that an importer is told (10,000).
const ROUNDS: usize = 2;
const AT_ONCE: usize = 50;
const BEFORE: usize = 2_000;
const AFTER: usize = 500;
/// What is waited for comes within this.
const BOUND: Duration = Duration::from_secs(60);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

fn iri(text: &str) -> Value {
    json!({"t": "i", "i": text})
}

/// A line of triples of one predicate.
fn line(of: usize, count: usize) -> String {
    let predicate = format!("urn:line:{of}");
    let triple = |n: usize| json!({"s": iri(&format!("urn:s:{n}")), "p": iri(&predicate), "o": iri("urn:o")});
    let triples: Vec<Value> = (0..count).map(triple).collect();
    json!({"metadata": {"id": "load", "collection": "default"}, "triples": triples}).to_string()
}

/// How many triples of a line the graph has.
async fn held(url: &str, line: usize) -> Result<usize> {
    let ask =
        json!({"p": iri(&format!("urn:line:{line}")), "limit": 10_000, "collection": "default"});
    let (status, told) = post(url, "api/v1/flow/default/service/triples", ask).await?;
    let rows = told["response"].as_array();
    Ok(rows.with_context(|| format!("{status}: {told}"))?.len())
}

/// Imports lines; what became of them.
async fn import(url: &str, kind: &str, lines: &[String]) -> Result<Value> {
    let path = format!("{url}api/v1/flow/default/import/{kind}?settled=true");
    let sent = client()?.post(path).body(lines.join("\n")).send().await?;
    Ok(sent.json().await?)
}

/// The counters `stored`, `refused`, `unconfirmed` and `failed`.
fn counts(told: &Value) -> [u64; 4] {
    ["stored", "refused", "unconfirmed", "failed"].map(|name| told[name].as_u64().unwrap_or(99))
}

/// Why a line was refused.
fn why(told: &Value, line: u64) -> String {
    let errors = told["errors"].as_array().into_iter().flatten();
    let mut of = errors.filter(|one| one["frame"] == line);
    of.next()
        .map_or_else(String::new, |one| one["error"]["message"].to_string())
}

/// Lines of which some find no room in the graph: exactly those that are not there are told.
async fn triples_over_a_quota(url: &str) -> Result<()> {
    let lines: Vec<String> = (1..=5).map(|of| line(of, EACH)).collect();
    let told = import(url, "triples", &lines).await?;
    ensure!(counts(&told) == [2, 3, 0, 0], "{told}");
    ensure!(told["triples"] == 2 * EACH, "{told}");
    let refused = told["refused_frames"].as_array().context("refused")?;
    for of in 1..=5_u64 {
        let is_refused = refused.contains(&json!(of));
        let wanted = if is_refused { 0 } else { EACH };
        let held = held(url, of as usize).await?;
        ensure!(held == wanted, "line {of}: {held} of {wanted}: {told}");
        ensure!(
            is_refused == why(&told, of).contains("at most 1000 quads"),
            "{told}"
        );
    }
    let turtle: String = (0..EACH)
        .map(|n| format!("<urn:g:{n}> <urn:p> <urn:o> .\n"))
        .collect();
    let path = format!("{url}api/v1/flow/default/graph/default?default&settled=true");
    let add = |body: String| async {
        let request = client()?.post(&path).header("content-type", "text/turtle");
        let sent = request.body(body).send().await?;
        anyhow::Ok((sent.status().as_u16(), sent.json::<Value>().await?))
    };
    let (status, told) = add(turtle).await?;
    ensure!(
        status == 413 && told.to_string().contains("at most 1000 quads"),
        "{told}"
    );
    let (status, told) = add("<urn:one> <urn:p> <urn:o> .".to_owned()).await?;
    ensure!((status, told["stored"] == true) == (200, true), "{told}");
    Ok(())
}

/// Vectors of another dimension than those that are there.
async fn vectors_of_another_dimension(url: &str) -> Result<()> {
    for (kind, items, thing) in [
        (
            "graph-embeddings",
            "entities",
            json!({"entity": iri("urn:e")}),
        ),
        (
            "document-embeddings",
            "chunks",
            json!({"chunk_id": "urn:chunk:1"}),
        ),
    ] {
        let line = |vector: &[f64]| {
            let mut thing = thing.clone();
            thing["vector"] = json!(vector);
            json!({"metadata": {"id": "v", "collection": "vectors"}, "model": "m", items: [thing]})
                .to_string()
        };
        let first = import(url, kind, &[line(&[1.0, 0.0, 0.0])]).await?;
        ensure!(counts(&first) == [1, 0, 0, 0], "{kind}: {first}");
        let lines = [
            line(&[0.0, 1.0, 0.0]),
            line(&[1.0, 0.0]),
            line(&[0.0, 0.0, 1.0]),
        ];
        let told = import(url, kind, &lines).await?;
        ensure!(counts(&told) == [2, 1, 0, 0], "{kind}: {told}");
        ensure!(told["refused_frames"] == json!([2]), "{kind}: {told}");
        ensure!(why(&told, 2).contains('3'), "{kind}: {told}");
    }
    Ok(())
}

/// Contexts become vectors of entities, of which the store has the last word.
async fn contexts_of_entities(url: &str) -> Result<()> {
    let line = |collection: &str, context: &str| {
        let entity = json!({"entity": iri("urn:ann"), "context": context});
        json!({"metadata": {"id": "c", "collection": collection}, "entities": [entity]}).to_string()
    };
    let lines = [line("contexts", "Ann is the boss."), line("contexts", " ")];
    let told = import(url, "entity-contexts", &lines).await?;
    ensure!(counts(&told) == [1, 1, 0, 0], "{told}");
    ensure!(told["refused_frames"] == json!([2]), "{told}");
    // Where vectors of three numbers are, those of the flow's model have no place.
    let told = import(
        url,
        "entity-contexts",
        &[line("vectors", "Ann is the boss.")],
    )
    .await?;
    ensure!(counts(&told) == [0, 1, 0, 0], "{told}");
    Ok(())
}

/// Rows that do not fit their schema, and rows of none.
async fn rows_that_do_not_fit(url: &str) -> Result<()> {
    let line = |schema: &str, ids: &[&str]| {
        let row = |id: &&str| json!({"id": id, "maker": "x"});
        let rows: Vec<Value> = ids.iter().map(row).collect();
        json!({"metadata": {"id": "r", "collection": "default"}, "schema_name": schema, "values": rows}).to_string()
    };
    let lines = [
        line("lamps", &["1", "2"]),
        line("lamps", &["3", "many"]),
        line("towers", &["1"]),
        line("lamps", &["4"]),
    ];
    let told = import(url, "rows", &lines).await?;
    ensure!(counts(&told) == [2, 2, 0, 0], "{told}");
    ensure!(told["refused_frames"] == json!([2, 3]), "{told}");
    ensure!(why(&told, 2).contains("values[1].id"), "{told}");
    ensure!(why(&told, 3).contains("towers"), "{told}");
    Ok(())
}

/// The same through our own command.
async fn by_a_command(url: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("rows.jsonl");
    let row = |id: &str| {
        json!({"metadata": {"id": "r", "collection": "default"}, "schema_name": "lamps",
            "values": [{"id": id, "maker": "x"}]})
    };
    std::fs::write(&path, format!("{}\n{}\n", row("5"), row("many")))?;
    let file = path.to_str().context("a path")?;
    let ran = tg(url, &["load-rows", "--json", file]).await?;
    ran.expect("\"stored\": 1")?.expect("values[0].id")?;
    let known = "1 of 2 rows are known to be stored";
    ensure!(ran.stderr.contains(known), "{}", ran.stderr);
    ensure!(ran.code != Some(0), "{}", ran.stdout);
    Ok(())
}

async fn the_lines_that_a_store_refuses_are_told(bus: Bus) -> Result<()> {
    let (launch, _node) = launched(bus).await?;
    let server = launch
        .env("THREADGRAPH_GRAPH__WORKSPACE_QUADS", QUOTA)
        .ready()
        .await?;
    let url = server.url();
    let row = json!([{"type": "schema", "key": "lamps", "value": SCHEMA}]);
    let put = json!({"operation": "put", "workspace": "default", "values": row});
    post(&url, "api/v1/config", put).await?;
    triples_over_a_quota(&url).await?;
    vectors_of_another_dimension(&url).await?;
    contexts_of_entities(&url).await?;
    rows_that_do_not_fit(&url).await?;
    by_a_command(&url).await
}

on_both_buses!(the_lines_that_a_store_refuses_are_told);

type Import = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A gateway with all but the graph, which is a process of its own.
struct Apart {
    data: TempDir,
    node: VirtualHost,
    rest: Server,
    graph: Launch,
}

impl Apart {
    async fn start() -> Result<(Self, Server)> {
        Self::with(tempfile::tempdir()?).await
    }

    /// On a broker that knows nothing of it.
    async fn with(data: TempDir) -> Result<(Self, Server)> {
        let node = VirtualHost::new().await?;
        let others = without(&ANSWERING, &["graph"]);
        let launch = Launch::serve(&others, &node.url());
        let launch = launch.env("THREADGRAPH_GATEWAY__IMPORT_SETTLE_SECONDS", SETTLE);
        let mut rest = launch.data(&data.path().join("rest")).spawn().await?;
        let graph = Launch::serve(&["graph"], &node.url()).data(&data.path().join("graph"));
        let running = graph.clone().spawn().await?;
        rest.wait_ready().await?;
        let apart = Self {
            data,
            node,
            rest,
            graph,
        };
        Ok((apart, running))
    }

    async fn open(&self) -> Result<Import> {
        let url = self.rest.url().replacen("http", "ws", 1);
        let url = format!("{url}api/v1/flow/default/import/triples?ack=1&settled=1");
        let (mut socket, _) = tokio_tungstenite::connect_async(url).await?;
        let begun = word(&mut socket).await?;
        ensure!(begun["stored"]["frames"] == 0, "{begun}");
        Ok(socket)
    }

    /// Waits until the graph answers.
    async fn until_attached(&self) -> Result<()> {
        let end = Instant::now() + BOUND;
        while held(&self.rest.url(), 0).await.is_err() {
            ensure!(Instant::now() < end, "the graph does not answer");
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Waits until the graph has so many lines.
    async fn until_held(&self, lines: usize) -> Result<()> {
        let end = Instant::now() + BOUND;
        for line in 0..lines {
            while held(&self.rest.url(), line).await.unwrap_or(0) != 1 {
                ensure!(Instant::now() < end, "line {line} does not come");
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }
}

/// What the gateway says next.
async fn word(socket: &mut Import) -> Result<Value> {
    loop {
        let message = tokio::time::timeout(BOUND, socket.next()).await?;
        match message.context("closed")?? {
            Message::Text(text) => return Ok(serde_json::from_str(&text)?),
            Message::Close(close) => anyhow::bail!("closed: {close:?}"),
            _ => {}
        }
    }
}

/// Sends a line and hears what became of it.
async fn send(socket: &mut Import, of: usize) -> Result<Value> {
    socket.send(Message::text(line(of, 1))).await?;
    word(socket).await
}

#[tokio::test]
async fn what_a_store_that_was_killed_did_not_take_is_never_told_as_stored() -> Result<()> {
    let (apart, graph) = Apart::start().await?;
    apart.until_attached().await?;
    let url = apart.rest.url();
    let mut socket = apart.open().await?;
    for of in 0..20 {
        let told = send(&mut socket, of).await?;
        ensure!(told["stored"]["frames"] == of + 1, "{told}");
        ensure!(held(&url, of).await? == 1, "line {of} is told as stored");
    }
    graph.kill9().await?;
    // On the bus, and nobody is there to store them.
    for of in 20..23 {
        let told = send(&mut socket, of).await?;
        ensure!(told["unconfirmed"]["frame"] == of + 1, "{told}");
        let text = told["unconfirmed"]["error"]["message"].to_string();
        ensure!(text.contains("may still be stored"), "{text}");
    }
    let _successor = apart.graph.clone().spawn().await?;
    // It has what was told as stored, and takes what waited.
    apart.until_held(23).await?;
    let told = send(&mut socket, 23).await?;
    ensure!(told["stored"]["frames"] == 21, "only what was told: {told}");
    socket.send(Message::text(r#"{"type": "end"}"#)).await?;
    let last = word(&mut socket).await?;
    ensure!(counts(&last["status"]) == [21, 0, 3, 0], "{last}");
    ensure!(
        last["status"]["unconfirmed_frames"] == json!([21, 22, 23]),
        "{last}"
    );
    drop(apart.node);
    Ok(())
}

/// Lines from one on, as a body that does not end before `killed`, so that some are always under way when the kill comes.
fn endless(
    from: usize,
    killed: watch::Receiver<bool>,
) -> impl Stream<Item = Result<String, Infallible>> {
    let most = from + BEFORE;
    futures::stream::unfold(Some(from), move |next| {
        let mut killed = killed.clone();
        async move {
            let next = next?;
            if next >= most {
                killed.wait_for(|is| *is).await.ok()?;
            }
            let is_last = *killed.borrow();
            let until = next + if is_last { AFTER } else { AT_ONCE };
            let text: String = (next..until).map(|of| line(of, 1) + "\n").collect();
            Some((Ok(text), (!is_last).then_some(until)))
        }
    })
}

/// Imports lines until the graph is killed in the middle of it; how many there were and what became of them. Nobody takes
/// the place of the graph before that is told.
async fn cut_by_a_kill(url: &str, from: usize, graph: Server) -> Result<(usize, Value)> {
    let (kill, killed) = watch::channel(false);
    let path = format!("{url}api/v1/flow/default/import/triples?settled=true");
    let lines = reqwest::Body::wrap_stream(endless(from, killed));
    let importing = async {
        anyhow::Ok(
            client()?
                .post(path)
                .body(lines)
                .send()
                .await?
                .json()
                .await?,
        )
    };
    let killing = async {
        // Some lines are there, the others on their way.
        let end = Instant::now() + BOUND;
        while held(url, from).await.unwrap_or(0) == 0 {
            ensure!(Instant::now() < end, "nothing of it is there");
        }
        graph.kill9().await?;
        kill.send_replace(true);
        Ok(())
    };
    let (told, killing) = tokio::join!(importing, killing);
    killing?;
    let told: Value = told?;
    Ok((counts(&told).iter().sum::<u64>() as usize, told))
}

#[tokio::test]
async fn kills_under_way_make_no_line_stored_that_is_not() -> Result<()> {
    let (apart, mut graph) = Apart::start().await?;
    apart.until_attached().await?;
    let url = apart.rest.url();
    let (mut next, mut stored) = (0, Vec::new());
    for _ in 0..ROUNDS {
        let (sent, told) = cut_by_a_kill(&url, next, graph).await?;
        graph = apart.graph.clone().spawn().await?;
        apart.until_attached().await?;
        let [good, refused, unconfirmed, failed] = counts(&told);
        ensure!((refused, failed) == (0, 0), "{told}");
        let frames = told["unconfirmed_frames"].as_array();
        let frames: Vec<u64> = frames
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .collect();
        ensure!(frames.len() as u64 == unconfirmed, "{told}");
        let known = (1..=sent).filter(|frame| !frames.contains(&(*frame as u64)));
        stored.extend(known.map(|frame| next + frame - 1));
        next += sent;
        println!("{good} stored, {unconfirmed} not confirmed");
        // The successor takes what waited before the next kill.
        let end = Instant::now() + BOUND;
        while held(&url, next - 1).await.unwrap_or(0) == 0 {
            ensure!(Instant::now() < end, "what waited does not come");
            tokio::time::sleep(PAUSE).await;
        }
        ensure!(good > 0, "nothing was stored before the kill: {told}");
        ensure!(unconfirmed > 0, "no line was under way: {told}");
    }
    // Killed once more before it is asked, and on a broker where nothing waits for it: what was told as stored is on its disk.
    graph.kill9().await?;
    apart.rest.terminate().await?;
    let (apart, _graph) = Apart::with(apart.data).await?;
    let url = apart.rest.url();
    apart.until_attached().await?;
    // Any hundred of them: each is a question.
    let step = (stored.len() / 100).max(1);
    let last = stored.last().copied();
    for of in stored.into_iter().step_by(step).chain(last) {
        ensure!(held(&url, of).await? == 1, "line {of} was told as stored");
    }
    Ok(())
}
