//! `tg dump-msgpack`: what is in a core file, as JSON lines or summed up. Asks nobody.

use std::collections::BTreeMap;

use clap::Args;
use serde_json::{Value, json};

use super::file::Records;
use crate::args::{Options, subject};
use crate::client::Result;
use crate::layout::record;
use crate::registry::Command;
use crate::session::Session;

subject!(
    file
    /// What is read.
    CoreFile,
    "Core file",
    short = 'i',
    long = "input-file",
    visible_alias = "input"
);

/// Arguments of `tg dump-msgpack`.
#[derive(Debug, Args)]
pub struct DumpMsgpack {
    #[command(flatten)]
    input: CoreFile,
    /// Print the records, one JSON document a line [default]
    #[arg(short = 'r', long, conflicts_with = "summary")]
    records: bool,
    /// Print how many records, triples and vectors there are
    #[arg(short = 's', long)]
    summary: bool,
    /// Print JSON instead of text
    #[arg(long)]
    json: bool,
}

impl Command for DumpMsgpack {
    const NAME: &'static str = "dump-msgpack";
    const ABOUT: &'static str = "Print what is in a core file";

    fn options(&self) -> Options {
        Options {
            json: self.json,
            ..Options::local()
        }
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let mut records = Records::open(self.input.path())?;
        if !self.summary {
            while let Some((record, _)) = records.next()? {
                session.out.json_line(&record)?;
            }
            return Ok(());
        }
        let mut counts = Counts::new();
        while let Some((record, _)) = records.next()? {
            sum(&mut counts, &record);
        }
        session.out.lay(&json!(counts), |width| {
            let rows: Vec<_> = counts
                .iter()
                .map(|(name, count)| (*name, count.to_string()))
                .collect();
            record(&rows, width)
        })
    }
}

type Counts = BTreeMap<&'static str, usize>;

fn sum(counts: &mut Counts, record: &Value) {
    let items = |key: &str| record[1][key].as_array().map_or(0, Vec::len);
    let (name, count) = match record[0].as_str() {
        Some("t") => ("triples", items("t")),
        Some("ge") => ("entities", items("e")),
        Some("de") => ("chunks", items("c")),
        Some("lm") => ("library-metadata", 1),
        Some("lb") => ("library-blobs", 1),
        _ => ("unknown", 1),
    };
    for (name, more) in [("records", 1), (name, count)] {
        *counts.entry(name).or_default() += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_summed_up_by_kind() {
        let mut counts = Counts::new();
        for record in [
            json!(["t", {"t": [{}, {}]}]),
            json!(["ge", {"e": [{}]}]),
            json!(["lb", {"i": "d"}]),
            json!(3),
        ] {
            sum(&mut counts, &record);
        }
        assert_eq!(counts["records"], 4);
        assert_eq!((counts["triples"], counts["entities"]), (2, 1));
        assert_eq!(counts["unknown"], 1);
    }
}
