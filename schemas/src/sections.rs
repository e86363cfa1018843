//! One body with messages of different types, each for another reader: what belongs together is durable together, with
//! one confirmation. The header `sections` names them in their order, `<type>=<length in bytes>`, by commas.
//!
//! Only what answers leave behind is written so (`crates/clients/src/traces.rs`): triples in it are of traces.

use std::any::Any;
use std::sync::Arc;

use bytes::Bytes;

use crate::Message;
use crate::codec::{self, CodecError};

/// What most are about as long as, in bytes: the run, its texts and the triples of a step.
const USUAL: usize = 8 << 10;

/// A message as its writer has it, for readers in the same process.
pub type Shared = Arc<dyn Any + Send + Sync>;

/// Writes a body of several messages, in Avro.
#[derive(Debug, Default)]
pub struct Sections {
    header: String,
    body: Vec<u8>,
    count: usize,
    shared: Vec<Shared>,
}

impl Sections {
    /// Adds a message; one of each type.
    ///
    /// # Errors
    /// [`CodecError`] where it cannot be encoded. Nothing can be made of them all then.
    pub fn add<M: Message>(&mut self, message: &M) -> Result<(), CodecError> {
        if self.count > 0 {
            self.header.push(',');
        } else {
            self.body.reserve(USUAL);
        }
        let before = self.body.len();
        codec::append(message, &mut self.body)?;
        let length = self.body.len() - before;
        self.header.push_str(M::NAME);
        self.header.push('=');
        self.header.push_str(&length.to_string());
        self.count += 1;
        Ok(())
    }

    /// As [`Self::add`], and keeps the message itself for who reads it in this process.
    ///
    /// # Errors
    /// As for [`Self::add`].
    pub fn share<M: Message>(&mut self, message: &Arc<M>) -> Result<(), CodecError> {
        self.add(&**message)?;
        self.shared.push(message.clone());
        Ok(())
    }

    /// The messages that were shared.
    pub fn take_shared(&mut self) -> Vec<Shared> {
        std::mem::take(&mut self.shared)
    }

    /// How many messages it has.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The header, and the body in bytes.
    pub fn finish(self) -> (String, Bytes) {
        (self.header, self.body.into())
    }
}

/// The bytes of a type's message in a body; `None` if the body has none of it, or is not what its header says.
pub fn of<'a, M: Message>(header: &str, body: &'a [u8]) -> Option<&'a [u8]> {
    named(M::NAME, header, body)
}

fn named<'a>(wanted: &str, header: &str, body: &'a [u8]) -> Option<&'a [u8]> {
    let mut from = 0_usize;
    for section in header.split(',') {
        let (name, length) = section.split_once('=')?;
        let to = from.checked_add(length.parse().ok()?)?;
        if name == wanted {
            return body.get(from..to);
        }
        from = to;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::ContentType;
    use crate::msg::{AgentRun, LibraryTexts, Triples};

    #[test]
    fn each_reader_finds_its_own() {
        let run = AgentRun {
            run: "r".to_owned(),
            ..AgentRun::default()
        };
        let texts = LibraryTexts {
            workspace: "w".to_owned(),
            ..LibraryTexts::default()
        };
        let mut sections = Sections::default();
        sections.add(&run).unwrap();
        sections.add(&texts).unwrap();
        assert_eq!(sections.count(), 2);
        let (header, body) = sections.finish();
        let found = of::<LibraryTexts>(&header, &body).unwrap();
        let read: LibraryTexts = codec::decode(found, ContentType::Avro).unwrap();
        assert_eq!(read, texts);
        let found = of::<AgentRun>(&header, &body).unwrap();
        let read: AgentRun = codec::decode(found, ContentType::Avro).unwrap();
        assert_eq!(read, run);
        assert_eq!(of::<Triples>(&header, &body), None);
    }

    #[test]
    fn a_header_that_lies_reads_nothing() {
        for header in [
            "",
            "AgentRun",
            "AgentRun=x",
            "AgentRun=9",
            "X=18446744073709551615,AgentRun=2",
            "AgentRun=-1",
        ] {
            assert_eq!(of::<AgentRun>(header, b"1234"), None, "{header}");
        }
        assert_eq!(of::<AgentRun>("AgentRun=4", b"1234"), Some(&b"1234"[..]));
    }
}
