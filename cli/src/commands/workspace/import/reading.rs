//! One pass over a bundle: its wanted members in the order they are in it, never more than a few pieces ahead
//! of who takes them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::client::{Error, Result};
use crate::commands::graph::each_quad;
use crate::commands::workspace::bundle::{Member, back};

/// Triples in one frame.
const FRAME: usize = 1000;
/// What every bundle begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Items that may wait between the bundle and the gateway.
const AHEAD: usize = 4;

/// A piece of a bundle.
pub(super) enum Item {
    /// A wanted member of so many bytes begins.
    Begin(Member, u64),
    Bytes(Vec<u8>),
    Triples(Vec<Value>),
    /// A line of triples that is none, and why.
    Bad(String),
    End,
}

/// One pass over a bundle, read on a thread of its own.
pub(super) struct Items {
    items: mpsc::Receiver<Result<Item>>,
}

impl Items {
    pub(super) fn open(path: &Path, wanted: impl Fn(&Member) -> bool + Send + 'static) -> Self {
        let (to, items) = mpsc::channel(AHEAD);
        let path = path.to_owned();
        tokio::task::spawn_blocking(move || {
            let pass = Pass {
                path: &path,
                to: &to,
            };
            if let Err(error) = pass.run(wanted) {
                let _ = to.blocking_send(Err(error));
            }
        });
        Self { items }
    }

    pub(super) async fn next(&mut self) -> Result<Option<Item>> {
        self.items.recv().await.transpose()
    }
}

struct Pass<'a> {
    path: &'a Path,
    to: &'a mpsc::Sender<Result<Item>>,
}

impl Pass<'_> {
    /// `false`: nobody takes it any more.
    fn send(&self, item: Item) -> bool {
        self.to.blocking_send(Ok(item)).is_ok()
    }

    fn run(&self, wanted: impl Fn(&Member) -> bool) -> Result<()> {
        let failed = |error: std::io::Error| Error::file(self.path, error);
        let file = File::open(self.path).map_err(failed)?;
        let mut packed = BufReader::new(file);
        if !packed.fill_buf().map_err(failed)?.starts_with(&GZIP) {
            let reason = "is not a workspace bundle (made by `tg export-workspace`)";
            return Err(Error::file(self.path, reason));
        }
        let mut tar = tar::Archive::new(GzDecoder::new(packed));
        for entry in tar.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = entry.path().map_err(failed)?.to_string_lossy().into_owned();
            let Some(member) = Member::read(&path) else {
                continue;
            };
            if !wanted(&member) {
                continue;
            }
            let is_triples = matches!(member, Member::Triples(..));
            let length = entry.size();
            let goes_on = self.send(Item::Begin(member, length))
                && match is_triples {
                    true => self.triples(entry, &path)?,
                    false => self.bytes(&mut entry)?,
                }
                && self.send(Item::End);
            if !goes_on {
                return Ok(());
            }
        }
        // An archive says its end before the compressed stream's: that one says whether all of it is here.
        let mut rest = tar.into_inner();
        std::io::copy(&mut rest, &mut std::io::sink()).map_err(failed)?;
        Ok(())
    }

    fn bytes(&self, entry: &mut impl Read) -> Result<bool> {
        loop {
            let mut bytes = Vec::new();
            let read = entry.by_ref().take(1 << 20).read_to_end(&mut bytes);
            read.map_err(|error| Error::file(self.path, error))?;
            if bytes.is_empty() {
                return Ok(true);
            }
            if !self.send(Item::Bytes(bytes)) {
                return Ok(false);
            }
        }
    }

    fn triples(&self, entry: impl Read, name: &str) -> Result<bool> {
        let mut batch = Vec::with_capacity(FRAME);
        let mut goes_on = true;
        each_quad(entry, name, self.path, |triple| {
            match triple {
                Ok(triple) => batch.push(back(triple).to_api()),
                Err(why) => goes_on = self.send(Item::Bad(why)),
            }
            if batch.len() == FRAME {
                let full = std::mem::replace(&mut batch, Vec::with_capacity(FRAME));
                goes_on = self.send(Item::Triples(full));
            }
            goes_on
        })?;
        Ok(goes_on && (batch.is_empty() || self.send(Item::Triples(batch))))
    }
}
