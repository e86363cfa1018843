//! A broker of three nodes with quorum queues loses its nodes one after the other: what was confirmed is there in the end, and
//! what comes meanwhile is confirmed as before.

mod alone {
    use std::time::Duration;

    use anyhow::{Result, ensure};
    use futures::future::join_all;
    use serde_json::json;
    use tg_testkit::process::Launch;
    use tg_testkit::rabbitmq::RabbitCluster;
    use tokio::sync::watch;
    use tokio::time::sleep;

    use crate::confirmed::{confirm, found};
    use crate::world::post;

    /// Imports under way at a time.
    const IMPORTS: usize = 4;
    /// How long a node is away, and the system has all of them again.
    const PAUSE: Duration = Duration::from_secs(3);

    #[tokio::test]
    async fn nothing_that_was_confirmed_is_lost() -> Result<()> {
        let mut cluster = RabbitCluster::start().await?;
        let server = Launch::up()
            .env("THREADGRAPH_BROKER__QUEUES", "quorum")
            .arg("--bus")
            .arg(cluster.url())
            .ready()
            .await?;
        let url = server.url();
        let (enough, until) = watch::channel(false);
        let imports = (0..IMPORTS).map(|n| confirm(url.clone(), n, until.clone()));
        let lose = async {
            for at in 0..cluster.nodes.len() {
                sleep(PAUSE).await;
                cluster.nodes[at].kill9().await?;
                sleep(PAUSE).await;
                // A question is served while a node is away.
                let ask = json!({"collection": "default", "limit": 1});
                let path = "api/v1/flow/default/service/triples";
                let (status, told) = post(&url, path, ask).await?;
                ensure!(status == 200, "{status}: {told}\n{}", server.log());
                cluster.nodes[at].restart().await?;
                cluster.is_whole().await?;
            }
            sleep(PAUSE).await;
            enough.send_replace(true);
            anyhow::Ok(())
        };
        let (told, lost) = tokio::join!(join_all(imports), lose);
        lost?;
        found(&url, told, Duration::ZERO).await
    }
}
