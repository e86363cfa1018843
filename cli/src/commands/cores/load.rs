//! `tg load-kg-core`, `tg unload-kg-core` and the same for document embeddings.

use std::marker::PhantomData;

use clap::Args;
use serde_json::{Value, json};

use super::kind::Kind;
use super::{CoreId, SERVICE};
use crate::args::{InCollection, InFlow, Options};
use crate::client::Result;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg load-kg-core` and `tg load-de-core`.
#[derive(Debug, Args)]
pub struct Load<K: Kind> {
    #[command(flatten)]
    place: InCollection,
    #[command(flatten)]
    core: CoreId,
    #[arg(skip)]
    kind: PhantomData<K>,
}

impl<K: Kind> Command for Load<K> {
    const NAME: &'static str = K::LOAD.0;
    const ABOUT: &'static str = K::LOAD.1;

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let request = json!({
            "operation": Self::NAME,
            "id": self.core.id(),
            "flow": self.place.flow.flow_id,
            "collection": self.place.collection,
        });
        let reply = session.http()?.service(SERVICE, request).await?;
        told(session, "Loaded", &reply)
    }
}

/// Arguments of `tg unload-kg-core` and `tg unload-de-core`.
#[derive(Debug, Args)]
pub struct Unload<K: Kind> {
    #[command(flatten)]
    flow: InFlow,
    #[command(flatten)]
    core: CoreId,
    /// Collection to take it out of [default: every one it was loaded into]
    #[arg(short = 'C', long, value_name = "ID")]
    collection: Option<String>,
    #[arg(skip)]
    kind: PhantomData<K>,
}

impl<K: Kind> Command for Unload<K> {
    const NAME: &'static str = K::UNLOAD.0;
    const ABOUT: &'static str = K::UNLOAD.1;

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut request = json!({
            "operation": Self::NAME,
            "id": self.core.id(),
            "flow": self.flow.flow_id,
        });
        if let Some(collection) = &self.collection {
            request["collection"] = json!(collection);
        }
        let reply = session.http()?.service(SERVICE, request).await?;
        told(session, "Unloaded", &reply)
    }
}

/// Says what was done, if the gateway does; others say nothing.
fn told(session: &mut Session, what: &str, reply: &Value) -> Result<()> {
    let counts = reply.get("counts").cloned().unwrap_or_else(|| json!({}));
    session.out.show(&counts, || sentence(what, &counts))
}

fn sentence(what: &str, counts: &Value) -> String {
    let Some(counts) = counts.as_object().filter(|counts| !counts.is_empty()) else {
        return String::new();
    };
    let named: Vec<String> = counts
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    format!("{what}: {}", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_where_there_are_any() {
        let counts = json!({"records": 2, "triples": 90});
        assert_eq!(sentence("Loaded", &counts), "Loaded: 2 records, 90 triples");
        assert_eq!(sentence("Loaded", &json!({})), "");
    }
}
