//! The schemas of everything that waits in a queue or becomes a dead letter. Such bodies outlive a release: their writers'
//! schemas are kept in the configuration, so that any later release can read them.

use crate::codec;
use crate::msg::*;

/// Reserved workspace of the configuration that keeps the schemas of records, of every release that ran.
pub const WORKSPACE: &str = "__schemas__";
/// Type of its rows; the key is the schema's fingerprint, the value its JSON text.
pub const TYPE: &str = "avro-schema";

/// The schema of a record as this release writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSchema {
    /// Name of the message.
    pub name: &'static str,
    /// 16 hex digits.
    pub fingerprint: String,
    /// JSON text.
    pub text: &'static str,
}

/// The schemas of this release's records.
pub fn schemas() -> Vec<RecordSchema> {
    macro_rules! all {
        ($($name:ident)*) => {{
            $(const { assert!(<$name as crate::Message>::RECORD) };)*
            vec![$(RecordSchema {
                name: <$name as crate::Message>::NAME,
                fingerprint: codec::fingerprint::<$name>(),
                text: <$name as crate::Message>::AVRO,
            }),*]
        }};
    }
    all!(AgentRun Chunk Document DocumentEmbeddings EntityContexts ExtractedObject GraphEmbeddings LibraryTexts
        DeadLetter Retract RowEmbeddings RunTally TextDocument Triples Usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processors::{PROCESSORS, Role};

    #[test]
    fn whatever_a_hosted_processor_reads_has_its_schema_kept() {
        let kept = schemas();
        for processor in PROCESSORS.iter().filter(|processor| processor.hosted) {
            for spec in processor
                .specs
                .iter()
                .filter(|spec| spec.role == Role::Reads)
            {
                let known = kept.iter().any(|schema| schema.name == spec.message);
                assert!(known, "{} of {}", spec.message, processor.id);
            }
        }
        for schema in kept {
            assert_eq!(codec::register(schema.text).unwrap(), schema.fingerprint);
            assert!(schema.text.len() < crate::limits::CONFIG_VALUE);
        }
    }
}
