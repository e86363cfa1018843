//! The signals that stop a process: SIGTERM, Ctrl-C, and SIGHUP where it comes because its terminal was closed. A process
//! without a terminal is told by SIGHUP to read again what it can.

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Heard from the start of the process on.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    /// `None` where whoever started the process wants it to outlive its terminal, as `nohup` does.
    hang_up: Option<Signal>,
    /// What SIGHUP says.
    hung_up: Told,
}

/// What a signal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// To stop.
    Stop,
    /// To read again what can be.
    Renew,
}

impl Signals {
    /// Begins to hear them.
    pub(crate) fn new() -> Result<Self> {
        let hang_up = match ignores_hang_up() {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up,
            hung_up: match has_terminal() {
                true => Told::Stop,
                false => Told::Renew,
            },
        })
    }

    /// The next of them.
    pub(crate) async fn next(&mut self) -> Told {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => Told::Stop,
            _ = self.interrupt.recv() => Told::Stop,
            () = hang_up => self.hung_up,
        }
    }

    /// The next of them that says to stop.
    pub(crate) async fn stop(&mut self) {
        while self.next().await != Told::Stop {}
    }
}

/// Whether the process belongs to a terminal. Services that are started by the system do not.
fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Whether the process was started with SIGHUP ignored. Where the system does not say, it was not.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_ignored(&status, 1)
}

/// Whether a signal is in the set of those that are ignored, in `/proc/self/status`.
fn is_ignored(status: &str, signal: u32) -> bool {
    let mut lines = status.lines();
    let set = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let set = set.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    set.is_some_and(|set| set >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_ignores_is_seen() {
        assert!(is_ignored("Name:\tx\nSigIgn:\t0000000000001001\n", 1));
        assert!(!is_ignored("SigIgn:\t0000000000001000\n", 1));
        assert!(!is_ignored("", 1));
    }
}
