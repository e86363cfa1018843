//! The view of the configuration when some of it cannot be read for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;
use tg_mesh::{ConsumeError, Cx, Processor, RecordConsumer, RequestHandler, Responder};
use tg_schemas::msg::{ConfigPush, ConfigRequest, ConfigResponse, Triples};
use tg_schemas::processors::{ProcessorSpec, Spec, config_svc};
use tg_schemas::{Class, Error, ErrorCode, Topic};
use tg_testkit::bus::until;
use tg_testkit::config::Config;
use tg_testkit::fakes::RecordingConsumer;
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

/// A type of rows whose reading can be made to fail; read after the others.
const AILING: &str = "zz-ailing";

struct Ailing {
    config: Config,
    fails: AtomicBool,
    failed: AtomicUsize,
}

#[async_trait]
impl RequestHandler<ConfigRequest, ConfigResponse> for Ailing {
    async fn serve(
        &self,
        cx: Cx,
        question: ConfigRequest,
        out: Responder<ConfigResponse>,
    ) -> Result<(), Error> {
        if question.r#type == AILING && self.fails.load(Ordering::SeqCst) {
            self.failed.fetch_add(1, Ordering::SeqCst);
            return Err(Error::new(ErrorCode::Busy, "later"));
        }
        self.config.serve(cx, question, out).await
    }
}

/// One type was read and another was not: what changed is not forgotten over it, and the flow is attached.
async fn a_reading_that_fails_in_part_swallows_nothing(place: Place) {
    let host = tg_testkit::place::host(place.connect().await);
    let host = host.await;
    let config = Arc::new(Ailing {
        config: Config::new(),
        fails: AtomicBool::new(false),
        failed: AtomicUsize::new(0),
    });
    let serves = Processor::new(config_svc::PROCESSOR).serves(config_svc::CONFIG, config.clone());
    host.host(serves).await.unwrap();
    let reads = Processor::new(ProcessorSpec::unlisted("reader"))
        .reads(Spec::new("input"), RecordingConsumer::<Triples>::new())
        .watches(&[AILING]);
    host.host(reads).await.unwrap();
    until(async || host.config().version() > 0).await;

    config.fails.store(true, Ordering::SeqCst);
    let row = json!({"epoch": 1, "topics": {"input": "flow:tg:triples-store:default:default"}});
    config
        .config
        .put("processor:reader", "default", &row.to_string());
    config.config.put(AILING, "a", "1");
    let workspaces = vec!["default".to_owned()];
    let push = ConfigPush {
        version: host.config().version() + 2,
        changes: ["processor:reader", AILING]
            .map(|kind| (kind.to_owned(), workspaces.clone()))
            .into(),
        ..ConfigPush::default()
    };
    let topic = Topic::system(Class::Notify, "config");
    host.notify(&topic, &push).await.unwrap();
    until(async || config.failed.load(Ordering::SeqCst) > 1).await;
    config.fails.store(false, Ordering::SeqCst);
    let attached = || host.presence().attached("reader", "default", "default", 1);
    until(async || attached()).await;
}

/// Hears of a record what the configuration says of it at that moment.
struct Looker(tokio::sync::mpsc::UnboundedSender<Option<String>>);

#[async_trait]
impl RecordConsumer<Triples> for Looker {
    async fn consume(&self, cx: Cx, _: Triples) -> Result<(), ConsumeError> {
        let found = cx.config().get("default", AILING, "a");
        let _ = self.0.send(found.map(|text| text.to_string()));
        Ok(())
    }
}

/// Somebody else in the process already knows where a processor is attached; what its handlers look at is read later, and
/// no record comes before.
async fn nothing_is_consumed_before_all_that_is_watched_was_read(place: Place) {
    let host = tg_testkit::place::host(place.connect().await);
    let host = host.await;
    let config = Arc::new(Ailing {
        config: Config::new(),
        fails: AtomicBool::new(true),
        failed: AtomicUsize::new(0),
    });
    let to = "flow:tg:triples-store:default:default";
    let row = json!({"epoch": 1, "topics": {"input": to}});
    config
        .config
        .put("processor:reader", "default", &row.to_string());
    config.config.put(AILING, "a", "1");
    let serves = Processor::new(config_svc::PROCESSOR)
        .serves(config_svc::CONFIG, config.clone())
        .watches(&["processor:reader"]);
    host.host(serves).await.unwrap();
    let known = || host.config().get("default", "processor:reader", "default");
    until(async || known().is_some()).await;

    let (found, mut finds) = tokio::sync::mpsc::unbounded_channel();
    let reads = Processor::new(ProcessorSpec::unlisted("reader"))
        .reads(Spec::new("input"), Arc::new(Looker(found)))
        .watches(&[AILING]);
    host.host(reads).await.unwrap();
    until(async || config.failed.load(Ordering::SeqCst) > 1).await;
    let attached = || host.presence().attached("reader", "default", "default", 1);
    assert!(!attached());
    config.fails.store(false, Ordering::SeqCst);
    until(async || attached()).await;
    let to = Topic::parse(to).unwrap();
    host.notify(&to, &Triples::default()).await.unwrap();
    assert_eq!(finds.recv().await, Some(Some("1".to_owned())));
}

on_both_buses!(
    a_reading_that_fails_in_part_swallows_nothing,
    nothing_is_consumed_before_all_that_is_watched_was_read,
);
