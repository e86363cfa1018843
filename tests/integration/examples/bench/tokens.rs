//! What the system adds to the way of a streamed token: from the model's socket to the client's, while many
//! answers are written at the pace of a model.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::future::try_join_all;
use serde_json::json;
use tg_testkit::model::{CLOCK, Options, Reply, Rule, ScriptedModel, clock};
use tg_testkit::socket::Socket;

/// Answers written at the same time, and the sockets they share.
const STREAMS: usize = 200;
const SOCKETS: usize = 8;
/// Tokens of an answer, and the model's pause before each.
const TOKENS: usize = 120;
const PACE: Duration = Duration::from_millis(50);
/// The answers begin one after the other within this, each at its own moment of the pause.
const BEGIN: Duration = Duration::from_millis(2_000);
/// Counted are the tokens written from here on, when all answers are being written, until before the first ends.
const COUNTED: (Duration, Duration) = (Duration::from_millis(2_750), Duration::from_millis(5_500));
/// Longest wait for an answer.
const BOUND: Duration = Duration::from_secs(60);

/// A model that writes when it wrote: an answer of tokens that are the moments they were sent at.
pub async fn model() -> Result<ScriptedModel> {
    let options = Options {
        keep_calls: false,
        counts_tokens: false,
        ..Options::default()
    };
    let mut pieces = vec![
        "Thought: I know the time.\n".to_owned(),
        "Final Answer: ".to_owned(),
    ];
    pieces.extend((0..TOKENS).map(|_| format!("{CLOCK} ")));
    let rule = Rule::always(Reply::pieces(pieces).delayed(PACE));
    Ok(ScriptedModel::start_with(options, vec![rule]).await?)
}

/// The 99th percentile of the delay of all tokens, in milliseconds: of a run of the agent, and of a bare
/// completion.
pub async fn delays(url: &str) -> Result<(f64, f64)> {
    let mut sockets = Vec::new();
    for _ in 0..SOCKETS {
        sockets.push(Arc::new(Socket::connect(url, "").await?));
    }
    // The first answers open connections.
    streams(&sockets, "agent", SOCKETS).await?;
    let agent = streams(&sockets, "agent", STREAMS).await?;
    let completion = streams(&sockets, "text-completion", STREAMS).await?;
    Ok((agent, completion))
}

async fn streams(sockets: &[Arc<Socket>], service: &str, count: usize) -> Result<f64> {
    let begun = clock();
    let micros = |span: Duration| begun + span.as_micros() as u64;
    let counted = micros(COUNTED.0)..micros(COUNTED.1);
    let answers = (0..count).map(|n| async move {
        // No whole number of pauses: as answers that began by themselves would be.
        let beat = PACE * n as u32 / count as u32;
        tokio::time::sleep(BEGIN * n as u32 / count as u32 + beat).await;
        stream(&sockets[n % sockets.len()], service, n).await
    });
    let tokens = try_join_all(answers).await?.into_iter().flatten();
    let mut delays: Vec<f64> = tokens
        .filter(|(sent, _)| counted.contains(sent))
        .map(|(_, delay)| delay)
        .collect();
    ensure!(
        !delays.is_empty(),
        "no token was written in the time counted"
    );
    delays.sort_by(f64::total_cmp);
    Ok(delays[(delays.len() - 1) * 99 / 100])
}

/// When each token of one answer was written, and its delay in milliseconds.
async fn stream(socket: &Socket, service: &str, n: usize) -> Result<Vec<(u64, f64)>> {
    let request = match service {
        "agent" => json!({"question": format!("When? nonce-{n}"), "streaming": true}),
        _ => json!({"system": "", "prompt": "When?", "streaming": true}),
    };
    let envelope = json!({"service": service, "flow": "default", "request": request});
    let mut frames = socket.send(envelope).await?;
    let mut delays = Vec::with_capacity(TOKENS);
    let read = async {
        while let Some(frame) = frames.next().await {
            let now = clock();
            let part = &frame["response"];
            let said = match service {
                "agent" if part["message_type"] != "answer" => None,
                "agent" => part["content"].as_str(),
                _ => part["response"].as_str(),
            };
            let sent = said.unwrap_or_default().split_whitespace();
            delays.extend(sent.filter_map(|word| {
                let sent: u64 = word.parse().ok()?;
                Some((sent, now.saturating_sub(sent) as f64 / 1_000.0))
            }));
        }
    };
    tokio::time::timeout(BOUND, read)
        .await
        .context("no answer")?;
    ensure!(
        delays.len() == TOKENS,
        "{} tokens came of {TOKENS}",
        delays.len()
    );
    Ok(delays)
}
