//! Which processors a process leaves to others on the same broker.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tg_mesh::Processor;
use tg_schemas::processors::{self, ProcessorScope};

/// Ids of processors that this process does not host although their service is here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LeftOut(BTreeSet<&'static str>);

impl LeftOut {
    /// Whether nothing is left to others.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the processor is left to others.
    pub(crate) fn has(&self, processor: &Processor) -> bool {
        self.0.contains(processor.declared().id)
    }
}

impl TryFrom<String> for LeftOut {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let mut all = BTreeSet::new();
        for id in text.split(',').map(str::trim).filter(|id| !id.is_empty()) {
            let known = processors::processor(id)
                .filter(|known| known.hosted && known.scope == ProcessorScope::Flow);
            let known =
                known.ok_or_else(|| format!("{id}: there is no such processor of flows here"))?;
            all.insert(known.id);
        }
        Ok(Self(all))
    }
}

impl From<LeftOut> for String {
    fn from(all: LeftOut) -> Self {
        all.0.into_iter().collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_processors_of_flows_are_left_to_others() {
        let read = |text: &str| LeftOut::try_from(text.to_owned());
        assert_eq!(read(" "), Ok(LeftOut::default()));
        let both = read("graph-rag, chunker,").unwrap();
        assert_eq!(String::from(both), "chunker,graph-rag");
        for text in ["graph-rags", "config-svc"] {
            let fault = read(text).unwrap_err();
            assert_eq!(
                fault,
                format!("{text}: there is no such processor of flows here")
            );
        }
    }
}
