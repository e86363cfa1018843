//! Connecting to the broker at the start, and in words for operators why that failed: which setting is at fault.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use tg_mesh::WireRules;
use tg_mesh::rabbitmq::{ConnectError, RabbitBus, RabbitOptions};
use tg_tls::HandshakeError;
use tokio::time::Instant;

use crate::settings::AmqpUrl;

/// How long a process waits for a broker that is not there yet.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Pause between two tries.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Connects to the broker; one that is still starting is waited for.
pub(crate) async fn connect(
    url: &AmqpUrl,
    rules: &'static WireRules,
    options: RabbitOptions,
) -> Result<RabbitBus> {
    let until = Instant::now() + TIMEOUT;
    loop {
        match RabbitBus::connect(url.expose(), rules, options.clone()).await {
            Err(ConnectError::Down) if Instant::now() < until => {
                tracing::info!("waiting for the broker");
                tokio::time::sleep(RETRY_DELAY).await;
            }
            Err(ConnectError::Handshake(fault)) => bail!("{}", told(fault)),
            Err(ConnectError::File(fault)) => bail!("bus_tls.{fault}"),
            bus => {
                return bus.context("bus: the broker cannot be reached; check the setting `bus`");
            }
        }
    }
}

/// What is to be done about a connection that does not become a secure one.
fn told(fault: HandshakeError) -> &'static str {
    match fault {
        HandshakeError::Untrusted => {
            "bus_tls.ca: the broker's certificate is signed by no authority that is trusted; bus_tls.ca names the file of \
             the one that signed it"
        }
        HandshakeError::OtherHost => {
            "bus: the broker's certificate is not for the host that `bus` names"
        }
        HandshakeError::NotNow => "bus: the broker's certificate is not valid at this time",
        HandshakeError::Invalid => "bus: the broker's certificate is not valid",
        HandshakeError::NoTls => {
            "bus: the broker speaks no TLS at this port; amqps:// needs the port of its TLS listener"
        }
        HandshakeError::Required => {
            "bus_tls.cert: the broker asks for a certificate; bus_tls.cert and bus_tls.key name its files"
        }
        HandshakeError::Refused => {
            "bus_tls.cert: the broker does not take the certificate that bus_tls.cert names"
        }
        HandshakeError::Other => {
            "bus: the broker and this process find no way to a secure connection"
        }
    }
}
