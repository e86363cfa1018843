//! A key that was revoked ends what it had begun within a second: imports by socket and by lines, answers as events,
//! a core that is being put, work that goes on without its caller. (Exports and sockets: `revocation_is_immediate`.)

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_core_file::msgpack;
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_tungstenite::tungstenite::Message;

use crate::edge::{first_key, iam};
use crate::revocation_is_immediate::key_of;
use crate::world::{Bus, launch};

/// From the answer of the revocation on.
const BOUND: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(60);
const ENDED: &str = "revoked or has expired";

/// A request whose body goes on, or whose answer does.
struct Request {
    stream: TcpStream,
    what: &'static str,
}

impl Request {
    async fn begin(
        server: &Server,
        what: &'static str,
        key: &str,
        path: &str,
        more: &str,
        piece: &[u8],
    ) -> Result<Self> {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await?;
        let head = format!(
            "POST /api/v1/{path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\n{more}\r\n",
            server.port()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(piece).await?;
        Ok(Self { stream, what })
    }

    /// A body that has begun, and of which more is announced.
    async fn unfinished(
        server: &Server,
        what: &'static str,
        key: &str,
        path: &str,
        first: &[u8],
    ) -> Result<Self> {
        let piece = [format!("{:x}\r\n", first.len()).as_bytes(), first, b"\r\n"].concat();
        Self::begin(
            server,
            what,
            key,
            path,
            "Transfer-Encoding: chunked\r\n",
            &piece,
        )
        .await
    }

    /// Reads until the answer says that the key is no good any more.
    async fn ends(mut self, until: Instant) -> Result<()> {
        let mut all = Vec::new();
        loop {
            let read = timeout_at(until, self.stream.read_buf(&mut all)).await;
            let text = String::from_utf8_lossy(&all);
            if text.contains(ENDED) {
                return Ok(());
            }
            let read = read.with_context(|| format!("{} goes on: {text}", self.what))??;
            ensure!(read > 0, "{} ends without a word: {text}", self.what);
        }
    }
}

fn triple() -> String {
    let iri = |text: &str| json!({"t": "i", "i": text});
    let triple = json!({"s": iri("urn:s"), "p": iri("urn:p"), "o": {"t": "l", "v": "v"}});
    json!({"metadata": {"id": "x", "collection": "default"}, "triples": [triple]}).to_string()
}

/// A record of a core that is being put.
fn core() -> Vec<u8> {
    let meta = json!({"i": "urn:core", "m": "", "c": "default"});
    let mut bytes = Vec::new();
    msgpack::encode(&json!(["t", {"m": meta, "t": []}]), &mut bytes);
    bytes
}

/// An import socket that has taken a frame: what it is told when it is closed.
async fn import(
    server: &Server,
    key: &str,
) -> Result<impl Future<Output = Result<String>> + use<>> {
    let url = format!(
        "ws://127.0.0.1:{}/api/v1/flow/default/import/triples?ack=1&token={key}",
        server.port()
    );
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await?;
    socket.send(Message::text(triple())).await?;
    let told = tokio::time::timeout(SOON, socket.next()).await?;
    let told = told.context("closed")??.into_text()?;
    ensure!(told.contains("confirmed"), "{told}");
    Ok(async move {
        while let Some(message) = socket.next().await {
            if let Message::Close(Some(close)) = message? {
                return Ok(close.reason.to_string());
            }
        }
        anyhow::bail!("closed without a word")
    })
}

async fn ends(bus: Bus) -> Result<()> {
    let model = ScriptedModel::start(vec![Rule::always(Reply::Silence)]).await?;
    let node = bus.broker().await?;
    let server = launch(&model, node.as_ref())
        .arg("--auth")
        .arg("iam")
        .ready()
        .await?;
    let admin = first_key(&server).await?;
    let user = json!({"operation": "create-user", "workspace": "default",
        "user": {"username": "bob", "roles": ["admin"]}});
    let user = iam(&server, &admin, user).await?["user"]["id"].clone();
    let (key, id) = key_of(&server, &admin, user.as_str().context("no user")?, "").await?;

    let agent = "flow/default/service/agent";
    let question = json!({"question": "q"}).to_string();
    let length = format!("Content-Length: {}\r\n", question.len());
    let detach = format!("{length}X-Detach: true\r\n");
    let gone = Request::begin(&server, "", &key, agent, &detach, question.as_bytes()).await?;
    ensure!(model.wait_calls(1, SOON).await, "nobody asks the model");
    drop(gone);
    let events = format!("{length}Accept: text/event-stream\r\n");
    let events = Request::begin(&server, "events", &key, agent, &events, question.as_bytes());
    let events = events.await?;
    ensure!(model.wait_calls(2, SOON).await, "nobody asks the model");
    let line = format!("{}\n", triple());
    let lines = "flow/default/import/triples?workspace=default";
    let lines = Request::unfinished(&server, "lines", &key, lines, line.as_bytes()).await?;
    let record = core();
    let core = "import-core?id=urn:core";
    let core = Request::unfinished(&server, "a core", &key, core, &record).await?;
    let import = import(&server, &key).await?;

    let revoke = json!({"operation": "revoke-api-key", "workspace": "default", "key_id": id});
    let _: Value = iam(&server, &admin, revoke).await?;
    let until = Instant::now() + BOUND;
    let socket = async {
        let told = timeout_at(until, import).await;
        let told = told.context("the import socket goes on")??;
        ensure!(told.contains(ENDED), "{told}");
        Ok(())
    };
    let hung_up = async {
        let closed = model.wait_closed(2, BOUND).await;
        ensure!(closed, "the model is still asked: {:?}", model.calls());
        Ok(())
    };
    tokio::try_join!(
        socket,
        hung_up,
        events.ends(until),
        lines.ends(until),
        core.ends(until)
    )?;
    Ok(())
}

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    #[tokio::test]
    async fn on_the_embedded_bus() -> Result<()> {
        ends(Bus::Embedded).await
    }

    #[tokio::test]
    async fn on_rabbitmq() -> Result<()> {
        ends(Bus::Rabbit).await
    }
}
