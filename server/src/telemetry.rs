//! Exports the spans of this process: one task, which sends batches of them to a receiver of OTLP over HTTP, in JSON. A
//! receiver that is away costs spans, which are counted, and nothing else: who ends a span never waits for it.

use std::time::Duration;

use tg_mesh::telemetry::otlp::{Resource, request};
use tg_mesh::telemetry::{Finished, Sampling, Spans, Tracer, lost};
use tg_mesh::{Host, TaskKind, clock};
use tg_provider_http::{
    Backoff, HttpClient, HttpError, Limits, NoClient, Reach, Secret, without_credentials,
};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::settings::{Receiver, Telemetry};

/// Most spans of a request.
const BATCH: usize = 512;
/// How long a request waits for more spans after the first.
const MOMENT: Duration = Duration::from_secs(1);
/// How long one batch is tried; meanwhile others fill the queue, and what finds no room is dropped.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long what is left at the end of the process may take: less than its tasks are waited for.
const FLUSH: Duration = Duration::from_millis(1500);

const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    silence: Some(Duration::from_secs(10)),
    idle: 1,
    redirects: 0,
    answer: 64 << 10,
    reach: Reach::Anywhere,
};

const BACKOFF: Backoff = Backoff {
    attempts: 5,
    base: Duration::from_millis(500),
    cap: Duration::from_secs(15),
};

/// What exports spans.
pub(crate) struct Exporter {
    client: HttpClient,
    url: String,
    headers: Vec<(String, Secret)>,
    resource: Resource,
    spans: Spans,
    /// Whether the receiver took the last batch.
    takes: bool,
}

impl Exporter {
    /// Who starts spans, and what exports them: a tracer that is off and nothing, where the settings name no receiver. Blocks.
    ///
    /// # Errors
    /// No client can be made for the receiver.
    pub(crate) fn new(
        settings: &Telemetry,
        services: &str,
    ) -> Result<(Tracer, Option<Self>), NoClient> {
        // What is wrong with the settings was told when they were read.
        let Ok(Some(Receiver { url, headers })) = settings.receiver() else {
            return Ok((Tracer::default(), None));
        };
        let sampling = Sampling {
            share: settings.sample,
            to_providers: settings.to_providers,
        };
        let client = HttpClient::new(&url, LIMITS)?;
        let (tracer, spans) = Tracer::new(sampling, clock::nanos);
        let service = match services {
            "up" => "threadgraph".to_owned(),
            some => format!("threadgraph-{some}"),
        };
        let exporter = Self {
            client,
            url,
            headers,
            resource: Resource {
                service,
                version: env!("CARGO_PKG_VERSION"),
                instance: String::new(),
            },
            spans,
            takes: true,
        };
        Ok((tracer, Some(exporter)))
    }

    /// Exports until the process stops, and then what is left.
    pub(crate) fn start(mut self, host: &Host) {
        self.resource.instance = host.inbox().to_owned();
        tracing::info!(
            to = without_credentials(&self.url),
            "traces are exported over OTLP"
        );
        let stops = host.shutdown().clone();
        host.spawn(TaskKind::Closing, self.run(stops));
    }

    async fn run(mut self, stops: CancellationToken) {
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                () = self.spans.fill(&mut batch, BATCH, MOMENT) => {}
                () = stops.cancelled() => break,
            }
            if batch.is_empty() {
                return;
            }
            let body = request(&self.resource, &batch);
            let sent = tokio::select! {
                sent = self.patiently(&body) => sent,
                // It is tried once more below.
                () = stops.cancelled() => break,
            };
            self.settle(batch.len(), sent);
            batch.clear();
        }
        self.flush(batch).await;
    }

    /// Sends what is left, as long as that goes well.
    async fn flush(&mut self, mut batch: Vec<Finished>) {
        let end = Instant::now() + FLUSH;
        loop {
            if batch.is_empty() {
                batch = self.spans.here(BATCH);
            }
            if batch.is_empty() {
                return;
            }
            let body = request(&self.resource, &batch);
            let left = end.saturating_duration_since(Instant::now());
            let sent = timeout(left, self.post(&body)).await;
            let sent = sent.unwrap_or(Err(HttpError::Timeout));
            let goes_on = sent.is_ok();
            self.settle(batch.len(), sent);
            if !goes_on {
                lost(self.spans.waiting(), "unsent");
                return;
            }
            batch.clear();
        }
    }

    async fn patiently(&self, body: &str) -> Result<u64, HttpError> {
        let until = Instant::now() + EXPORT_TIMEOUT;
        let post = || self.post(body);
        BACKOFF.run(until, || 1.0, HttpError::again, post).await
    }

    /// Sends a batch once; how many of its spans the receiver did not want.
    async fn post(&self, body: &str) -> Result<u64, HttpError> {
        let mut post = self.client.post(&self.url);
        for (name, value) in &self.headers {
            post = post.header(name.as_str(), value.expose());
        }
        let post = post.header("content-type", "application/json");
        let answer = self.client.send(post.body(body.to_owned())).await?;
        // One that says nothing, or nothing that can be read, has taken all.
        let answer: serde_json::Value = answer.json().await.unwrap_or_default();
        let rejected = &answer["partialSuccess"]["rejectedSpans"];
        let text = rejected.as_str().and_then(|text| text.parse().ok());
        Ok(rejected.as_u64().or(text).unwrap_or(0))
    }

    /// Counts what became of a batch, and says it where that has changed.
    fn settle(&mut self, spans: usize, sent: Result<u64, HttpError>) {
        let takes = sent.is_ok();
        match &sent {
            Ok(rejected) => {
                let rejected = usize::try_from(*rejected).unwrap_or(spans).min(spans);
                lost(rejected, "refused");
                metrics::counter!("tg_spans_exported_total").increment((spans - rejected) as u64);
                if !self.takes {
                    tracing::info!("traces are exported again");
                }
            }
            Err(error) => {
                let why = match error {
                    HttpError::Refused(refusal) if !refusal.is_passing() => "refused",
                    _ => "unsent",
                };
                lost(spans, why);
                if self.takes {
                    let at = without_credentials(&self.url);
                    tracing::warn!(%error, at, "traces are not exported, and spans are lost until they are again");
                }
            }
        }
        self.takes = takes;
    }
}
