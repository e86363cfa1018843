//! Prints how fast text becomes chunks: the cut alone, and the chunker over an embedded bus with a library that
//! only counts.
//!
//! `cargo run --release -p tg-ingest --example ingest_bench`

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tg_ingest::Options;
use tg_mesh::embedded::EmbeddedBus;
use tg_mesh::{Ask, ConsumeError, Cx, Processor, RecordConsumer, RequestHandler, Responder};
use tg_schemas::msg::{
    Chunk, LibrarianRequest, LibrarianResponse, Metadata, TextDocument, Triples,
};
use tg_schemas::processors;
use tg_schemas::{Class, Error, FlowId, Topic, WorkspaceId};
use tg_testkit::config::Config;

const BYTES: usize = 24 << 20;

struct Library(String);

#[async_trait]
impl RequestHandler<LibrarianRequest, LibrarianResponse> for Library {
    async fn serve(
        &self,
        _: Cx,
        ask: LibrarianRequest,
        mut out: Responder<LibrarianResponse>,
    ) -> Result<(), Error> {
        if ask.operation != "stream-document" {
            return out.send(LibrarianResponse::default()).await;
        }
        let pieces: Vec<&[u8]> = self.0.as_bytes().chunks(1 << 20).collect();
        for (at, piece) in pieces.iter().enumerate() {
            out.send(LibrarianResponse {
                content: STANDARD.encode(piece),
                is_final: at + 1 == pieces.len(),
                ..LibrarianResponse::default()
            })
            .await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Count {
    records: AtomicUsize,
    bytes: AtomicUsize,
}

#[async_trait]
impl RecordConsumer<Chunk> for Count {
    async fn consume(&self, _: Cx, record: Chunk) -> Result<(), ConsumeError> {
        self.bytes.fetch_add(record.chunk.len(), Ordering::Relaxed);
        self.records.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[async_trait]
impl RecordConsumer<Triples> for Count {
    async fn consume(&self, _: Cx, _: Triples) -> Result<(), ConsumeError> {
        self.records.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

fn text() -> String {
    let mut text = String::with_capacity(BYTES + 1000);
    let mut n: u32 = 1;
    while text.len() < BYTES {
        for _ in 0..60 {
            n = n.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            text.push_str(&format!("word{} ", n >> 20));
        }
        text.push_str("\n\n");
    }
    text
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let bus = Arc::new(EmbeddedBus::in_memory());
    let mesh = tg_testkit::place::host_of_runs(bus).await;
    let (workspace, flow) = (WorkspaceId::new("default")?, FlowId::new("default")?);
    let topic = |base: &str| Topic::flow(Class::Flow, base, &workspace, &flow);
    let [input, output, store] = ["text-document-load", "chunk-load", "triples-store"].map(topic);
    let row = |topics: String| format!(r#"{{"topics":{{{topics}}},"parameters":{{}},"epoch":1}}"#);
    let asks = r#""librarian-request":"request:tg:librarian:default","librarian-response":"response:tg:librarian:default""#;
    let config = Config::new();
    let chunker = format!(r#""input":"{input}","output":"{output}","triples":"{store}",{asks}"#);
    for (processor, topics) in [
        ("chunker", chunker),
        ("triples-write", format!(r#""input":"{store}""#)),
        ("kw-index", format!(r#""input":"{output}""#)),
    ] {
        config.put(&format!("processor:{processor}"), "default", &row(topics));
    }
    let text = text();
    let bytes = text.len();
    let (chunks, triples) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let mut hosted = vec![
        Processor::new(processors::config_svc::PROCESSOR)
            .serves(processors::config_svc::CONFIG, Arc::new(config)),
        Processor::new(processors::librarian::PROCESSOR)
            .serves(processors::librarian::LIBRARIAN, Arc::new(Library(text))),
        Processor::new(processors::triples_write::PROCESSOR)
            .reads(processors::triples_write::INPUT, triples.clone()),
        Processor::new(processors::kw_index::PROCESSOR)
            .reads(processors::kw_index::INPUT, chunks.clone()),
    ];
    hosted.extend(tg_ingest::processors(
        &mesh,
        Options::of_this_program("decode"),
    ));
    for processor in hosted {
        mesh.host(processor).await?;
    }
    let ids = ["chunker", "triples-write", "kw-index"];
    let attached = mesh.presence().until(Duration::from_secs(20), |view| {
        ids.iter()
            .all(|id| view.attached(id, "default", "default", 1))
    });
    if !attached.await {
        return Err("the flow does not attach".into());
    }
    let record = TextDocument {
        metadata: Some(Metadata {
            id: "urn:doc".to_owned(),
            root: "urn:doc".to_owned(),
            collection: "default".to_owned(),
        }),
        text: String::new(),
        document_id: "urn:doc".to_owned(),
        ..TextDocument::default()
    };
    let started = Instant::now();
    let ask = Ask {
        epoch: Some(1),
        ..Ask::default()
    };
    mesh.record(&input, &record, ask).await?;
    while chunks.bytes.load(Ordering::Relaxed) < bytes {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let took = started.elapsed();
    let rate = bytes as f64 / took.as_secs_f64() / (1 << 20) as f64;
    let (chunks, triples) = (&chunks.records, &triples.records);
    println!(
        "{} MiB, {} chunks, {} records of provenance: {took:?}, {rate:.1} MiB/s",
        bytes >> 20,
        chunks.load(Ordering::Relaxed),
        triples.load(Ordering::Relaxed)
    );
    Ok(())
}
