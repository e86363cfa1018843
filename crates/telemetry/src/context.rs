//! A place in a trace: which trace, which span, and whether it is recorded. Its text is the header `traceparent` of W3C
//! Trace Context.

use std::fmt::{self, Display};

/// Characters of a text of version 00.
const LENGTH: usize = 55;
/// The flag that says that the trace is recorded.
const SAMPLED: u8 = 1;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context {
    pub(crate) trace: [u8; 16],
    pub(crate) span: [u8; 8],
    pub(crate) sampled: bool,
}

impl Context {
    /// A new trace, of which nothing is recorded so far.
    pub fn fresh() -> Self {
        let mut context = Self {
            trace: rand::random(),
            span: span_id(),
            sampled: false,
        };
        // All zeros is the id of no trace.
        context.trace[0] |= u8::from(context.trace == [0; 16]);
        context
    }

    /// Reads a header. One of a later version may say more behind what is known; ids of zeros, and capitals, are no ids.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let version = octets::<1>(bytes.get(..2)?)?[0];
        let fits = match version {
            0 => bytes.len() == LENGTH,
            0xff => false,
            _ => bytes.len() == LENGTH || bytes.get(LENGTH) == Some(&b'-'),
        };
        let dashes = [2, 35, 52].iter().all(|at| bytes.get(*at) == Some(&b'-'));
        if !fits || !dashes {
            return None;
        }
        let trace = octets::<16>(&bytes[3..35])?;
        let span = octets::<8>(&bytes[36..52])?;
        let flags = octets::<1>(&bytes[53..55])?[0];
        (trace != [0; 16] && span != [0; 8]).then_some(Self {
            trace,
            span,
            sampled: flags & SAMPLED != 0,
        })
    }

    /// Id of its span.
    pub fn span(&self) -> [u8; 8] {
        self.span
    }

    /// Whether the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// A number that is as likely to be any other, the same for all spans of the trace: the last 56 bits of its id, which
    /// are random whoever made it.
    pub(crate) fn chance(&self) -> u64 {
        let mut low = [0; 8];
        low[1..].copy_from_slice(&self.trace[9..]);
        u64::from_be_bytes(low)
    }
}

impl Display for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (hex::encode(self.trace), hex::encode(self.span));
        write!(f, "00-{trace}-{span}-0{}", u8::from(self.sampled))
    }
}

/// An id of a span.
pub(crate) fn span_id() -> [u8; 8] {
    let id: u64 = rand::random();
    id.max(1).to_be_bytes()
}

/// Bytes from small digits of base 16.
fn octets<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let small = !digits.iter().any(u8::is_ascii_uppercase);
    let read = hex::decode_to_slice(digits, &mut bytes);
    (small && read.is_ok()).then_some(bytes)
}
