//! Receipts: how the writer of a record names it where it wants to be told what became of it, and what can become of one.

use std::fmt;

use crate::error::Error;
use crate::limits;
use crate::msg::Receipt;

/// Where the writer of a record receives what became of it, and how it recognises the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slip {
    /// Inbox of the writer.
    pub inbox: String,
    /// Number that it gave to what the record is a part of.
    pub of: u64,
    /// Which part.
    pub part: u32,
    /// Of a record that was made of the writer's.
    pub derived: bool,
}

/// How the slip of a derived record ends.
const DERIVED: &str = "/+";

impl fmt::Display for Slip {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let derived = if self.derived { DERIVED } else { "" };
        write!(to, "{}/{}/{}{derived}", self.inbox, self.of, self.part)
    }
}

impl Slip {
    /// Reads one; `None` for what is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, derived) = match text.strip_suffix(DERIVED) {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let mut parts = rest.rsplitn(3, '/');
        let part = parts.next()?.parse().ok()?;
        let of = parts.next()?.parse().ok()?;
        let inbox = parts.next().filter(|inbox| !inbox.is_empty())?.to_owned();
        Some(Self {
            inbox,
            of,
            part,
            derived,
        })
    }

    /// The slips of a header.
    pub fn all(header: &str) -> impl Iterator<Item = Self> + '_ {
        header.split(' ').filter_map(Self::parse)
    }

    /// Of a record that is made of this one's.
    pub fn of_derived(self) -> Self {
        Self {
            derived: true,
            ..self
        }
    }

    /// What its writer receives.
    pub fn receipt(&self, fate: &Fate) -> Receipt {
        let (kind, detail) = match fate {
            Fate::Refused(error) | Fate::Later(error) => (
                cut(&error.kind, limits::ERROR_KIND),
                cut(&error.message, limits::RECEIPT_DETAIL),
            ),
            Fate::Stored | Fate::PassedOn => Default::default(),
        };
        Receipt {
            of: i64::try_from(self.of).unwrap_or(i64::MAX),
            part: i64::from(self.part),
            derived: self.derived,
            fate: fate.as_str().to_owned(),
            kind,
            detail,
        }
    }
}

/// What became of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// Its effect is durable.
    Stored,
    /// All or some of it will not be stored unless somebody acts.
    Refused(Error),
    /// It failed and is tried again.
    Later(Error),
    /// A record was made of it. What becomes of that decides.
    PassedOn,
}

impl Fate {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Refused(_) => "refused",
            Self::Later(_) => "later",
            Self::PassedOn => "passed-on",
        }
    }

    /// The fate that a receipt reports; `None` where a later release has another.
    pub fn told(receipt: &Receipt) -> Option<Self> {
        let error = || Error::typed(&receipt.kind, receipt.detail.clone());
        match receipt.fate.as_str() {
            "stored" => Some(Self::Stored),
            "refused" => Some(Self::Refused(error())),
            "later" => Some(Self::Later(error())),
            "passed-on" => Some(Self::PassedOn),
            _ => None,
        }
    }
}

/// The beginning of a text that is longer.
fn cut(text: &str, longest: usize) -> String {
    let fits = (0..=longest.min(text.len())).rev();
    let end = fits.into_iter().find(|at| text.is_char_boundary(*at));
    text[..end.unwrap_or(0)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_read_as_they_were_written() {
        let slip = Slip {
            inbox: "nt.inbox.a/b.1".to_owned(),
            of: 7,
            part: 3,
            derived: false,
        };
        let header = format!("{slip} {}", slip.clone().of_derived());
        let read: Vec<Slip> = Slip::all(&header).collect();
        assert_eq!(read, [slip.clone(), slip.of_derived()]);
        for noise in ["", "a", "a/1", "/1/2", "a/x/1", "a/1/-1", "a/1/2/"] {
            assert_eq!(Slip::parse(noise), None, "{noise}");
        }
    }

    #[test]
    fn a_receipt_tells_its_fate_in_bounded_words() {
        let slip = Slip::parse("inbox/1/2/+").unwrap();
        let refused = Fate::Refused(Error::typed("too-large", "full"));
        for fate in [
            Fate::Stored,
            Fate::PassedOn,
            refused.clone(),
            Fate::Later(Error::typed("busy", "wait")),
        ] {
            let receipt = slip.receipt(&fate);
            assert_eq!((receipt.of, receipt.part, receipt.derived), (1, 2, true));
            assert_eq!(Fate::told(&receipt), Some(fate));
        }
        let long = Fate::Refused(Error::typed("x", "\u{e4}".repeat(limits::RECEIPT_DETAIL)));
        assert!(slip.receipt(&long).detail.len() <= limits::RECEIPT_DETAIL);
        let unknown = Receipt::default();
        assert_eq!(Fate::told(&unknown), None);
    }
}
