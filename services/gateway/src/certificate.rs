//! The certificate that the gateway shows: read at the start, looked at again every few seconds. A new one that is good
//! is shown to whoever connects from then on; connections that are there keep theirs. A pair of files that cannot serve
//! changes nothing but the log and the metrics.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::clock;
use tg_tls::rustls::ServerConfig;
use tg_tls::{FileError, Pair, PairFiles};
use tokio::sync::{Notify, watch};

use crate::error::GatewayError;

/// Pause between two looks at the files.
const LOOK: Duration = Duration::from_secs(3);

/// What is shown.
struct Shown {
    pair: Pair,
    config: Arc<ServerConfig>,
}

/// Why a pair of files does not take the place of the one that is shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Unfit {
    #[error("gateway.tls_{0}")]
    File(#[from] FileError),
    #[error("gateway.tls_cert: the certificate must be valid now")]
    NotNow,
}

/// The certificate of a running gateway.
pub(crate) struct Certificate {
    files: PairFiles,
    shown: watch::Sender<Shown>,
    /// Somebody wants the files looked at now.
    wanted: Notify,
}

impl Certificate {
    /// Reads it. One that has ended is served, as its files may be better in a moment.
    pub(crate) async fn load(files: PairFiles) -> Result<Self, GatewayError> {
        let shown = read(&files).await?;
        if !shown.pair.is_valid_at(clock::seconds()) {
            tracing::warn!("{}", Unfit::NotNow);
        }
        tell(&shown.pair);
        metrics::gauge!("tg_gateway_certificate_refused").set(0);
        let shown = watch::Sender::new(shown);
        Ok(Self {
            files,
            shown,
            wanted: Notify::new(),
        })
    }

    /// How a connection that begins now is made secure.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.shown.borrow().config.clone()
    }

    /// Has the files looked at now.
    pub(crate) fn renew(&self) {
        self.wanted.notify_one();
    }

    /// Looks at the files for as long as the gateway runs.
    pub(crate) async fn follow(self: Arc<Self>) {
        let mut refused = None;
        loop {
            // Files tell nobody that they changed.
            let _ = tokio::time::timeout(LOOK, self.wanted.notified()).await;
            let unfit = self.look().await.err();
            if let Some(why) = unfit.as_ref().filter(|_| unfit != refused) {
                tracing::warn!("a new certificate cannot be used, the one before stays: {why}");
            }
            let is_refused = u8::from(unfit.is_some());
            metrics::gauge!("tg_gateway_certificate_refused").set(is_refused);
            refused = unfit;
        }
    }

    /// Shows what the files hold, if it is something else and good.
    async fn look(&self) -> Result<(), Unfit> {
        let fresh = read(&self.files).await?;
        if fresh.pair == self.shown.borrow().pair {
            return Ok(());
        }
        if !fresh.pair.is_valid_at(clock::seconds()) {
            return Err(Unfit::NotNow);
        }
        tell(&fresh.pair);
        tracing::info!("the certificate was renewed");
        self.shown.send_replace(fresh);
        Ok(())
    }
}

async fn read(files: &PairFiles) -> Result<Shown, FileError> {
    let files = files.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let pair = files.read()?;
        let config = pair.server()?;
        Ok(Shown { pair, config })
    });
    match reading.await {
        Ok(read) => read,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// What operators should know of a pair that is shown from now on.
fn tell(pair: &Pair) {
    if pair.is_open() {
        tracing::warn!(
            "gateway.tls_key: other accounts of this machine may read the file; it should be its owner's alone"
        );
    }
    metrics::gauge!("tg_gateway_certificate_expiry_timestamp_seconds").set(pair.ends() as f64);
}
