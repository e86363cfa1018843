//! Cores to and from files: `tg get-kg-core`, `tg put-kg-core`, `tg get-de-core`, `tg put-de-core`.
//!
//! The files are those of the official commands. What only this system knows of vectors (chunk, types,
//! attributes, model) goes in under keys that others pass over.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tg_core_file::record::{to_put, to_record};

use super::file::Records;
use super::kind::Kind;
use super::partial::Partial;
use super::{CoreId, SERVICE};
use crate::args::{Common, Options};
use crate::client::{Call, Error, Result, Socket};
use crate::registry::Command;
use crate::session::Session;

/// Records put side by side.
const WINDOW: usize = 10;
/// Bytes of them.
const BYTES: usize = 16 << 20;

/// Arguments of `tg get-kg-core` and `tg get-de-core`.
#[derive(Debug, Args)]
pub struct Get<K: Kind> {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    core: CoreId,
    /// File to write
    #[arg(short = 'o', long, value_name = "FILE")]
    output: PathBuf,
    #[arg(skip)]
    kind: PhantomData<K>,
}

impl<K: Kind> Command for Get<K> {
    const NAME: &'static str = K::GET.0;
    const ABOUT: &'static str = K::GET.1;

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let partial = Partial::of(&self.output);
        match self.save(session, &partial).await {
            Ok(counts) => {
                partial.complete()?;
                done(session, "Got", self.core.id(), &counts)
            }
            Err(error) => {
                partial.discard();
                Err(error)
            }
        }
    }
}

/// Arguments of `tg put-kg-core` and `tg put-de-core`.
#[derive(Debug, Args)]
pub struct Put<K: Kind> {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    core: CoreId,
    /// File to read; the core takes the name given here, whatever the file says
    #[arg(short = 'i', long, value_name = "FILE")]
    input: PathBuf,
    #[arg(skip)]
    kind: PhantomData<K>,
}

/// What went over, by kind of record.
type Counts = BTreeMap<&'static str, u64>;

impl<K: Kind> Get<K> {
    async fn save(&self, session: &Session, partial: &Partial) -> Result<Counts> {
        let mut socket = session.socket().await?;
        let call = Call::global(
            SERVICE,
            json!({"operation": Self::NAME, "id": self.core.id()}),
        );
        let mut replies = socket.start(&call).await?;
        let mut file = None;
        let mut counts = Counts::new();
        let progress = session.out.progress("records", None);
        while let Some(reply) = replies.next().await? {
            // Nothing is created for a core that does not exist.
            let file = match &mut file {
                Some(file) => file,
                None => file.insert(partial.create()?),
            };
            let Some(record) = reply.as_object().and_then(to_record) else {
                continue;
            };
            file.msgpack(&record)?;
            count(&mut counts, &record);
            progress.inc(1);
        }
        progress.finish_and_clear();
        file.ok_or_else(|| Error::Protocol("no reply".to_owned()))?
            .end()?;
        Ok(counts)
    }
}

impl<K: Kind> Command for Put<K> {
    const NAME: &'static str = K::PUT.0;
    const ABOUT: &'static str = K::PUT.1;

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut records = Records::open(&self.input)?;
        let mut socket = session.socket().await?;
        let progress = session.out.progress("records", None);
        let mut counts = Counts::new();
        let (mut window, mut bytes) = (Vec::new(), 0);
        while let Some((record, size)) = records.next()? {
            let number = record.get(0).cloned().unwrap_or(Value::Null);
            let body =
                to_put(record, self.core.id()).map_err(|fault| records.wrong(fault.message))?;
            if body.get("operation") != Some(&json!(Self::NAME)) {
                return Err(records.wrong(K::MISPLACED));
            }
            // A document follows its metadata, a child its parent; everything else is in no order.
            let in_order = body.keys().any(|key| key.starts_with("library"));
            if in_order || window.len() == WINDOW || bytes + size > BYTES {
                progress.inc(window.len() as u64);
                ask(&mut socket, &mut window).await?;
                bytes = 0;
            }
            count(&mut counts, &json!([number]));
            window.push(Call::global(SERVICE, Value::Object(body)));
            bytes += size;
            if in_order {
                progress.inc(1);
                ask(&mut socket, &mut window).await?;
                bytes = 0;
            }
        }
        ask(&mut socket, &mut window).await?;
        progress.finish_and_clear();
        done(session, "Put", self.core.id(), &counts)
    }
}

async fn ask(socket: &mut Socket, window: &mut Vec<Call>) -> Result<()> {
    for outcome in socket.ask_all(window).await? {
        outcome?;
    }
    window.clear();
    Ok(())
}

fn count(counts: &mut Counts, record: &Value) {
    let kind = match record.get(0).and_then(Value::as_str) {
        Some("t") => "triples",
        Some("ge") => "graph-embeddings",
        Some("de") => "document-embeddings",
        Some("lm") => "library-metadata",
        Some("lb") => "library-blob",
        _ => return,
    };
    *counts.entry(kind).or_default() += 1;
}

fn done(session: &mut Session, what: &str, id: &str, counts: &Counts) -> Result<()> {
    let shown = json!({"id": id, "records": counts});
    session.out.show(&shown, || sentence(what, counts))
}

fn sentence(what: &str, counts: &Counts) -> String {
    if counts.is_empty() {
        return format!("{what}: nothing.");
    }
    let named: Vec<String> = counts
        .iter()
        .map(|(kind, count)| format!("{count} {kind}"))
        .collect();
    format!("{what}: {} records.", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_by_kind() {
        let mut counts = Counts::new();
        for tag in ["t", "ge", "t", "lm", "zz"] {
            count(&mut counts, &json!([tag, {}]));
        }
        assert_eq!(
            sentence("Put", &counts),
            "Put: 1 graph-embeddings, 1 library-metadata, 2 triples records."
        );
        assert_eq!(sentence("Got", &Counts::new()), "Got: nothing.");
    }
}
