//! A command takes no longer than a person notices, with the start of its process.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tg_testkit::machine::Machine;
use tg_testkit::process::{LOOKING_AROUND, bin_dir};
use tokio::process::Command;

use crate::world::{Bus, up};

/// Runs of each command; the median counts.
const RUNS: usize = 15;
/// A command that took longer is measured again, so often: others on the machine only ever add to its time.
const ROUNDS: usize = 5;
/// What a command's own process may work, also in a build that is made for debugging; on a slower machine more by as much.
const WORK: f64 = 0.015;
/// From its start to its end, with the server's part, in such a build and with others on the machine; on a slower one more
/// by as much. The build that ships is held to 15 ms by the bench.
const WHOLE: f64 = 0.25;

/// Seconds from start to end, and those that its process had a processor.
async fn took(url: &str, args: &[&str]) -> Result<(f64, f64)> {
    let timed = "TIMEFORMAT='%3R %3U %3S'; time \"$0\" \"$@\"";
    let ran = Command::new("bash")
        .args(["-c", timed])
        .arg(bin_dir()?.join("tg"))
        .args(args)
        .env("TRUSTGRAPH_URL", url)
        .env("XDG_CONFIG_HOME", "/nowhere")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ran = tokio::time::timeout(Duration::from_secs(60), ran)
        .await
        .with_context(|| format!("{args:?} does not end"))??;
    ensure!(ran.status.success(), "{args:?}: {ran:?}");
    let told = String::from_utf8(ran.stderr)?;
    let last = told.lines().last().unwrap_or_default();
    let times: Vec<f64> = last
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| told.clone())?;
    let [whole, user, system] = times[..] else {
        anyhow::bail!("no times: {told}");
    };
    Ok((whole, user + system))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

async fn medians(url: &str, args: &[&str]) -> Result<(f64, f64)> {
    let (mut whole, mut work) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let took = took(url, args).await?;
        whole.push(took.0);
        work.push(took.1);
    }
    Ok((median(whole), median(work)))
}

async fn at_once(bus: Bus) -> Result<()> {
    let (server, _node) = up(bus).await?;
    let url = server.url();
    let mut slow = Vec::new();
    for args in LOOKING_AROUND {
        // Parts of what is allowed on the machine as it is at that moment.
        let (mut whole, mut work) = (f64::MAX, f64::MAX);
        for _ in 0..ROUNDS {
            let slower = Machine::measured().slower();
            let allowed = (WHOLE * slower, WORK * slower);
            let took = medians(&url, args).await?;
            println!(
                "{args:?}: took {:.3} and {:.4} s of {:.3} and {:.4} s allowed, machine x{slower:.1}",
                took.0, took.1, allowed.0, allowed.1
            );
            (whole, work) = (whole.min(took.0 / allowed.0), work.min(took.1 / allowed.1));
            if whole <= 1.0 && work <= 1.0 {
                break;
            }
        }
        if whole > 1.0 || work > 1.0 {
            slow.push((args, whole, work));
        }
    }
    ensure!(
        slow.is_empty(),
        "so many times what is allowed, whole and own: {slow:?}"
    );
    Ok(())
}

/// Held to seconds or less: these have the machine to themselves (`make test`).
mod alone {
    use super::*;

    #[tokio::test]
    async fn on_the_embedded_bus() -> Result<()> {
        at_once(Bus::Embedded).await
    }

    #[tokio::test]
    async fn on_rabbitmq() -> Result<()> {
        at_once(Bus::Rabbit).await
    }
}
