//! Fetching one file: continues what an earlier try left, and hands over nothing whose hash is wrong.

use std::fs::{File as Handle, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::header::RANGE;
use reqwest::{Client, Response, StatusCode, Url};
use sha2::{Digest, Sha256};
use tg_provider_http::{Limits, client};

use super::catalogue::File;
use crate::client::{Error, Result};
use crate::session::Session;

/// Largest file that is fetched: the largest that the embeddings service reads.
const LARGEST: u64 = 2 << 30;
/// Largest list of hashes.
const LARGEST_SUMS: usize = 64 << 10;
/// Places of models send on to where the files lie.
const REDIRECTS: usize = 10;
/// Longest silence of the source.
const SILENCE: Duration = Duration::from_secs(60);

/// A place that files come from.
pub struct Source {
    client: Client,
    base: Url,
}

impl Source {
    /// The place at an address; files lie directly below it. Opens no connection.
    pub fn new(address: &str) -> Result<Self> {
        let bad = |why: &str| Error::Usage(format!("--from {address}: {why}"));
        let base = Url::parse(&format!("{}/", address.trim_end_matches('/')))
            .map_err(|error| bad(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(bad("must start with http:// or https://"));
        }
        let limits = Limits {
            silence: Some(SILENCE),
            redirects: REDIRECTS,
            ..Limits::default()
        };
        let client = client(base.as_str(), limits);
        let client = client.map_err(|error| Error::Protocol(error.to_string()))?;
        Ok(Self { client, base })
    }

    /// A small text file; `None` if the place has none of that name.
    pub async fn sums(&self, session: &Session) -> Result<Option<String>> {
        let mut response = self.get(session, "SHA256SUMS", 0).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        self.fine(&response)?;
        let mut text = Vec::new();
        while let Some(bytes) = self.next(session, &mut response).await? {
            text.extend_from_slice(&bytes);
            if text.len() > LARGEST_SUMS {
                return Err(self.fault("SHA256SUMS is larger than 64 KiB"));
            }
        }
        let text = String::from_utf8(text);
        text.map(Some)
            .map_err(|_| self.fault("SHA256SUMS is not text"))
    }

    /// Fetches a file into a directory, from where an earlier try ended. Returns its size.
    pub async fn fetch(&self, session: &Session, file: &File, into: &Path) -> Result<u64> {
        let path = into.join(&file.name);
        if has_hash(&path, &file.sha256)? {
            return size(&path);
        }
        let part = into.join(format!("{}.part", file.name));
        let had = size(&part).unwrap_or(0);
        let mut response = self.get(session, &file.name, had).await?;
        // What is there already is all of it, or of another file: the hash tells.
        let whole = had > 0 && response.status() == StatusCode::RANGE_NOT_SATISFIABLE;
        if !whole {
            let goes_on = response.status() == StatusCode::PARTIAL_CONTENT;
            if !goes_on {
                self.fine(&response)?;
            }
            self.append(session, &mut response, &part, goes_on, had)
                .await?;
        }
        if !has_hash(&part, &file.sha256)? {
            remove(&part)?;
            return Err(self.fault(&format!(
                "{} is not the file that was meant (its SHA-256 is another one); nothing of it was kept",
                file.name
            )));
        }
        std::fs::rename(&part, &path).map_err(|error| Error::file(&path, error))?;
        size(&path)
    }

    async fn append(
        &self,
        session: &Session,
        response: &mut Response,
        part: &Path,
        goes_on: bool,
        had: u64,
    ) -> Result<()> {
        let name = part.file_stem().unwrap_or_default().to_string_lossy();
        let start = if goes_on { had } else { 0 };
        let left = response.content_length();
        let total = left.map(|left| left.saturating_add(start));
        let bar = session.out.progress(&name, total);
        bar.set_position(start);
        let mut out = OpenOptions::new()
            .create(true)
            .write(true)
            .append(goes_on)
            .truncate(!goes_on)
            .open(part)
            .map_err(|error| Error::file(part, error))?;
        let mut written = start;
        while let Some(bytes) = self.next(session, response).await? {
            written += bytes.len() as u64;
            if written > LARGEST {
                return Err(self.fault(&format!("{name} is larger than 2 GiB")));
            }
            out.write_all(&bytes)
                .map_err(|error| Error::file(part, error))?;
            bar.set_position(written);
        }
        bar.finish_and_clear();
        out.sync_all().map_err(|error| Error::file(part, error))
    }

    async fn get(&self, session: &Session, name: &str, from: u64) -> Result<Response> {
        let url = self
            .base
            .join(name)
            .map_err(|error| Error::Usage(error.to_string()))?;
        let mut request = self.client.get(url);
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        session
            .until_interrupted(request.send())
            .await?
            .map_err(|error| self.broken(&error))
    }

    async fn next(&self, session: &Session, response: &mut Response) -> Result<Option<Vec<u8>>> {
        let chunk = session.until_interrupted(response.chunk()).await?;
        let chunk = chunk.map_err(|error| self.broken(&error))?;
        Ok(chunk.map(|bytes| bytes.to_vec()))
    }

    fn fine(&self, response: &Response) -> Result<()> {
        match response.status() {
            StatusCode::OK => Ok(()),
            status => Err(self.fault(&format!("it answers with status {}", status.as_u16()))),
        }
    }

    fn broken(&self, error: &reqwest::Error) -> Error {
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        self.fault(&cause.to_string())
    }

    /// The address without what may be secret in it.
    fn fault(&self, reason: &str) -> Error {
        let host = self.base.host_str().unwrap_or_default();
        let port = self
            .base
            .port()
            .map(|port| format!(":{port}"))
            .unwrap_or_default();
        Error::Source {
            place: format!("{}://{host}{port}", self.base.scheme()),
            reason: reason.to_owned(),
        }
    }
}

/// Whether a file is there and has this hash.
pub fn has_hash(path: &Path, sha256: &str) -> Result<bool> {
    let Ok(mut file) = Handle::open(path) else {
        return Ok(false);
    };
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = file
            .read(&mut buffer)
            .map_err(|error| Error::file(path, error))?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    Ok(hex::encode(hash.finalize()) == sha256)
}

fn size(path: &Path) -> Result<u64> {
    let found = std::fs::metadata(path).map_err(|error| Error::file(path, error))?;
    Ok(found.len())
}

fn remove(path: &PathBuf) -> Result<()> {
    std::fs::remove_file(path).map_err(|error| Error::file(path, error))
}
