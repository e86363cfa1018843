//! `tg get-document-content`: the bytes of a document, as they are.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::registry::Command;
use crate::session::Session;

/// Arguments of `tg get-document-content`.
#[derive(Debug, Args)]
pub struct GetDocumentContent {
    #[command(flatten)]
    common: Common,
    /// File to write to [default: standard output]
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Id of the document
    #[arg(value_name = "DOCUMENT-ID")]
    document_id: String,
}

impl Command for GetDocumentContent {
    const NAME: &'static str = "get-document-content";
    const ABOUT: &'static str = "Print or save the content of a document";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    fn adjust(command: clap::Command) -> clap::Command {
        command.after_help("The content itself is printed as it is, also with --json.")
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let query = [("document-id", self.document_id.as_str())];
        let mut stream = http.get_stream("api/v1/document-stream", &query).await?;
        let mut total = 0;
        let mut file = None;
        let mut last = b'\n';
        while let Some(bytes) = http.next_bytes(&mut stream).await? {
            total += bytes.len();
            last = bytes.last().copied().unwrap_or(last);
            match &self.output {
                Some(path) => {
                    // Nothing is created for a document that does not exist.
                    let file = match &mut file {
                        Some(file) => file,
                        None => file
                            .insert(File::create(path).map_err(|error| Error::file(path, error))?),
                    };
                    file.write_all(&bytes)
                        .map_err(|error| Error::file(path, error))?;
                }
                None => session.out.bytes(&bytes)?,
            }
        }
        // Older gateways answer for a missing document with nothing, not with an error.
        if total == 0 {
            return Err(Error::Missing(format!(
                "document {} is empty or does not exist",
                self.document_id
            )));
        }
        match &self.output {
            Some(path) => {
                let done = json!({"file": path.display().to_string(), "bytes": total});
                session.out.show(&done, || {
                    format!("Written {total} bytes to {}", path.display())
                })
            }
            None if last != b'\n' => session.out.line(""),
            None => Ok(()),
        }
    }
}
