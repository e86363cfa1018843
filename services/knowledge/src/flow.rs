//! What a load needs of a flow: that it runs, and where its stores take records.

use tg_schemas::flow_record::FlowRecord;
use tg_schemas::{Class, Error, Topic};

use crate::engine::piece::Part;
use crate::error;

/// A flow that is loaded into.
#[derive(Debug, Clone)]
pub(crate) struct Flow(FlowRecord);

impl Flow {
    /// Reads the record of a flow that is to be loaded into.
    pub(crate) fn read(id: &str, row: Option<&str>) -> Result<Self, Error> {
        let row = row.ok_or_else(|| error::load(format!("flow: there is no flow '{id}'")))?;
        let flow = FlowRecord::read(row)
            .ok_or_else(|| error::load(format!("flow: the record of '{id}' cannot be read")))?;
        if !flow.runs() {
            return Err(error::load(format!("flow: '{id}' does not run now")));
        }
        Ok(Self(flow))
    }

    /// Number of its start; none in records that others wrote.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.0.start()
    }

    /// Where records of a kind go.
    pub(crate) fn store(&self, part: Part) -> Result<Topic, Error> {
        let name = match part {
            Part::Triples => "triples-store",
            Part::Entities => "graph-embeddings-store",
            Part::Chunks => "document-embeddings-store",
        };
        let topic = self.0.topic(name, Class::Flow);
        let topic = topic.ok_or_else(|| error::load(format!("flow: it has no '{name}'")))?;
        Topic::parse(topic)
    }
}

/// The processor whose word counts: it keeps what a record of this kind says.
pub(crate) fn store_of(part: Part) -> &'static str {
    match part {
        Part::Triples => "triples-write",
        Part::Entities => "graph-embeddings-write",
        Part::Chunks => "doc-embeddings-write",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_says_where_its_stores_are() {
        let row = r#"{"epoch":7,"interfaces":{"triples-store":{"flow":"flow:tg:triples-store:w:f"},
                      "graph-embeddings-store":"flow:tg:ge:w:f"}}"#;
        let flow = Flow::read("f", Some(row)).unwrap();
        assert_eq!(flow.epoch(), Some(7));
        let topic = |part| flow.store(part).map(|topic| topic.to_string());
        assert_eq!(topic(Part::Triples).unwrap(), "flow:tg:triples-store:w:f");
        assert_eq!(topic(Part::Entities).unwrap(), "flow:tg:ge:w:f");
        let missing = topic(Part::Chunks).unwrap_err();
        assert_eq!(missing.kind, "load-error");
        assert!(missing.message.contains("document-embeddings-store"));
    }

    #[test]
    fn what_does_not_run_is_not_loaded_into() {
        for (row, why) in [
            (None, "there is no flow 'f'"),
            (Some(r#"{"status":"stopping"}"#), "does not run now"),
            (Some("["), "cannot be read"),
        ] {
            let error = Flow::read("f", row).unwrap_err();
            assert_eq!(error.kind, "load-error");
            assert!(error.message.contains(why), "{error}");
        }
    }
}
