//! What the library reads in the record of a flow.

use std::ops::{Deref, DerefMut};

use tg_schemas::Class;
use tg_schemas::flow_record::FlowRecord;

/// Interface that plain text enters by.
const TEXT: &str = "text-load";
/// Interface that other documents enter by.
const DOCUMENT: &str = "document-load";
/// Interface that triples enter by.
const TRIPLES: &str = "triples-store";

/// A flow that documents enter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flow(FlowRecord);

impl Deref for Flow {
    type Target = FlowRecord;

    fn deref(&self) -> &FlowRecord {
        &self.0
    }
}

impl DerefMut for Flow {
    fn deref_mut(&mut self) -> &mut FlowRecord {
        &mut self.0
    }
}

impl Flow {
    /// Reads a record; `None` if it is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        FlowRecord::read(text).map(Self)
    }

    /// Whether a document of this kind enters as text.
    pub(crate) fn enters_as_text(kind: &str) -> bool {
        kind == "text/plain"
    }

    /// Topic that a document of this kind enters by.
    pub(crate) fn load(&self, kind: &str) -> Option<&str> {
        let name = match Self::enters_as_text(kind) {
            true => TEXT,
            false => DOCUMENT,
        };
        self.topic(name, Class::Flow)
    }

    /// Topic that triples enter by.
    pub(crate) fn triples(&self) -> Option<&str> {
        self.topic(TRIPLES, Class::Flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_enters_by_its_kind() {
        let flow = Flow::read(
            r#"{"interfaces":{"text-load":{"flow":"flow:tg:t:w:f"},"document-load":"flow:tg:d:w:f"}}"#,
        )
        .unwrap();
        assert_eq!(flow.load("text/plain"), Some("flow:tg:t:w:f"));
        assert_eq!(flow.load("application/pdf"), Some("flow:tg:d:w:f"));
        assert_eq!(flow.triples(), None);
    }
}
