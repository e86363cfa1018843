//! How many messages processors work on at a time, where that is not what they were made for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tg_mesh::Processor;
use tg_schemas::processors;

/// A number for each processor that has one of its own, by its id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Concurrency(BTreeMap<&'static str, u16>);

impl Concurrency {
    /// The processor with its number, if it has one here.
    pub(crate) fn of(&self, processor: Processor) -> Processor {
        match self.0.get(processor.declared().id) {
            Some(most) => processor.concurrency(usize::from(*most)),
            None => processor,
        }
    }
}

/// Below this what a processor sets aside for what must not wait would not be there.
fn least(id: &str) -> u16 {
    match id {
        tg_iam::PROCESSOR => tg_iam::LEAST_CONCURRENCY,
        _ => 1,
    }
}

impl TryFrom<String> for Concurrency {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut all = BTreeMap::new();
        for pair in text.split(',').map(str::trim).filter(|one| !one.is_empty()) {
            let (id, most) = pair
                .split_once('=')
                .ok_or("must be PROCESSOR=NUMBER, more than one separated by commas")?;
            let known = processors::processor(id.trim()).filter(|one| one.hosted);
            let known =
                known.ok_or_else(|| format!("{}: there is no such processor here", id.trim()))?;
            let most = most.trim().parse().ok().filter(|most| *most > 0);
            let most =
                most.ok_or_else(|| format!("{}: must be a number from 1 to 65,535", known.id))?;
            let least = least(known.id);
            if most < least {
                return Err(format!("{}: must be at least {least}", known.id));
            }
            if all.insert(known.id, most).is_some() {
                return Err(format!("{}: occurs more than once", known.id));
            }
        }
        Ok(Self(all))
    }
}

impl From<Concurrency> for String {
    fn from(all: Concurrency) -> Self {
        let pairs = all.0.iter().map(|(id, most)| format!("{id}={most}"));
        pairs.collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_has_a_number_once_and_by_its_id() {
        let read = |text: &str| Concurrency::try_from(text.to_owned());
        assert_eq!(read(" "), Ok(Concurrency::default()));
        let both = read("graph-rag = 8, chunker=2,").unwrap();
        assert_eq!(String::from(both), "chunker=2,graph-rag=8");
        assert!(read("iam-svc=1024").is_ok());
        for (text, told) in [
            ("graph-rag", "must be PROCESSOR=NUMBER"),
            ("graph-rags=1", "graph-rags: there is no such processor"),
            ("graph-rag=0", "graph-rag: must be a number from 1"),
            ("iam-svc=1023", "iam-svc: must be at least 1024"),
            ("graph-rag=65536", "graph-rag: must be a number from 1"),
            (
                "graph-rag=1,graph-rag=2",
                "graph-rag: occurs more than once",
            ),
        ] {
            let fault = read(text).unwrap_err();
            assert!(fault.starts_with(told), "{text}: {fault}");
        }
    }
}
