//! Content from where it is: a file, or a web address, within bounds of size and time. What is large stays in a file.

use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use tg_provider_http::{HttpClient, HttpError, Limits};
use tg_schemas::limits::{DOCUMENT, human};

use super::find::Source;
use crate::client::Result;
use crate::content::{Content, Spool};
use crate::session::Session;

/// Longest time in which an address gives all of its document.
const TIME: Duration = Duration::from_secs(300);
/// Longest silence of an address.
const SILENCE: Duration = Duration::from_secs(30);
/// Addresses that an address sends on to.
const REDIRECTS: usize = 10;

/// Content, and the MIME type that its place says of it; empty if none.
pub(super) type Found = (Content, String);

/// Reads a source. The inner error says why it cannot be read; the outer one ends everything.
pub(super) async fn fetch(session: &Session, source: &Source) -> Result<Result<Found, String>> {
    match source {
        Source::File(path) => Ok(file(path)),
        Source::Web(url) => {
            let fetching = tokio::time::timeout(TIME, web(url));
            let fetched = session.until_interrupted(fetching).await?;
            let late = |_| Err(format!("did not come within {} s", TIME.as_secs()));
            Ok(fetched.unwrap_or_else(late))
        }
    }
}

fn file(path: &Path) -> Result<Found, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if size.len() > DOCUMENT as u64 {
        return Err(too_large());
    }
    let content = Content::open(path).map_err(|error| error.to_string())?;
    Ok((content, String::new()))
}

async fn web(url: &str) -> Result<Found, String> {
    let limits = Limits {
        silence: Some(SILENCE),
        redirects: REDIRECTS,
        answer: DOCUMENT,
        ..Limits::default()
    };
    let client = HttpClient::new(url, limits).map_err(|error| error.to_string())?;
    let answer = client
        .send(client.get(url))
        .await
        .map_err(|why| told(&why))?;
    let declared = answer.content_type().to_owned();
    let mut pieces = std::pin::pin!(answer.bytes());
    let mut content = Spool::default();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|why| told(&why))?;
        let kept = content.push(&piece);
        kept.map_err(|error| error.to_string())?;
    }
    Ok((content.content(), useful(&declared)))
}

/// What servers say of files that they do not know says nothing.
fn useful(declared: &str) -> String {
    match declared.split(';').next().unwrap_or_default().trim() {
        "text/plain" | "application/octet-stream" | "binary/octet-stream" => String::new(),
        said => said.to_owned(),
    }
}

fn told(why: &HttpError) -> String {
    match why {
        HttpError::Refused(refusal) => format!("its server answers with status {}", refusal.status),
        HttpError::Unreadable => too_large(),
        HttpError::Invalid => "is not an address that can be asked".to_owned(),
        why => why.to_string(),
    }
}

fn too_large() -> String {
    format!("is larger than {}", human(DOCUMENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_leaves_it_to_name_and_content() {
        assert_eq!(useful("text/markdown; charset=utf-8"), "text/markdown");
        assert_eq!(useful("text/plain; charset=utf-8"), "");
        assert_eq!(useful(""), "");
    }

    #[test]
    fn files_are_read_up_to_a_bound() {
        let file_of = tempfile::NamedTempFile::new().expect("a file");
        file_of.as_file().set_len(DOCUMENT as u64 + 1).expect("set");
        let large = file(file_of.path()).expect_err("too large");
        assert_eq!(large, "is larger than 256 MiB");
        file_of.as_file().set_len(3).expect("set");
        let (content, declared) = file(file_of.path()).expect("read");
        assert_eq!(content.small(), Some(&[0; 3][..]));
        assert_eq!(declared, "");
    }
}
