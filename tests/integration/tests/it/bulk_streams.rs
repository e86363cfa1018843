//! Answers that go on for long, as bytes on a connection: one way to open each endpoint that streams, for tests of who
//! may go on reading, and how slowly.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::process::{Server, client};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::edge::{connected_from, text_frame, upgraded};

/// The document and the core that are larger than all buffers on their way.
pub const BIG: &str = "urn:big";
const CHUNK: usize = 4 << 20;
const SOON: Duration = Duration::from_secs(60);
/// Bytes of an answer that has begun.
const BEGUN: usize = 4 << 10;
/// An answer's last bytes: words at its end are looked for there.
const TAIL: usize = 1 << 10;

/// An answer without an end: 27 million rows.
pub fn endless(workspace: &str) -> Value {
    let values = |name: &str| {
        let rows: String = (0..300).map(|n| format!("{n} ")).collect();
        format!("VALUES ?{name} {{ {rows} }}")
    };
    let (a, b, c) = (values("a"), values("b"), values("c"));
    json!({"workspace": workspace, "limit": 0, "batch-size": 1_000, "streaming": true,
        "query": format!("SELECT * {{ {a} {b} {c} }}")})
}

/// Somebody who reads; an empty key is nobody's.
pub struct Reader<'a> {
    pub server: &'a Server,
    pub key: &'a str,
    pub workspace: &'a str,
}

impl Reader<'_> {
    async fn send(
        &self,
        what: &'static str,
        line: String,
        more: &str,
        body: &str,
    ) -> Result<Stream> {
        let mut tcp = connected_from(1, self.server).await?;
        let (port, length) = (self.server.port(), body.len());
        let key = match self.key {
            "" => String::new(),
            key => format!("Authorization: Bearer {key}\r\n"),
        };
        let head = format!("{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{key}{more}");
        let rest = format!("Content-Length: {length}\r\nX-Timeout: 600\r\n\r\n{body}");
        tcp.write_all(format!("{head}{rest}").as_bytes()).await?;
        Ok(Stream::new(what, tcp))
    }

    async fn get(&self, what: &'static str, path: &str) -> Result<Stream> {
        let line = format!("GET /api/v1/{path}&workspace={}", self.workspace);
        let mut stream = self.send(what, line, "", "").await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let byte = tokio::time::timeout(SOON, stream.tcp.read_u8()).await;
            head.push(byte.with_context(|| format!("{what}: does not begin"))??);
        }
        let told = String::from_utf8_lossy(&head);
        ensure!(told.starts_with("HTTP/1.1 200"), "{what}: {told}");
        Ok(stream)
    }

    async fn events(&self, what: &'static str, service: &str, ask: &Value) -> Result<Stream> {
        let line = format!("POST /api/v1/flow/default/service/{service}");
        let kind = "Accept: text/event-stream\r\nContent-Type: application/json\r\n";
        self.send(what, line, kind, &ask.to_string()).await
    }

    /// A WebSocket, the key in its address.
    async fn socket(&self, what: &'static str, path: &str) -> Result<Stream> {
        let key = match self.key {
            "" => String::new(),
            key => format!("&token={key}"),
        };
        let workspace = self.workspace;
        let path = format!("api/v1/{path}workspace={workspace}{key}");
        let tcp = connected_from(1, self.server).await?;
        let tcp = upgraded(tcp, self.server, &path).await?;
        Ok(Stream::new(what, tcp))
    }

    async fn asks(&self, what: &'static str, envelope: Value) -> Result<Stream> {
        let mut stream = self.socket(what, "socket?").await?;
        let frame = text_frame(envelope.to_string().as_bytes());
        stream.tcp.write_all(&frame).await?;
        Ok(stream)
    }

    fn envelope(&self, service: &str, request: Value) -> Value {
        json!({"id": "1", "service": service, "flow": "default", "workspace": self.workspace,
            "request": request})
    }

    /// An agent that is silent.
    pub async fn agent_events(&self) -> Result<Stream> {
        let ask = json!({"workspace": self.workspace, "question": "q", "streaming": true});
        self.events("an agent's events", "agent", &ask).await
    }

    /// The same on a socket.
    pub async fn agent_socket(&self) -> Result<Stream> {
        let ask = self.envelope("agent", json!({"question": "q", "streaming": true}));
        self.asks("an agent on a socket", ask).await
    }

    /// A chat in the words of OpenAI, asked this, once this was said of its answer.
    pub async fn chat_events(&self, asked: &str, said: &str) -> Result<Stream> {
        let ask = json!({"model": "scripted", "stream": true,
            "messages": [{"role": "user", "content": asked}]});
        let ask = ask.to_string();
        let kind = "Content-Type: application/json";
        let more = format!("SPASS-Tenant: {}\r\n{kind}\r\n", self.workspace);
        let line = "POST /v1/chat/completions".to_owned();
        let stream = self.send("a chat's events", line, &more, &ask);
        stream.await?.heard(said).await
    }

    /// A run that is joined, once this was said of it; `all`: it may be anybody's.
    pub async fn run_events(&self, run: &str, all: bool, said: &str) -> Result<Stream> {
        let workspace = self.workspace;
        let line = format!("GET /api/v1/runs/{run}?all={all}&workspace={workspace}");
        let kind = "Accept: text/event-stream\r\n";
        let stream = self.send("a joined run's events", line, kind, "");
        stream.await?.heard(said).await
    }

    /// The same on a socket.
    pub async fn run_socket(&self, run: &str, all: bool, said: &str) -> Result<Stream> {
        let ask = json!({"id": "1", "workspace": self.workspace,
            "resume": {"run": run, "all": all}});
        let stream = self.asks("a joined run on a socket", ask);
        stream.await?.heard(said).await
    }

    /// An endless query.
    pub async fn query_events(&self) -> Result<Stream> {
        let ask = endless(self.workspace);
        let stream = self.events("a query's events", "sparql", &ask).await?;
        stream.begun().await
    }

    /// The same on a socket.
    pub async fn query_socket(&self) -> Result<Stream> {
        let ask = self.envelope("sparql", endless(self.workspace));
        self.asks("a query on a socket", ask).await?.begun().await
    }

    /// What passes, on a socket.
    pub async fn live_socket(&self) -> Result<Stream> {
        let path = "flow/default/export/triples?";
        self.socket("an export by socket", path).await
    }

    /// What passes, as lines.
    pub async fn live_lines(&self) -> Result<Stream> {
        let path = "flow/default/export/triples?collection=default";
        self.get("an export by lines", path).await
    }

    /// What is stored, on a socket.
    pub async fn stored_socket(&self) -> Result<Stream> {
        let path = "flow/default/export/triples?stored=1&";
        let stream = self.socket("stored triples by socket", path).await?;
        stream.begun().await
    }

    /// What is stored, as lines.
    pub async fn stored_lines(&self) -> Result<Stream> {
        let path = "flow/default/export/triples?stored=1";
        self.get("stored triples by lines", path)
            .await?
            .begun()
            .await
    }

    /// The large document.
    pub async fn document(&self) -> Result<Stream> {
        let path = format!("document-stream?document-id={BIG}");
        self.get("a document", &path).await?.begun().await
    }

    /// The large core, as a file.
    pub async fn core(&self) -> Result<Stream> {
        let path = format!("export-core?id={BIG}");
        self.get("a core", &path).await?.begun().await
    }

    /// The same on a socket.
    pub async fn core_socket(&self) -> Result<Stream> {
        let ask = json!({"operation": "get-kg-core", "id": BIG, "blob-parts": true,
            "streaming": true});
        let mut ask = self.envelope("knowledge", ask);
        ask.as_object_mut().context("an object")?.remove("flow");
        self.asks("a core on a socket", ask).await?.begun().await
    }

    /// The document and the core, so many bytes of it.
    pub async fn keep_big(&self, chunks: usize) -> Result<()> {
        let library = |ask: Value| self.done("librarian", ask);
        let begin = json!({"operation": "begin-upload", "total-size": CHUNK * chunks,
            "chunk-size": CHUNK,
            "document-metadata": {"id": BIG, "kind": "text/plain", "title": "t"}});
        let begun = library(begin).await?;
        let upload = begun["upload-id"].as_str().context("no upload")?;
        let content = STANDARD.encode(vec![b'x'; CHUNK]);
        for at in 0..chunks {
            let chunk = json!({"operation": "upload-chunk", "upload-id": upload,
                "chunk-index": at, "content": content});
            library(chunk).await?;
        }
        library(json!({"operation": "complete-upload", "upload-id": upload})).await?;
        let iri = |text: &str| json!({"t": "i", "i": text});
        let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": iri("urn:c")});
        let triples =
            json!({"metadata": {"id": BIG, "collection": "default"}, "triples": [triple]});
        let core = json!({"operation": "put-kg-core", "triples": triples});
        self.done("knowledge", core).await.map(|_| ())
    }

    /// Triples that are so many megabytes, eight of them in a part of an answer.
    pub async fn keep_triples(&self, megabytes: usize) -> Result<()> {
        let iri = |text: &str| json!({"t": "i", "i": text});
        let literal = json!({"t": "l", "v": "x".repeat(8 << 10)});
        let mut lines = String::new();
        for line in 0..megabytes {
            let triple = |n: usize| {
                let subject = format!("urn:large:{line}:{n}");
                json!({"s": iri(&subject), "p": iri("urn:large"), "o": literal})
            };
            let triples: Vec<Value> = (0..128).map(triple).collect();
            let metadata = json!({"id": "x", "collection": "default"});
            lines += &format!("{}\n", json!({"metadata": metadata, "triples": triples}));
        }
        let (url, workspace) = (self.server.url(), self.workspace);
        let path = format!("api/v1/flow/default/import/triples?workspace={workspace}");
        let sent = client()?.post(format!("{url}{path}")).body(lines).send();
        let told: Value = sent.await?.json().await?;
        ensure!(told.get("error").is_none(), "{told}");
        Ok(())
    }

    /// Asks for what must be done.
    pub async fn done(&self, service: &str, mut ask: Value) -> Result<Value> {
        ask["workspace"] = json!(self.workspace);
        let request = client()?.post(format!("{}api/v1/{service}", self.server.url()));
        let request = match self.key {
            "" => request,
            key => request.bearer_auth(key),
        };
        let operation = &ask["operation"];
        let request = request.header("Content-Type", "application/json");
        // Megabytes are written quicker than by `json`, whose code is not optimised here.
        let text = request.body(ask.to_string()).send().await?.text().await?;
        let told: Value =
            serde_json::from_str(&text).with_context(|| format!("{operation}: {text}"))?;
        ensure!(told.get("error").is_none(), "{operation}: {told}");
        Ok(told)
    }
}

/// An answer under way. What is not read stays in the buffers on its way, and then where it comes from.
pub struct Stream {
    pub what: &'static str,
    pub tcp: TcpStream,
    /// Bytes that were read.
    pub taken: usize,
    tail: Vec<u8>,
}

/// How an answer ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// With its last part, or a goodbye.
    Orderly,
    /// In the middle.
    Cut,
}

impl Stream {
    fn new(what: &'static str, tcp: TcpStream) -> Self {
        Self {
            what,
            tcp,
            taken: 0,
            tail: Vec::new(),
        }
    }

    /// Reads what is there; nothing more when it has ended.
    pub async fn read(&mut self) -> usize {
        let mut piece = vec![0; 64 << 10];
        // A connection that is reset has ended as well.
        let read = self.tcp.read(&mut piece).await.unwrap_or(0);
        let last = &piece[read.saturating_sub(TAIL)..read];
        self.tail.extend_from_slice(last);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
        self.taken += read;
        read
    }

    /// Something of it has come.
    async fn begun(mut self) -> Result<Self> {
        while self.taken < BEGUN {
            self.soon().await?;
        }
        Ok(self)
    }

    /// This of it has come.
    async fn heard(mut self, text: &str) -> Result<Self> {
        while !self.says(&[text]) {
            self.soon().await?;
        }
        Ok(self)
    }

    /// Reads more of what has to come.
    async fn soon(&mut self) -> Result<()> {
        let read = tokio::time::timeout(SOON, self.read()).await;
        let read = read.with_context(|| format!("{}: does not begin", self.what))?;
        ensure!(read > 0, "{}: ends at once: {}", self.what, self.shown());
        Ok(())
    }

    /// Whether it said something of this lately.
    pub fn says(&self, texts: &[&str]) -> bool {
        let tail = self.shown();
        texts.iter().any(|text| tail.contains(text))
    }

    /// How it ended, if it was read to its end.
    pub fn end(&self) -> End {
        match self.tail.ends_with(b"0\r\n\r\n") {
            true => End::Orderly,
            false => End::Cut,
        }
    }

    /// The last that was read.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(&self.tail).into_owned()
    }
}
