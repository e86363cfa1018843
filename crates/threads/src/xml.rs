//! The XML form of a message, for bridges and test vectors: the bus speaks JSON. Names in `snake_case` become `kebab-case`
//! elements, lists repeated elements, and null or an empty list nothing. Which texts are numbers, truth values or lists
//! of one is only known from the schema. The id and the workspace have no place in it.

mod read;
mod write;

pub use read::from_xml;
pub use write::to_xml;

/// Most elements of a message.
const ELEMENTS: usize = 100_000;
/// Deepest element.
const DEEPEST: usize = 64;

/// What has no XML form, or is none of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadXml {
    /// A key that is not in `snake_case`, or a name that XML does not allow.
    #[error("a key is not in snake_case, or the name begins with a digit")]
    Key,
    /// A list in a list, or null in a list.
    #[error("a list holds a list or null")]
    List,
    /// A character that XML cannot have.
    #[error("a text has a character that XML does not allow")]
    Character,
    /// It is no well-formed XML, or has a document type.
    #[error("it is not well-formed XML without a document type")]
    Form,
    /// Too large, too deep or too many elements.
    #[error("it is larger than a message may be")]
    Large,
    /// It is XML, but no message.
    #[error("it is not a message with its meta and one payload")]
    Message,
    /// A text is not what the schema says.
    #[error("a text is not of the type that the schema says")]
    Type,
}
