//! Fifty streams side by side on one socket: each question has its own nonce, each answer only its own.

use anyhow::Result;
use serde_json::json;
use tg_testkit::model::two_step_react;
use tg_testkit::socket::text_of;

use crate::shared::Workspace;
use crate::world::Bus;

async fn fifty(bus: Bus) -> Result<()> {
    let rules = two_step_react("calculator", json!({"expression": "6*7"}), 8);
    let (place, _model) = Workspace::scripted(bus, rules).await?;
    let socket = place.socket().await?;
    let nonce = |n: usize| format!("nonce-many-{n}-x");
    let asks = (0..50).map(|n| {
        let request = json!({"question": format!("What? {}", nonce(n)), "streaming": true});
        socket.ask("agent", "default", request)
    });
    for (n, frames) in futures::future::join_all(asks)
        .await
        .into_iter()
        .enumerate()
    {
        let answer = text_of(&frames?, "answer");
        assert!(answer.contains(&nonce(n)), "{n}: {answer}");
        for other in (0..50).filter(|other| *other != n) {
            assert!(
                !answer.contains(&nonce(other)),
                "{n} has the answer of {other}: {answer}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    fifty(Bus::Embedded).await
}

#[tokio::test]
async fn on_rabbitmq() -> Result<()> {
    fifty(Bus::Rabbit).await
}
