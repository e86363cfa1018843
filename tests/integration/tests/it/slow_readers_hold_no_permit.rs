//! Readers that take their results slowly, or not at all, keep nobody else from asking: neither another workspace nor
//! their own, whatever they read and however it comes to them. Readers that are fast keep no other workspace from it.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tg_testkit::process::Server;

use crate::bulk_streams::{Reader, Stream};
use crate::workspaces::{add, iam, patiently, start};
use crate::world::{Bus, post, up};

/// Of each of the two ways to ask the graph: more than it works at at once.
const QUERIES: usize = 4;
/// Pieces of what no buffer on the way holds.
const CHUNKS: usize = 6;
/// Megabytes of triples.
const STORED: usize = 16;
/// All buffers on the way are full by then.
const FULL: Duration = Duration::from_secs(3);
/// Who is of another workspace is answered soon, on any machine: it would wait for such readers for ten minutes.
const SOON: Duration = Duration::from_secs(60);
/// Their own workspace computes for them first; it would wait for readers as slow as these for ten minutes.
const BOUND: Duration = Duration::from_secs(60);

fn reader(server: &Server) -> Reader<'_> {
    Reader {
        server,
        key: "",
        workspace: "default",
    }
}

/// Readers of every kind that have begun, and read no more.
async fn slow(server: &Server) -> Result<Vec<Stream>> {
    let (reader, mut all) = (reader(server), Vec::new());
    for _ in 0..QUERIES {
        all.push(reader.query_events().await?);
        all.push(reader.query_socket().await?);
    }
    all.push(reader.stored_lines().await?);
    all.push(reader.stored_socket().await?);
    all.push(reader.document().await?);
    all.push(reader.core().await?);
    all.push(reader.core_socket().await?);
    Ok(all)
}

/// What they read.
async fn fill(server: &Server) -> Result<()> {
    reader(server).keep_big(CHUNKS).await?;
    reader(server).keep_triples(STORED).await
}

/// Everybody is answered, in a workspace.
async fn answered(url: &str, workspace: &str) -> Result<()> {
    let flow = "api/v1/flow/default/service";
    let content = json!({"operation": "get-document-content", "document-id": "urn:small"});
    for (path, mut ask) in [
        (format!("{flow}/sparql"), json!({"query": "ASK {}"})),
        (
            format!("{flow}/triples"),
            json!({"p": {"t": "i", "i": "urn:q"}, "limit": 1}),
        ),
        ("api/v1/librarian".into(), content),
        (
            "api/v1/knowledge".into(),
            json!({"operation": "list-kg-cores"}),
        ),
    ] {
        ask["workspace"] = json!(workspace);
        let asked = tokio::time::timeout(BOUND, post(url, &path, ask)).await;
        let asked = asked.with_context(|| format!("{path} in {workspace} waits"))?;
        let (status, told) = asked?;
        ensure!(
            status == 200 && told.get("error").is_none_or(Value::is_null),
            "{path}: {told}"
        );
    }
    Ok(())
}

async fn slow_readers(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    fill(&server).await?;
    iam(&url, "create-workspace", "other").await?;
    start(&url, "other").await?;
    for workspace in ["default", "other"] {
        add(&url, workspace, "urn:small").await?;
        ready(&url, workspace).await?;
    }
    let readers = slow(&server).await?;
    tokio::time::sleep(FULL).await;
    let asked = Instant::now();
    ready(&url, "other").await?;
    ensure!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    for workspace in ["default", "other"] {
        answered(&url, workspace).await?;
    }
    // Another of the same kind begins as well.
    let another = reader(&server).query_socket().await?;
    drop((readers, another));
    Ok(())
}

/// The flow answers.
async fn ready(url: &str, workspace: &str) -> Result<()> {
    let ask = json!({"workspace": workspace, "query": "ASK {}"});
    let path = "api/v1/flow/default/service/sparql";
    patiently(url, path, ask).await.map(|_| ())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    slow_readers(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    slow_readers(Bus::Rabbit).await
}

mod alone {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::{Duration, Instant};

    use anyhow::{Context, Result, ensure};
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use reqwest::{RequestBuilder, StatusCode};
    use serde_json::{Value, json};
    use tg_testkit::process::client;
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
    use tokio::task::JoinSet;

    use super::{BOUND, ready};
    use crate::workspaces::{iam, start};
    use crate::world::{Bus, up};

    /// Queries that one workspace asks at once: more than are evaluated together.
    const QUERIES: usize = 40;
    /// Triples of its graph. Each of its queries has the cube of that in rows, which take minutes.
    const TRIPLES: usize = 300;
    const ROWS: &str = "SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }";
    /// Times that others ask.
    const ASKS: usize = 5;
    /// Others are answered within this. While answers were written without a pause they waited for more than five seconds.
    const MOST: Duration = Duration::from_secs(3);

    /// Reads an answer as fast as it comes: says when it begins, and counts when it has ended, in whatever way.
    async fn read(query: RequestBuilder, begun: UnboundedSender<()>, ended: Arc<AtomicUsize>) {
        let Ok(mut answer) = query.send().await else {
            return;
        };
        // Those beyond what may wait are refused.
        if answer.status() != StatusCode::OK {
            return;
        }
        let _ = begun.send(());
        while matches!(answer.chunk().await, Ok(Some(_))) {}
        ended.fetch_add(1, Ordering::Relaxed);
    }

    async fn fill(url: &str) -> Result<()> {
        let iri = |text: &str| json!({"t": "i", "i": text});
        let frame = |n: usize| {
            let triple =
                json!({"s": iri(&format!("urn:s{n}")), "p": iri("urn:p"), "o": iri("urn:o")});
            let metadata = json!({"id": "x", "collection": "default"});
            format!("{}\n", json!({"metadata": metadata, "triples": [triple]}))
        };
        let lines: String = (0..TRIPLES).map(frame).collect();
        let import = format!("{url}api/v1/flow/default/import/triples?settled=true");
        let sent = client()?.post(import).body(lines).timeout(BOUND).send();
        let told: Value = sent.await?.json().await?;
        ensure!(told["stored"] == TRIPLES, "{told}");
        Ok(())
    }

    /// How long one request takes that has to succeed.
    async fn answered(url: &str) -> Result<Duration> {
        let asked = Instant::now();
        let answer = client()?.get(url).timeout(BOUND).send().await?;
        ensure!(answer.status() == StatusCode::OK, "{url}: {answer:?}");
        answer.bytes().await?;
        Ok(asked.elapsed())
    }

    /// At the standard SPARQL endpoint, queries of one workspace leave the processors to others, too.
    async fn fast_readers(bus: Bus) -> Result<()> {
        let (server, _node) = up(bus).await?;
        let url = server.url();
        iam(&url, "create-workspace", "other").await?;
        start(&url, "other").await?;
        for workspace in ["default", "other"] {
            ready(&url, workspace).await?;
        }
        fill(&url).await?;
        let sparql = |query: &str, workspace: &str| {
            let query = utf8_percent_encode(query, NON_ALPHANUMERIC);
            format!("{url}api/v1/flow/default/sparql/default?query={query}&workspace={workspace}")
        };
        let (begun, mut begins) = unbounded_channel();
        let ended = Arc::new(AtomicUsize::new(0));
        let mut readers = JoinSet::new();
        for _ in 0..QUERIES {
            let query = client()?.get(sparql(ROWS, "default"));
            readers.spawn(read(query, begun.clone(), ended.clone()));
        }
        // Some are answered, and the others wait behind them.
        for _ in 0..2 {
            let begins = tokio::time::timeout(BOUND, begins.recv()).await;
            begins.context("no answer begins")?.context("all ended")?;
        }
        for _ in 0..ASKS {
            let live = answered(&format!("{url}health/live")).await?;
            let ask = answered(&sparql("ASK {}", "other")).await?;
            println!("{bus:?}: live {live:?}, ASK of another workspace {ask:?}");
            ensure!(live < MOST && ask < MOST, "live {live:?}, ASK {ask:?}");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        // Otherwise nobody had to share anything.
        let ended = ended.load(Ordering::Relaxed);
        ensure!(ended == 0, "{ended} of {QUERIES} queries had ended");
        Ok(())
    }

    #[tokio::test]
    async fn fast_readers_leave_others_their_time_embedded() -> Result<()> {
        fast_readers(Bus::Embedded).await
    }

    #[tokio::test]
    async fn fast_readers_leave_others_their_time_on_rabbitmq() -> Result<()> {
        fast_readers(Bus::Rabbit).await
    }
}
