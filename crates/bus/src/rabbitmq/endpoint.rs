//! Where the broker is, and how a connection to it is made: in the clear, or secure by what is in files at that moment.

use std::io;

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

/// Where the broker is.
pub(super) struct Endpoint {
    uri: AMQPUri,
    tls: ClientFiles,
}

impl Endpoint {
    /// From its address.
    pub(super) fn new(url: &str, options: &RabbitOptions) -> Result<Self, ConnectError> {
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
        let tls = options.tls.clone();
        Ok(Self { uri, tls })
    }

    /// Scheme, host, port and virtual host; nothing that could be a secret.
    pub(super) fn address(&self) -> String {
        let AMQPUri {
            scheme,
            authority,
            vhost,
            ..
        } = &self.uri;
        let (host, port) = (&authority.host, authority.port);
        // The one that is called `/` is what an address without any means.
        let vhost = if vhost == "/" { "" } else { vhost };
        format!("{scheme}://{host}:{port}/{vhost}")
    }

    /// Opens two connections: one that publishes, and one that reads, the longest frames there are if asked to.
    pub(super) async fn open(
        &self,
        reads_longest: bool,
    ) -> lapin::Result<(Connection, Connection)> {
        let mut reading = self.uri.clone();
        if reads_longest {
            let longest = Some(limits::LONGEST_FRAME as u32);
            reading.query.frame_max = reading.query.frame_max.max(longest);
        }
        let secure = match self.uri.scheme {
            AMQPScheme::AMQP => None,
            AMQPScheme::AMQPS => Some(connector(self.tls.clone()).await?),
        };
        let publishing = connect(self.uri.clone(), secure.clone(), "publishing");
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
