//! Content from where it is: a file, or a web address, within bounds of size and time. What is large stays in a file.

use std::path::Path;
use std::time::Duration;

use futures::StreamExt;
use tg_provider_http::{Cause, HttpClient, HttpError, Limits, Reach};
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
pub(super) async fn fetch(session: &mut Session, source: &Source) -> Result<Result<Found, String>> {
    match source {
        Source::File(path) => Ok(file(path)),
        Source::Web(url) => {
            let fetching = tokio::time::timeout(TIME, web(url));
            let fetched = session.until_interrupted(fetching).await?;
            let late = |_| Err(format!("did not come within {} s", TIME.as_secs()));
            let fetched = fetched.unwrap_or_else(late);
            Ok(fetched.map(|(found, from)| {
                if let Some(from) = from {
                    session.out.talk(format!("{url}: was sent on to {from}"));
                }
                found
            }))
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

/// What is at an address, and where that is if the address sends on.
async fn web(url: &str) -> Result<(Found, Option<String>), String> {
    let limits = Limits {
        // Whoever answers may send on to anywhere. What only this machine reaches goes into the library where it is named.
        reach: Reach::Outward,
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
    let from = answer.led_to(url);
    let mut pieces = std::pin::pin!(answer.bytes());
    let mut content = Spool::default();
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|why| told(&why))?;
        let kept = content.push(&piece);
        kept.map_err(|error| error.to_string())?;
    }
    Ok(((content.content(), useful(&declared)), from))
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
        HttpError::Unreachable(Cause::Denied) => {
            "its server sends on to an address of this machine or network; add that one by its own address".to_owned()
        }
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

    /// A server of one answer.
    fn server(listener: tokio::net::TcpListener, answer: String) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                // A request without body fits into one read.
                let _ = socket.read(&mut [0; 4096]).await;
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        });
    }

    #[tokio::test]
    async fn nobody_sends_on_to_what_only_this_machine_reaches() {
        let bound = async |address: &str| {
            let bound = tokio::net::TcpListener::bind((address, 0))
                .await
                .expect("a port");
            let url = format!("http://{}", bound.local_addr().expect("an address"));
            (bound, url)
        };
        let (inner, inner_url) = bound("127.0.0.1").await;
        let text = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 6\r\n\r\nsecret";
        server(inner, text.to_owned());
        let on = |to: &str| {
            format!(
                "HTTP/1.1 302 Found\r\nconnection: close\r\nlocation: {to}/\r\ncontent-length: 0\r\n\r\n"
            )
        };
        let port = inner_url.rsplit(':').next().expect("a port").to_owned();
        for to in [
            inner_url.clone(),
            format!("http://localhost:{port}"),
            "http://169.254.169.254".to_owned(),
        ] {
            let (outer, url) = bound("127.0.0.2").await;
            server(outer, on(&to));
            let why = web(&url).await.expect_err("it is refused");
            assert!(
                why.contains("sends on to an address of this machine"),
                "{to}: {why}"
            );
        }
        // The host that was named may send on within itself.
        let (outer, url) = bound("127.0.0.1").await;
        server(outer, on(&inner_url));
        let ((content, _), from) = web(&url).await.expect("the same host");
        assert_eq!(content.small(), Some(&b"secret"[..]));
        assert_eq!(from, Some(inner_url.clone()));
        let (_, from) = web(&inner_url).await.expect("itself");
        assert_eq!(from, None);
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
