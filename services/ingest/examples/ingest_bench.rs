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
use tg_mesh::{Ask, ConsumeError, Cx, Processor, RecordConsumer};
use tg_schemas::msg::{Chunk, Metadata, TextDocument, Triples};
use tg_schemas::processors;
use tg_schemas::{Class, FlowId, Topic, WorkspaceId};
use tg_testkit::bench::{ROUNDS, Rounds, headline};
use tg_testkit::config::Config;
use tg_testkit::fakes::Library;

const BYTES: usize = 24 << 20;

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
    println!("{}", headline(1));
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
    let library = Arc::new(Library::default());
    let document = |round: usize| format!("urn:doc:{round}");
    for round in 0..ROUNDS {
        library.put(&document(round), "text/plain", STANDARD.encode(&text));
    }
    let (chunks, triples) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let mut hosted = vec![
        Processor::new(processors::config_svc::PROCESSOR)
            .serves(processors::config_svc::CONFIG, Arc::new(config)),
        Processor::new(processors::librarian::PROCESSOR)
            .serves(processors::librarian::LIBRARIAN, library),
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
    let mut rounds = Rounds::default();
    for round in 0..ROUNDS {
        let id = document(round);
        let record = TextDocument {
            metadata: Some(Metadata {
                id: id.clone(),
                root: id.clone(),
                collection: "default".to_owned(),
            }),
            text: String::new(),
            document_id: id,
            ..TextDocument::default()
        };
        let started = Instant::now();
        let ask = Ask {
            epoch: Some(1),
            ..Ask::default()
        };
        mesh.record(&input, &record, ask).await?;
        while chunks.bytes.load(Ordering::Relaxed) < bytes * (round + 1) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let mib = bytes as f64 / (1 << 20) as f64;
        rounds.add(
            "text to chunks",
            "MiB/s",
            mib / started.elapsed().as_secs_f64(),
        );
    }
    println!(
        "{ROUNDS} documents of {} MiB, {} chunks, {} records of provenance",
        bytes >> 20,
        chunks.records.load(Ordering::Relaxed),
        triples.records.load(Ordering::Relaxed)
    );
    rounds.print();
    Ok(())
}
