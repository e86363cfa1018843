//! Systems that run already, for tests that change no setting and kill nothing: one for each deployment, for all tests of a
//! `cargo test`, of a `cargo nextest run` or of `scripts/suites.py`. A test keeps to a workspace of its own.
//!
//! The first test that needs a system starts it, the others find it in a file that is named by the runner they have in common
//! (`noted`). A watcher ends the system with that runner, and removes its folder.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use tokio::time::Instant;

use crate::model_router;
use crate::noted::Noted;
use crate::process::{Launch, PAUSE, READY, Terminal, bin_dir, client};
use crate::shared_node::VirtualHost;
use crate::started::is_ready;

/// Ends the process `$2` when `$1` has ended, then removes the folder `$3` and the file `$4`. If `$2` ends first, its folder stays as
/// long as `$1`, for its log.
const WATCHER: &str = r#"
while kill -0 "$1" && kill -0 "$2"; do sleep 0.5; done
if kill -0 "$1"; then
    while kill -0 "$1"; do sleep 0.5; done
else
    kill -9 "$2"
    for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$2" && sleep 0.1; done
fi
rm -rf "$3"
rm -f "$4"
"#;
/// Lines of the log that an error shows: all tests write to the same one.
const LINES: usize = 200;

/// How a shared system is deployed. Each asks for no keys (`--auth none`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deployment {
    /// One process with the embedded bus.
    Embedded,
    /// One process over RabbitMQ.
    RabbitMq,
    /// One process with the embedded bus, for flows with scripted models: the flow of a test names its own (`model_router::name_of`).
    EmbeddedScripted,
    /// The same over RabbitMQ.
    RabbitMqScripted,
}

impl Deployment {
    /// What the file is about.
    fn name(self) -> &'static str {
        match self {
            Self::Embedded => "system-embedded",
            Self::RabbitMq => "system-rabbitmq",
            Self::EmbeddedScripted => "system-embedded-scripted",
            Self::RabbitMqScripted => "system-rabbitmq-scripted",
        }
    }

    fn has_broker(self) -> bool {
        matches!(self, Self::RabbitMq | Self::RabbitMqScripted)
    }

    fn is_scripted(self) -> bool {
        matches!(self, Self::EmbeddedScripted | Self::RabbitMqScripted)
    }
}

/// A running system that other tests use at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedSystem {
    port: u16,
    pid: u32,
    folder: PathBuf,
}

impl SharedSystem {
    /// The one of a deployment. It is started if there is none yet, or if the last one ended.
    ///
    /// # Errors
    /// It does not start, or it runs and does not serve within the bound; the error holds the end of its log.
    pub async fn of(deployment: Deployment) -> Result<Self> {
        let noted = Noted::open(deployment.name()).await?;
        if let Some(system) = read(&noted.text) {
            if system.runs() {
                // The file is free again: all who find a silent system wait side by side.
                drop(noted);
                system.serves().await?;
                return Ok(system);
            }
            eprintln!(
                "a shared system ended, another one starts:\n{}",
                system.log()
            );
        }
        // The file stays locked: who comes meanwhile waits.
        let system = start(deployment, &noted).await?;
        let Self { port, pid, folder } = &system;
        noted.write(&format!("{port} {pid} {}", folder.display()))?;
        Ok(system)
    }

    /// URL of the gateway, with a slash at the end.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// The end of what it wrote to stderr so far.
    pub fn log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    /// Whether its process is still there. Its number may be another's by now.
    fn runs(&self) -> bool {
        let line = fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let data = self.folder.join("data");
        line.split(|byte| *byte == 0)
            .any(|word| word == data.as_os_str().as_encoded_bytes())
    }

    /// Waits until its default flow serves.
    async fn serves(&self) -> Result<()> {
        let (client, url) = (client()?, self.url());
        let end = Instant::now() + READY;
        while !is_ready(&client, &url).await {
            ensure!(self.runs(), "the shared system ended:\n{}", self.log());
            if Instant::now() > end {
                bail!("the shared system does not serve:\n{}", self.log());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

fn read(text: &str) -> Option<SharedSystem> {
    let mut words = text.splitn(3, ' ');
    Some(SharedSystem {
        port: words.next()?.parse().ok()?,
        pid: words.next()?.parse().ok()?,
        folder: words.next()?.into(),
    })
}

async fn start(deployment: Deployment, noted: &Noted) -> Result<SharedSystem> {
    let host = match deployment.has_broker() {
        false => None,
        true => Some(VirtualHost::lasting().await?),
    };
    // In a session of its own: a runner that ends a test ends its process group.
    let mut launch = Launch::up().terminal(Terminal::None).staying();
    if deployment.is_scripted() {
        let router = model_router::start(bin_dir()?.join("scripted-model"), noted.owner)?;
        launch = launch.env("OPENAI_BASE_URL", router);
    }
    let mut server = launch.over(host.as_ref()).spawn().await?;
    let mut system = SharedSystem {
        port: 0,
        pid: server.pid().context("the shared system ended at once")?,
        folder: server.leave(),
    };
    let started = async {
        watch(&system, noted, host)?;
        server.wait_ready().await
    };
    if let Err(fault) = started.await {
        let pid = system.pid.to_string();
        Command::new("kill").args(["-KILL", &pid]).status()?;
        return Err(fault);
    }
    system.port = server.port();
    Ok(system)
}

/// Starts the watcher. It holds the connection that the virtual host ends with, as its standard input.
fn watch(system: &SharedSystem, noted: &Noted, host: Option<VirtualHost>) -> Result<()> {
    let held = match host {
        Some(host) => Stdio::from(OwnedFd::from(host.into_parts().1.into_std()?)),
        None => Stdio::null(),
    };
    let (owner, pid) = (noted.owner.to_string(), system.pid.to_string());
    Command::new("sh")
        .args(["-c", WATCHER, "sh", &owner, &pid])
        .args([&system.folder, &noted.path])
        .stdin(held)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_a_system_that_may_have_ended() {
        let ended = SharedSystem {
            port: 10_240,
            pid: std::process::id(),
            folder: "/tmp/a folder".into(),
        };
        let note = format!("10240 {} /tmp/a folder", ended.pid);
        assert_eq!(read(&note), Some(ended.clone()));
        assert!(!ended.runs(), "this process is no system");
        assert_eq!(read(""), None);
        assert_eq!(read("10240 1"), None);
    }
}
