//! Whether a process that was started serves, and where it listens.

use std::time::Duration;

/// The loopback port in the first line of a log that is whole and has one of some words.
pub(crate) fn reported(log: &str, words: &[&str]) -> Option<u16> {
    let (whole, _) = log.rsplit_once('\n')?;
    let says = |line: &&str| words.iter().any(|one| line.contains(one));
    let (_, port) = whole.lines().find(says)?.split_once("127.0.0.1:")?;
    let end = port.find(|one: char| !one.is_ascii_digit());
    port.get(..end.unwrap_or(port.len()))?.parse().ok()
}

/// Whether the gateway at this URL says that its default flow serves.
pub(crate) async fn is_ready(client: &reqwest::Client, url: &str) -> bool {
    let asked = client.get(format!("{url}health/ready"));
    let answer = asked.timeout(Duration::from_secs(2)).send().await;
    answer.is_ok_and(|response| response.status().is_success())
}
