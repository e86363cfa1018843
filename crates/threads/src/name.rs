//! Names of listeners. A name that is held is one that may be held; nothing splits one on its dots.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Longest name.
const LONGEST: usize = 128;
/// Who system messages are from, and what every chain begins with.
pub const SYSTEM: &str = "system";
/// Whoever comes in from outside and is not the console.
const GATEWAY: &str = "gateway";

/// A name that no listener may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// It is not made as names are.
    #[error("a name is 1 to 128 of a-z, 0-9, '_', '.' and '-', and begins with a letter or digit")]
    Shape,
    /// It belongs to the system.
    #[error("names that are 'system' or 'gateway' or begin with 'system.' are reserved")]
    Reserved,
}

/// The name of a listener, or of a part of the system.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

impl Name {
    /// The name of a listener that somebody registers.
    ///
    /// # Errors
    /// Why it may not have that name.
    pub fn of_listener(text: &str) -> Result<Self, BadName> {
        let name = Self::any(text)?;
        // Whoever comes in from outside has a name of its own, which nobody else answers to.
        match text == SYSTEM || text == GATEWAY || text.starts_with("system.") {
            true => Err(BadName::Reserved),
            false => Ok(name),
        }
    }

    /// A name as it stands in an envelope: those of the system included.
    ///
    /// # Errors
    /// It is not made as names are.
    pub fn any(text: &str) -> Result<Self, BadName> {
        let first = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let later = |byte: u8| first(byte) || matches!(byte, b'_' | b'.' | b'-');
        let mut bytes = text.bytes();
        let good = text.len() <= LONGEST && bytes.next().is_some_and(first) && bytes.all(later);
        match good {
            true => Ok(Self(text.into())),
            false => Err(BadName::Shape),
        }
    }

    pub(crate) fn known(text: &'static str) -> Self {
        Self(text.into())
    }

    /// Who system messages are from.
    pub fn system() -> Self {
        Self::known(SYSTEM)
    }

    /// The listener that takes the boot message.
    pub fn boot() -> Self {
        Self::known("system.boot")
    }

    /// The console.
    pub fn console() -> Self {
        Self::known("console")
    }

    /// What turns a line of the console into a message.
    pub fn console_router() -> Self {
        Self::known("console-router")
    }

    /// Whoever comes in from outside and is not the console.
    pub fn gateway() -> Self {
        Self::known(GATEWAY)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Name {
    type Error = BadName;
    fn try_from(text: String) -> Result<Self, BadName> {
        Self::any(&text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_as_they_are() {
        for good in ["a", "calculator.add", "0x", "a_b-c.d", "systems"] {
            assert!(Name::of_listener(good).is_ok(), "{good}");
        }
        for bad in ["", "A", ".a", "-a", "a b", "ä", &"a".repeat(129)] {
            assert_eq!(Name::of_listener(bad), Err(BadName::Shape), "{bad}");
        }
        for bad in ["system", "system.boot", "gateway"] {
            assert_eq!(Name::of_listener(bad), Err(BadName::Reserved), "{bad}");
        }
    }
}
