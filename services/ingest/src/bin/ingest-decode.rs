//! The child by itself, for tests and for looking at what it says of a document:
//! `ingest-decode pdf [LIMITS] < document.pdf`.

use std::process::ExitCode;

use tg_ingest::decode::{Format, Limits, run};

fn main() -> ExitCode {
    let format = std::env::args()
        .nth(1)
        .and_then(|word| Format::parse(&word));
    let limits = match std::env::args().nth(2) {
        None => Some(Limits::default()),
        Some(limits) => Limits::from_argument(&limits),
    };
    match format.zip(limits) {
        Some((format, limits)) => ExitCode::from(run(format, &limits)),
        None => {
            eprintln!("usage: ingest-decode pdf|html|docx");
            ExitCode::from(2)
        }
    }
}
