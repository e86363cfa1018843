//! A private RabbitMQ node for demos and benches: prints its URL, on SIGUSR1 its queues, ends on SIGTERM.

use tg_testkit::rabbitmq::RabbitNode;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut node = RabbitNode::start().await?;
    println!("{}", node.url());
    let mut list = signal(SignalKind::user_defined1())?;
    let mut end = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = list.recv() => {
                let mut queues = node.queues().await?;
                queues.sort_by(|a, b| a.name.cmp(&b.name));
                let lines: Vec<_> = queues.into_iter().map(|queue| queue.name).collect();
                println!("{}", lines.join("\n"));
            }
            _ = end.recv() => break,
            _ = tokio::signal::ctrl_c() => break,
        }
    }
    node.stop().await
}
