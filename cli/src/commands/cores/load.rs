//! `tg load-kg-core`, `tg unload-kg-core` and the same for document embeddings.

use clap::Args;
use serde_json::{Value, json};

use super::SERVICE;
use crate::args::{InCollection, InFlow, Options};
use crate::client::Result;
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg load-kg-core`.
#[derive(Debug, Args)]
pub struct LoadKgCore {
    #[command(flatten)]
    place: InCollection,
    /// Core
    #[arg(long, visible_alias = "identifier", value_name = "ID")]
    id: String,
}

impl Command for LoadKgCore {
    const NAME: &'static str = "load-kg-core";
    const ABOUT: &'static str = "Load a knowledge core into a collection, through a flow";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        load(session, "load-kg-core", &self.id, &self.place).await
    }
}

/// Arguments of `tg load-de-core`.
#[derive(Debug, Args)]
pub struct LoadDeCore {
    #[command(flatten)]
    place: InCollection,
    /// Core
    #[arg(long, visible_alias = "identifier", value_name = "ID")]
    id: String,
}

impl Command for LoadDeCore {
    const NAME: &'static str = "load-de-core";
    const ABOUT: &'static str = "Load document embeddings into a collection, through a flow";

    fn options(&self) -> Options {
        Options::from(&self.place)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        load(session, "load-de-core", &self.id, &self.place).await
    }
}

async fn load(
    session: &mut Session,
    operation: &str,
    id: &str,
    place: &InCollection,
) -> Result<()> {
    let request = json!({
        "operation": operation,
        "id": id,
        "flow": place.flow.flow_id,
        "collection": place.collection,
    });
    let reply = session.http()?.service(SERVICE, request).await?;
    told(session, "Loaded", &reply)
}

/// Arguments of `tg unload-kg-core`.
#[derive(Debug, Args)]
pub struct UnloadKgCore {
    #[command(flatten)]
    flow: InFlow,
    /// Core
    #[arg(long, visible_alias = "identifier", value_name = "ID")]
    id: String,
    /// Collection to take it out of [default: every one it was loaded into]
    #[arg(short = 'C', long, value_name = "ID")]
    collection: Option<String>,
}

impl Command for UnloadKgCore {
    const NAME: &'static str = "unload-kg-core";
    const ABOUT: &'static str = "Take out of collections what loading a core brought in";

    fn options(&self) -> Options {
        Options::from(&self.flow)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut request = json!({
            "operation": "unload-kg-core",
            "id": self.id,
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
