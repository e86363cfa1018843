//! A broker of three nodes with quorum queues loses its nodes one after the other, or one is cut off or suspended and comes back: what
//! was confirmed is there in the end, and what comes meanwhile is confirmed as before.

mod alone {
    use std::time::Duration;

    use anyhow::{Context, Result, ensure};
    use futures::future::join_all;
    use serde_json::json;
    use tg_testkit::process::Launch;
    use tg_testkit::rabbitmq::RabbitCluster;
    use tokio::sync::watch;
    use tokio::time::{Instant, sleep};

    use crate::confirmed::{confirm, found};
    use crate::world::post;

    /// Imports under way at a time.
    const IMPORTS: usize = 4;
    /// How long a node is away, and the system has all of them again.
    const PAUSE: Duration = Duration::from_secs(3);
    /// By then a connection that is silent was given up, and another one made.
    const BOUND: Duration = Duration::from_secs(180);

    /// A question is served, if not at once: a process gives up a connection when it was silent for twice its heartbeat.
    async fn is_served(url: &str) -> Result<()> {
        let end = Instant::now() + BOUND;
        loop {
            let ask = json!({"collection": "default", "limit": 1});
            let asked = post(url, "api/v1/flow/default/service/triples", ask).await;
            if matches!(&asked, Ok((200, _))) {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{asked:?}");
            sleep(PAUSE).await;
        }
    }

    /// Ends the imports after this, also where it fails: they would go on for ever, and nobody would see why.
    async fn then(
        lose: impl Future<Output = Result<()>>,
        enough: &watch::Sender<bool>,
    ) -> Result<()> {
        let lost = lose.await;
        enough.send_replace(true);
        lost
    }

    /// How the first node is away, which is the one that the system is connected to.
    #[derive(Debug, Clone, Copy)]
    enum Away {
        /// It pauses, as the network between it and the others is broken.
        CutOff,
        /// Its process stands still.
        Suspended,
    }

    impl Away {
        async fn begin(self, cluster: &RabbitCluster) -> Result<()> {
            match self {
                Self::CutOff => cluster.cut(0).await,
                Self::Suspended => cluster.freeze(0).await,
            }
        }

        async fn end(self, cluster: &RabbitCluster) -> Result<()> {
            match self {
                Self::CutOff => cluster.mend(0).await,
                Self::Suspended => cluster.thaw(0).await,
            }
        }
    }

    #[tokio::test]
    async fn nothing_is_lost_where_a_node_is_cut_off() -> Result<()> {
        nothing_is_lost(&RabbitCluster::start().await?, Away::CutOff).await
    }

    #[tokio::test]
    async fn nothing_is_lost_where_a_node_is_suspended() -> Result<()> {
        nothing_is_lost(&RabbitCluster::start_watchful().await?, Away::Suspended).await
    }

    async fn nothing_is_lost(cluster: &RabbitCluster, away: Away) -> Result<()> {
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
            sleep(PAUSE).await;
            away.begin(cluster).await?;
            let served = is_served(&url).await;
            served.with_context(|| format!("a node is away: {away:?}\n{}", server.log()))?;
            away.end(cluster).await?;
            let served = is_served(&url).await;
            served.with_context(|| format!("the node is back\n{}", server.log()))?;
            sleep(PAUSE).await;
            anyhow::Ok(())
        };
        let lose = then(lose, &enough);
        let (told, lost) = tokio::join!(join_all(imports), lose);
        lost?;
        found(&url, told, Duration::ZERO).await
    }

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
                let served = is_served(&url).await;
                let lost = || format!("node {at} was killed\n{}", server.log());
                served.with_context(lost)?;
                cluster.nodes[at].restart().await.with_context(lost)?;
                cluster.is_whole().await?;
            }
            sleep(PAUSE).await;
            anyhow::Ok(())
        };
        let lose = then(lose, &enough);
        let (told, lost) = tokio::join!(join_all(imports), lose);
        lost?;
        found(&url, told, Duration::ZERO).await
    }
}
