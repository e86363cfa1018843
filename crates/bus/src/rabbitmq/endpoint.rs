//! Where the broker is, and how a connection to it is made: in the clear, or secure by what is in files at that moment.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use lapin::tcp::{AMQPUriTcpExt, RustlsConnector};
use lapin::uri::{AMQPScheme, AMQPUri};
use lapin::{Connection, ConnectionProperties, ErrorKind};
use tg_schemas::limits;
use tg_tls::{ClientFiles, FileError, HandshakeError};

use super::options::RabbitOptions;
use super::patience::patient;

/// Why a broker cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// That is no address of a broker.
    #[error("the address must be the URL of a message bus")]
    Address,
    /// Nobody answers there, or lets this process in; the log says which.
    #[error("the message bus is not reachable")]
    Down,
    /// A file for a secure connection cannot serve.
    #[error("{0}")]
    File(FileError),
    /// Both sides do not come to a secure connection.
    #[error("{0}")]
    Handshake(HandshakeError),
}

impl ConnectError {
    /// What an attempt to connect came to.
    pub(super) fn of(error: &lapin::Error) -> Self {
        let ErrorKind::IOError(error) = error.kind() else {
            return Self::Down;
        };
        if let Some(fault) = error.get_ref().and_then(|held| held.downcast_ref()) {
            return Self::File(FileError::clone(fault));
        }
        HandshakeError::of(&**error).map_or(Self::Down, Self::Handshake)
    }
}

/// Nodes that an address may name.
const NODES: usize = 16;

/// Where the broker is.
pub(super) struct Endpoint {
    /// Its nodes, at least one: the same but for host and port.
    nodes: Vec<AMQPUri>,
    /// The node that was reached last.
    last: AtomicUsize,
    tls: ClientFiles,
}

/// The address with each of the nodes that it names: `amqp://user:password@one:5672,two:5672/vhost`.
fn each_node(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return vec![url.to_owned()];
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    let node = |host| format!("{scheme}://{user}{host}{path}");
    hosts.split(',').take(NODES).map(node).collect()
}

impl Endpoint {
    /// From its address.
    pub(super) fn new(url: &str, options: &RabbitOptions) -> Result<Self, ConnectError> {
        let nodes = each_node(url).into_iter().map(|url| {
            let mut uri: AMQPUri = url.parse().map_err(|reason: String| {
                tracing::error!(%reason, "the broker's address is not an AMQP URL");
                ConnectError::Address
            })?;
            uri.query.heartbeat = Some(options.heartbeat);
            // A URL's own has precedence.
            uri.query.frame_max = uri.query.frame_max.or(Some(limits::FRAME as u32));
            if uri.vhost.is_empty() {
                // What people mean by a trailing slash.
                "/".clone_into(&mut uri.vhost);
            }
            Ok(uri)
        });
        Ok(Self {
            nodes: nodes.collect::<Result<_, _>>()?,
            last: AtomicUsize::new(0),
            tls: options.tls.clone(),
        })
    }

    /// The node that was reached last.
    fn node(&self) -> &AMQPUri {
        &self.nodes[self.last.load(Ordering::Relaxed) % self.nodes.len()]
    }

    /// Scheme, host, port and virtual host; nothing that could be a secret.
    pub(super) fn address(&self) -> String {
        let AMQPUri {
            scheme,
            authority,
            vhost,
            ..
        } = self.node();
        let (host, port) = (&authority.host, authority.port);
        // The one that is called `/` is what an address without any means.
        let vhost = if vhost == "/" { "" } else { vhost };
        format!("{scheme}://{host}:{port}/{vhost}")
    }

    /// Opens two connections to one node: one that publishes, and one that reads, the longest frames there are if asked to. The
    /// node that was reached last comes first, then each other one once.
    pub(super) async fn open(
        &self,
        reads_longest: bool,
    ) -> lapin::Result<(Connection, Connection)> {
        let first = self.last.load(Ordering::Relaxed);
        let mut outcome = self.open_at(self.node(), reads_longest).await;
        for next in (first + 1)..(first + self.nodes.len()) {
            if outcome.is_ok() {
                break;
            }
            self.last.store(next % self.nodes.len(), Ordering::Relaxed);
            outcome = self.open_at(self.node(), reads_longest).await;
        }
        outcome
    }

    async fn open_at(
        &self,
        uri: &AMQPUri,
        reads_longest: bool,
    ) -> lapin::Result<(Connection, Connection)> {
        let mut reading = uri.clone();
        if reads_longest {
            let longest = Some(limits::LONGEST_FRAME as u32);
            reading.query.frame_max = reading.query.frame_max.max(longest);
        }
        let secure = match uri.scheme {
            AMQPScheme::AMQP => None,
            AMQPScheme::AMQPS => Some(connector(self.tls.clone()).await?),
        };
        let publishing = connect(uri.clone(), secure.clone(), "publishing");
        let consuming = connect(reading, secure.clone(), "consuming");
        if secure.is_none() {
            // A broker that just starts refuses one and leaves the other without an answer.
            return tokio::try_join!(publishing, consuming);
        }
        // Both to their ends: what is given up half-way goes on in a thread of the library, which panics where the runtime
        // ends meanwhile.
        let (publishing, consuming) = tokio::join!(publishing, consuming);
        Ok((publishing?, consuming?))
    }
}

/// How connections are made secure now: a certificate that was renewed counts from the next connect on.
async fn connector(files: ClientFiles) -> io::Result<RustlsConnector> {
    let read = tokio::task::spawn_blocking(move || files.config());
    let config = read.await.map_err(io::Error::other)?;
    config.map(Into::into).map_err(io::Error::other)
}

async fn connect(
    uri: AMQPUri,
    secure: Option<RustlsConnector>,
    role: &str,
) -> lapin::Result<Connection> {
    let properties =
        ConnectionProperties::default().with_connection_name(format!("threadgraph {role}").into());
    let Some(secure) = secure else {
        return patient(Connection::connect_uri(uri, properties)).await;
    };
    let runtime = lapin::runtime::default_runtime()?;
    // The library's own way trusts the well-known authorities beside those that are named; here those that are named
    // are all.
    let opened = Connection::connector(
        uri,
        runtime,
        async move |uri: AMQPUri, runtime| {
            let mut plain = uri.clone();
            plain.scheme = AMQPScheme::AMQP;
            let stream = plain.connect_async(&runtime).await?;
            Ok(stream.into_rustls(&secure, &uri.authority.host).await?)
        },
        properties,
    );
    patient(opened).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::WireRules;

    #[test]
    fn an_address_may_name_several_nodes() {
        let all = [
            (
                "amqps://me:a,b%40@one:5671,two/shop?heartbeat=9",
                vec![
                    "amqps://me:a,b%40@one:5671/shop?heartbeat=9",
                    "amqps://me:a,b%40@two/shop?heartbeat=9",
                ],
            ),
            ("amqp://one", vec!["amqp://one"]),
            ("nonsense", vec!["nonsense"]),
        ];
        for (url, nodes) in all {
            assert_eq!(each_node(url), nodes);
        }
        let options = RabbitOptions::of(<&WireRules>::default());
        assert!(Endpoint::new("amqp://one:5672,two:port/", &options).is_err());
        let two = Endpoint::new("amqp://one:5672,two:5673/", &options);
        assert_eq!(two.map(|two| two.nodes.len()).ok(), Some(2));
    }

    #[test]
    fn an_address_is_told_without_what_may_be_secret() {
        for (url, told) in [
            (
                "amqps://me:hidden@broker.example:5671/shop?auth_mechanism=plain",
                "amqps://broker.example:5671/shop",
            ),
            ("amqp://me:hidden@127.0.0.1", "amqp://127.0.0.1:5672/"),
        ] {
            let endpoint = Endpoint::new(url, &RabbitOptions::of(<&WireRules>::default()));
            assert_eq!(
                endpoint.ok().map(|one| one.address()).as_deref(),
                Some(told)
            );
        }
    }
}
