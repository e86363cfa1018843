//! The child's side: takes a document apart in a process of its own, so that a hostile or broken one costs
//! that process and nothing else. Reads the document from standard input, writes frames to standard output.
//! Opens no file and no connection.

use std::io::{Read, Write};

mod docx;
mod frames;
#[cfg(test)]
mod fuzz;
mod html;
mod limits;
mod main_content;
mod page;
mod pdf;
mod raised;
mod table;

pub use frames::{DecodeError, Frame};
pub(crate) use frames::{HEADER, UNCONFINED, frame, header};
pub use limits::Limits;
pub(crate) use limits::unconfined;

/// What a child can take apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// PDF.
    Pdf,
    /// HTML.
    Html,
    /// Word since 2007.
    Docx,
}

impl Format {
    /// As on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Html => "html",
            Self::Docx => "docx",
        }
    }

    /// As people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pdf => "PDF",
            Self::Html => "HTML",
            Self::Docx => "Word",
        }
    }

    /// Reads the word on the command line.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pdf, Self::Html, Self::Docx]
            .into_iter()
            .find(|format| format.as_str() == text)
    }
}

/// Stack of the thread that does it; deep nesting ends the process, which its parent understands.
const STACK: usize = 64 << 20;

/// The whole life of a child: confines itself, reads, decodes, writes. Returns the exit code.
pub fn run(format: Format, limits: &Limits) -> u8 {
    let refused = limits.confine();
    // What a parser says when it panics is of no use to anybody; the fault frame tells.
    std::panic::set_hook(Box::new(|_| {}));
    let limits = *limits;
    let work = std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || {
            let mut input = Vec::new();
            let mut output = frames::Writer::new(std::io::stdout().lock());
            // Its parent has a log, this process has none. Where nobody listens, decoding ends by itself.
            if refused != 0 {
                let _ = output.unconfined(refused);
            }
            let read = std::io::stdin()
                .lock()
                .take(limits.input_bytes + 1)
                .read_to_end(&mut input);
            let result = match read {
                Err(_) => Err(DecodeError::Damaged),
                Ok(read) if read as u64 > limits.input_bytes => Err(DecodeError::TooLarge),
                Ok(_) => decode(format, input, &limits, &mut output),
            };
            match result {
                Ok(()) => output.end(),
                Err(fault) => output.fault(fault),
            }
        });
    match work.map(std::thread::JoinHandle::join) {
        Ok(Ok(true)) => 0,
        _ => 1,
    }
}

fn decode<W: Write>(
    format: Format,
    input: Vec<u8>,
    limits: &Limits,
    output: &mut frames::Writer<W>,
) -> Result<(), DecodeError> {
    let guarded = std::panic::AssertUnwindSafe(|| match format {
        Format::Pdf => pdf::decode(&input, limits, output),
        Format::Html => output.texts(&html::decode(&input)?, limits),
        Format::Docx => output.texts(&docx::decode(&input, limits)?, limits),
    });
    std::panic::catch_unwind(guarded).unwrap_or(Err(DecodeError::Damaged))
}

#[cfg(test)]
mod tests;
