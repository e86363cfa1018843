//! Settings of the gateway, and why it would not start.

use std::net::SocketAddr;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;

/// Who may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Regime {
    /// Everybody who reaches the listener may do everything; loopback only.
    #[default]
    None,
    /// Users, keys and roles as the iam service says.
    Iam,
}

/// What happens to a running question when its client goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDisconnect {
    /// It is cancelled, down to the model provider.
    #[default]
    Cancel,
    /// It runs to its end; nobody hears the answer.
    Finish,
}

/// Bounds. At each one the client is told; nothing queues without end.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest HTTP body.
    pub body: usize,
    /// Largest WebSocket message; a larger one closes the socket with code 1009.
    pub frame: usize,
    /// Questions under way on one socket.
    pub per_socket: usize,
    /// Questions under way in one workspace, over all doors.
    pub per_workspace: usize,
    /// Open connections; more wait to be accepted.
    pub connections: usize,
    /// Open connections from one address; more are refused.
    pub connections_per_address: usize,
    /// Open WebSockets of callers who are known, imports included.
    pub sockets: usize,
    /// Open WebSockets whose caller is not known yet; one more takes the place of the oldest.
    pub strangers: usize,
    /// The same from one address.
    pub strangers_per_address: usize,
    /// Largest body or frame of a caller who is not known.
    pub stranger: usize,
    /// Bytes of memory that all requests may need together while they are read, by an estimate that errs upwards.
    /// One that needs more than seven eighths alone is refused: the rest is for small ones.
    pub parsing: usize,
    /// Bytes of bodies that are being received; less than half for one user.
    pub receiving: usize,
    /// Bytes and frames of a socket that wait for one of its questions to end; beyond, no more are read.
    pub look_ahead: (usize, usize),
    /// Questions of one user that go on without their caller.
    pub detached_per_user: usize,
    /// Frames waiting to be written to one socket.
    pub outgoing: usize,
    /// Records of one import that are not confirmed yet.
    pub import: usize,
    /// Remembered keys, and remembered decisions.
    pub cache: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: tg_schemas::limits::REST_BODY,
            frame: tg_schemas::limits::SOCKET_FRAME,
            per_socket: 64,
            per_workspace: 1024,
            connections: 4096,
            connections_per_address: 2048,
            sockets: 1024,
            strangers: 512,
            strangers_per_address: 256,
            stranger: 4 << 10,
            parsing: 1 << 30,
            receiving: 1 << 30,
            look_ahead: (4 << 20, 1024),
            detached_per_user: 32,
            outgoing: 64,
            import: 32,
            cache: 10_000,
        }
    }
}

/// Settings of the gateway.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Who may come in.
    pub regime: Regime,
    /// Bounds.
    pub limits: Limits,
    /// Policy when a client goes away.
    pub on_disconnect: OnDisconnect,
    /// Deadline of a question that is not streamed; a streamed one has the mesh's own.
    pub timeout: Duration,
    /// Pause between signs of life on an event stream.
    pub heartbeat: Duration,
    /// Pause between pings on a socket. That one is not answered means nothing: some clients answer none while they work.
    pub ping: Duration,
    /// How long a socket may stay open without a caller that is known.
    pub authentication: Duration,
    /// How long running work may go on when the process stops.
    pub drain: Duration,
    /// Workspace of the anonymous caller in regime `none`.
    pub default_workspace: String,
    /// Source of `/metrics`; absent: an empty page.
    pub metrics: Option<PrometheusHandle>,
}

impl GatewayOptions {
    /// Default settings on an address.
    pub fn new(listen: SocketAddr, regime: Regime) -> Self {
        Self {
            listen,
            regime,
            limits: Limits::default(),
            on_disconnect: OnDisconnect::default(),
            timeout: Duration::from_secs(600),
            heartbeat: Duration::from_secs(15),
            ping: Duration::from_secs(30),
            authentication: Duration::from_secs(10),
            drain: Duration::from_secs(10),
            default_workspace: "default".to_owned(),
            metrics: None,
        }
    }

    /// Refuses what would leave the mesh open to the network.
    pub fn check(&self) -> Result<(), GatewayError> {
        if self.regime == Regime::None && !self.listen.ip().is_loopback() {
            return Err(GatewayError::Open {
                listen: self.listen,
            });
        }
        Ok(())
    }
}

/// Why the gateway did not start. For operators, never shown to clients.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// No authentication on an address that others can reach.
    #[error(
        "refusing to listen on {listen} without authentication: anybody on the network could do \
         everything. Either switch authentication on (--auth iam) or listen on a loopback address \
         (--listen 127.0.0.1:{port})", port = listen.port()
    )]
    Open {
        /// The address asked for.
        listen: SocketAddr,
    },
    /// The address cannot be used.
    #[error("cannot listen on {listen}: {source}")]
    Bind {
        /// The address asked for.
        listen: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_door_is_refused_and_the_text_says_how_to_fix_it() {
        let check = |listen: &str, regime| {
            GatewayOptions::new(listen.parse().unwrap(), regime)
                .check()
                .map_err(|error| error.to_string())
        };
        assert!(check("127.0.0.1:0", Regime::None).is_ok());
        assert!(check("[::1]:0", Regime::None).is_ok());
        assert!(check("0.0.0.0:8888", Regime::Iam).is_ok());
        let text = check("0.0.0.0:8888", Regime::None).unwrap_err();
        assert!(
            text.contains("--auth iam") && text.contains("--listen 127.0.0.1:8888"),
            "{text}"
        );
    }
}
