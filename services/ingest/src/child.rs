//! The parent's side of taking a document apart: starts a child, feeds it, reads what it says within bounds.
//! Believes nothing it says beyond frames; kills it when it is late or no longer needed.

use std::process::Stdio;
use std::time::Duration;

use tg_schemas::{Error, ErrorCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout, timeout_at};

use crate::decode::{Fault, Format, Frame};
use crate::decode::{HEADER, frame, header};
use crate::settings::IngestSettings;

/// How long a child may refuse a piece of its document.
const FEED: Duration = Duration::from_secs(30);

/// Starts children, a few at once.
pub(crate) struct Children {
    settings: IngestSettings,
    places: Semaphore,
}

impl Children {
    pub(crate) fn new(settings: IngestSettings) -> Self {
        Self {
            places: Semaphore::new(settings.children.max(1)),
            settings,
        }
    }

    /// A child for one document. Waits for a place.
    pub(crate) async fn start(&self, format: Format) -> Result<Feeding<'_>, Error> {
        let closed = |_| Error::new(ErrorCode::Unavailable, "the process is stopping");
        let place = self.places.acquire().await.map_err(closed)?;
        let settings = &self.settings;
        let child = Command::new(&settings.program)
            .args(&settings.args)
            .arg(format.as_str())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.map_err(|error| {
            tracing::error!(%error, "a process that reads documents cannot be started");
            Error::new(
                ErrorCode::Unavailable,
                "documents cannot be read at the moment",
            )
        })?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(Error::new(
                ErrorCode::Internal,
                "a document reader has no pipes",
            ));
        };
        Ok(Feeding {
            input: Some(input),
            telling: Telling {
                output: BufReader::with_capacity(64 << 10, output),
                _child: child,
                _place: place,
                pause: settings.limits.pause,
                until: Instant::now() + settings.limits.time,
            },
        })
    }
}

/// A child that takes its document in.
pub(crate) struct Feeding<'a> {
    input: Option<ChildStdin>,
    telling: Telling<'a>,
}

impl<'a> Feeding<'a> {
    /// Gives it a piece. A child that wants no more has something to say.
    pub(crate) async fn feed(&mut self, piece: &[u8]) {
        let Some(input) = &mut self.input else { return };
        let fed = timeout(FEED, input.write_all(piece)).await;
        if !matches!(fed, Ok(Ok(()))) {
            self.input = None;
        }
    }

    /// That was the document.
    pub(crate) fn fed(self) -> Telling<'a> {
        self.telling
    }
}

/// A child that tells what is in its document.
pub(crate) struct Telling<'a> {
    output: BufReader<ChildStdout>,
    _child: Child,
    _place: SemaphorePermit<'a>,
    pause: Duration,
    until: Instant,
}

impl Telling<'_> {
    /// The next thing it says. Late, dead and confused children say a fault.
    pub(crate) async fn next(&mut self) -> Frame {
        let until = self.until.min(Instant::now() + self.pause);
        match timeout_at(until, self.read()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => Frame::Fault(Fault::Died),
            Err(_) => Frame::Fault(Fault::TooSlow),
        }
    }

    async fn read(&mut self) -> Option<Frame> {
        let mut bytes = [0; HEADER];
        self.output.read_exact(&mut bytes).await.ok()?;
        let (tag, number, length) = header(&bytes)?;
        let mut text = vec![0; length];
        self.output.read_exact(&mut text).await.ok()?;
        frame(tag, number, text)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// What is heard of a child that runs a script.
    async fn heard(script: &str, pause: Duration) -> Vec<Frame> {
        let mut settings = IngestSettings::of_this_program("");
        settings.program = PathBuf::from("/bin/sh");
        settings.args = vec!["-c".to_owned(), script.to_owned()];
        settings.limits.pause = pause;
        let children = Children::new(settings);
        let mut feeding = children.start(Format::Pdf).await.unwrap();
        for _ in 0..4 {
            feeding.feed(&[b'x'; 100_000]).await;
        }
        let mut telling = feeding.fed();
        let mut frames = Vec::new();
        loop {
            frames.push(telling.next().await);
            if matches!(frames.last(), Some(Frame::End | Frame::Fault(_))) {
                return frames;
            }
        }
    }

    #[tokio::test]
    async fn children_that_die_lie_or_are_late_are_faults() {
        let long = Duration::from_secs(30);
        let died = [Frame::Fault(Fault::Died)];
        assert_eq!(heard("exit 1", long).await, died);
        assert_eq!(heard("/bin/cat >/dev/null; kill -9 $$", long).await, died);
        assert_eq!(
            heard("/bin/cat >/dev/null; echo nonsense, nonsense", long).await,
            died,
            "not frames"
        );
        let short = Duration::from_millis(50);
        let slow = heard("/bin/cat >/dev/null; exec /bin/sleep 60", short).await;
        assert_eq!(slow, [Frame::Fault(Fault::TooSlow)]);
        let page = r"/bin/cat >/dev/null; printf '\001\0\0\0\002\0\0\0\002hi\004\0\0\0\0\0\0\0\0'";
        let told = [Frame::Page(2, "hi".to_owned()), Frame::End];
        assert_eq!(heard(page, long).await, told);
    }
}
