//! The child by itself, for tests and for looking at what it says of a document:
//! `ingest-decode pdf < document.pdf`.

use std::process::ExitCode;

use tg_ingest::decode::{Format, Limits, run};

fn main() -> ExitCode {
    let format = std::env::args()
        .nth(1)
        .and_then(|word| Format::parse(&word));
    match format {
        Some(format) => ExitCode::from(run(format, &Limits::default())),
        None => {
            eprintln!("usage: ingest-decode pdf|html|docx");
            ExitCode::from(2)
        }
    }
}
