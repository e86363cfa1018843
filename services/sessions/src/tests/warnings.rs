//! What the service warns of, in all tests of this process.

use std::sync::OnceLock;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static WARNINGS: OnceLock<Mutex<Vec<String>>> = OnceLock::new();

/// The fields of a warning.
#[derive(Default)]
struct Fields(Vec<String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push(format!("{field}={value:?}"));
    }
}

struct Warnings;

impl Subscriber for Warnings {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        *about.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if let Some(all) = WARNINGS.get() {
            all.lock().push(fields.0.join(" "));
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Keeps what is warned of from now on.
pub(super) fn keep() {
    WARNINGS.get_or_init(|| {
        // Nobody else in this process sets one.
        tracing::subscriber::set_global_default(Warnings).expect("the first");
        Mutex::default()
    });
}

/// Whether one warning has all of these.
pub(super) fn have(parts: &[&str]) -> bool {
    let all = WARNINGS.get().map(|all| all.lock().clone());
    let has = |warning: &String| parts.iter().all(|part| warning.contains(part));
    all.is_some_and(|all| all.iter().any(has))
}
