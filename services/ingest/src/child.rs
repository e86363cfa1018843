//! The parent's side of taking a document apart: starts a child, feeds it, reads what it says within bounds.
//! Believes nothing it says beyond frames; kills it when it is late or no longer needed. Workspaces take turns.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::decode::{DecodeError, Format, Frame, Limits};
use crate::decode::{HEADER, UNCONFINED, frame, header, unconfined};
use crate::engine::turns::Turns;
use crate::error::IngestError;
use crate::options::Options;

/// How long a child may refuse a piece of its document.
const FEED: Duration = Duration::from_secs(30);

/// Starts children, a few at once.
pub(crate) struct Children {
    settings: Options,
    turns: Mutex<Turns<oneshot::Sender<()>>>,
    /// Whether it was said that children are not confined.
    warned: AtomicBool,
}

impl Children {
    pub(crate) fn new(settings: Options) -> Self {
        Self {
            turns: Mutex::new(Turns::new(settings.children, settings.kept)),
            settings,
            warned: AtomicBool::new(false),
        }
    }

    /// A place for a child of a workspace, when it is its turn.
    async fn place(&self, workspace: &str) -> ChildPermit<'_> {
        let place = || ChildPermit {
            children: self,
            workspace: workspace.to_owned(),
        };
        let told = {
            let mut turns = self.turns.lock();
            if turns.take(workspace) {
                return place();
            }
            let (tell, told) = oneshot::channel();
            turns.wait(workspace, tell);
            told
        };
        // Whoever waits is told; its place was taken for it then.
        let mut waiting = Waiting {
            children: self,
            workspace,
            told,
            ended: false,
        };
        let _ = (&mut waiting.told).await;
        waiting.ended = true;
        place()
    }

    /// Gives places to those whose turn it is.
    fn go_on(&self) {
        let mut turns = self.turns.lock();
        while let Some((workspace, waiter)) = turns.next() {
            // Nobody waits there any more.
            if waiter.send(()).is_err() {
                turns.give_back(&workspace);
            }
        }
    }

    /// A child for one document of a workspace. Waits for a place.
    pub(crate) async fn start(
        &self,
        workspace: &str,
        format: Format,
    ) -> Result<Feeding<'_>, IngestError> {
        let place = self.place(workspace).await;
        let settings = &self.settings;
        let child = Command::new(&settings.program)
            .args(&settings.args)
            .arg(format.as_str())
            .arg(settings.limits.to_argument())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.map_err(|error| {
            tracing::error!(%error, "a process that reads documents cannot be started");
            IngestError::NoReader
        })?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(IngestError::NoPipes);
        };
        Ok(Feeding {
            input: Some(input),
            telling: Telling {
                output: BufReader::with_capacity(64 << 10, output),
                _child: child,
                place,
                limits: settings.limits,
                used: Duration::ZERO,
                bytes: 0,
                told: 0,
            },
        })
    }
}

/// A workspace's place for a child.
struct ChildPermit<'a> {
    children: &'a Children,
    workspace: String,
}

impl Drop for ChildPermit<'_> {
    fn drop(&mut self) {
        self.children.turns.lock().give_back(&self.workspace);
        self.children.go_on();
    }
}

/// Waits for a place; one that was given at the moment it gave up goes to the next.
struct Waiting<'a> {
    children: &'a Children,
    workspace: &'a str,
    told: oneshot::Receiver<()>,
    ended: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.told.close();
        if self.told.try_recv().is_ok() {
            self.children.turns.lock().give_back(self.workspace);
            self.children.go_on();
        }
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
        self.telling.bytes += piece.len() as u64;
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
    place: ChildPermit<'a>,
    limits: Limits,
    /// Time for which its parent waited for it.
    used: Duration,
    /// Of its document.
    bytes: u64,
    /// Frames that it said so far.
    told: u32,
}

impl Telling<'_> {
    /// The next thing it says. Late, dead and confused children say a fault.
    pub(crate) async fn next(&mut self) -> Frame {
        let has = self.limits.time_for(self.bytes, self.told);
        let left = has.saturating_sub(self.used).min(self.limits.pause);
        let began = Instant::now();
        let said = timeout(left, self.read()).await;
        self.used += began.elapsed();
        match said {
            Ok(Some(frame)) => {
                self.told = self.told.saturating_add(1);
                frame
            }
            Ok(None) => Frame::Error(DecodeError::Died),
            Err(_) => Frame::Error(DecodeError::TooSlow),
        }
    }

    async fn read(&mut self) -> Option<Frame> {
        loop {
            let mut bytes = [0; HEADER];
            self.output.read_exact(&mut bytes).await.ok()?;
            let (tag, number, length) = header(&bytes)?;
            let mut text = vec![0; length];
            self.output.read_exact(&mut text).await.ok()?;
            if tag != UNCONFINED {
                return frame(tag, number, text);
            }
            self.warn(number);
        }
    }

    /// Said once: the system refuses the next child the same.
    fn warn(&self, bits: u32) {
        if !self.place.children.warned.swap(true, Ordering::Relaxed) {
            let unconfined = unconfined(bits);
            tracing::warn!(%unconfined, "the system refuses limits of the processes that read documents");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// What is heard of a child that runs a script.
    async fn heard(script: &str, pause: Duration) -> Vec<Frame> {
        let mut settings = Options::of_this_program("");
        settings.program = PathBuf::from("/bin/sh");
        settings.args = vec!["-c".to_owned(), script.to_owned()];
        settings.limits.pause = pause;
        let children = Children::new(settings);
        let mut feeding = children.start("w", Format::Pdf).await.unwrap();
        for _ in 0..4 {
            feeding.feed(&[b'x'; 100_000]).await;
        }
        let mut telling = feeding.fed();
        let mut frames = Vec::new();
        loop {
            frames.push(telling.next().await);
            if matches!(frames.last(), Some(Frame::End | Frame::Error(_))) {
                return frames;
            }
        }
    }

    #[tokio::test]
    async fn children_that_die_lie_or_are_late_are_faults() {
        let long = Duration::from_secs(30);
        let died = [Frame::Error(DecodeError::Died)];
        assert_eq!(heard("exit 1", long).await, died);
        assert_eq!(heard("/bin/cat >/dev/null; kill -9 $$", long).await, died);
        assert_eq!(
            heard("/bin/cat >/dev/null; echo nonsense, nonsense", long).await,
            died,
            "not frames"
        );
        let short = Duration::from_millis(50);
        let slow = heard("/bin/cat >/dev/null; exec /bin/sleep 60", short).await;
        assert_eq!(slow, [Frame::Error(DecodeError::TooSlow)]);
        let page = r"/bin/cat >/dev/null; printf '\001\0\0\0\002\0\0\0\002hi\004\0\0\0\0\0\0\0\0'";
        let told = [Frame::Page(2, "hi".to_owned()), Frame::End];
        assert_eq!(heard(page, long).await, told);
    }

    #[tokio::test]
    async fn a_child_that_is_not_confined_says_so_and_goes_on() {
        let mut settings = Options::of_this_program("");
        settings.program = PathBuf::from("/bin/sh");
        let script = r"/bin/cat >/dev/null; printf '\006\0\0\0\001\0\0\0\0\004\0\0\0\0\0\0\0\0'";
        settings.args = vec!["-c".to_owned(), script.to_owned()];
        let children = Children::new(settings);
        let feeding = children.start("w", Format::Pdf).await.unwrap();
        assert_eq!(feeding.fed().next().await, Frame::End);
        assert!(children.warned.load(Ordering::Relaxed));
    }

    /// Children that take their document in and say nothing for a long time.
    fn slow() -> Options {
        let mut settings = Options::of_this_program("");
        settings.program = PathBuf::from("/bin/sh");
        let script = "/bin/cat >/dev/null; exec /bin/sleep 60";
        settings.args = vec!["-c".to_owned(), script.to_owned()];
        settings
    }

    #[tokio::test]
    async fn slow_documents_of_one_workspace_do_not_stop_another() {
        let soon = Duration::from_secs(20);
        let children = Children::new(slow());
        let start = |workspace: &'static str| children.start(workspace, Format::Pdf);
        let first = start("a").await.unwrap();
        let _second = start("a").await.unwrap();
        // Its third waits; whoever comes from elsewhere does not.
        let mut third = Box::pin(start("a"));
        let mut given_up = Box::pin(start("a"));
        assert!(futures::poll!(&mut third).is_pending());
        assert!(futures::poll!(&mut given_up).is_pending());
        let other = timeout(soon, start("b")).await.unwrap().unwrap();
        drop(given_up);
        drop(other);
        assert!(futures::poll!(&mut third).is_pending());
        drop(first);
        let third = timeout(soon, third).await.unwrap().unwrap();
        drop(third);
        assert!(children.turns.lock().next().is_none());
    }

    #[tokio::test]
    async fn time_ends_with_the_size_of_the_document() {
        let mut settings = slow();
        settings.limits.start = Duration::from_millis(50);
        settings.limits.mebibyte = Duration::ZERO;
        let children = Children::new(settings);
        let mut feeding = children.start("w", Format::Pdf).await.unwrap();
        feeding.feed(b"x").await;
        let late = timeout(Duration::from_secs(60), feeding.fed().next()).await;
        assert_eq!(late.unwrap(), Frame::Error(DecodeError::TooSlow));
    }

    #[tokio::test]
    async fn a_child_is_told_its_limits() {
        let mut settings = slow();
        settings.limits.input_bytes = 4711;
        settings.limits.time = Duration::from_secs(7);
        let told = settings.limits.to_argument();
        // One frame of text: after the format's name come the limits.
        settings.args[1] = format!(
            r#"/bin/cat >/dev/null; printf '\003\0\0\0\0\0\0\0\{:03o}%s' "$1""#,
            told.len()
        );
        let children = Children::new(settings);
        let feeding = children.start("w", Format::Pdf).await.unwrap();
        let mut telling = feeding.fed();
        assert_eq!(telling.next().await, Frame::Text(told));
    }

    #[tokio::test]
    async fn limits_that_the_system_refuses_are_told_once_and_by_name() {
        let mut settings = slow();
        // A frame that says that two limits were refused, twice; then one of text.
        let refused = r"\006\0\0\0\003\0\0\0\0";
        settings.args[1] =
            format!(r"/bin/cat >/dev/null; printf '{refused}{refused}\003\0\0\0\0\0\0\0\002ok'");
        let children = Children::new(settings);
        let mut telling = children.start("w", Format::Pdf).await.unwrap().fed();
        assert!(!children.warned.load(Ordering::Relaxed));
        assert_eq!(telling.next().await, Frame::Text("ok".to_owned()));
        assert!(children.warned.load(Ordering::Relaxed));
        let named = unconfined(3);
        assert_eq!(named.split(", ").count(), 2, "{named}");
        assert_eq!(unconfined(0), "");
    }
}
