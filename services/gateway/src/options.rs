//! Settings of the gateway.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tg_schemas::limits;
use tg_settings::SettingError;
use tg_tls::PairFiles;

use crate::error::GatewayError;
use crate::exposition::Exposition;
use crate::offers::Offers;

/// Who may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthMode {
    /// Everybody who reaches the listener may do everything; loopback only.
    #[default]
    None,
    /// Users, keys and roles as the iam service says.
    Iam,
}

tg_settings::options! {
    /// What a settings file says of the gateway: its bounds, at each of which the client is told, as nothing queues without
    /// end; and its certificate.
    pub struct Settings {
        /// File with the gateway's certificate in PEM form, first its own, then those between it and its authority. Read again
        /// every few seconds. Empty: no TLS.
        tls_cert: PathBuf = PathBuf::new();
        /// File with the key of that certificate in PEM form (PKCS#8, PKCS#1 or SEC1), not encrypted.
        tls_key: PathBuf = PathBuf::new();
        /// Origins whose web pages may ask `/v1`, `/langgraph` and `/mcp`, such as `https://chat.example`, separated by commas. Empty:
        /// no page of another origin.
        cors_origins: String = String::new();
        /// Origins such as `https://chat.example`, separated by commas, to which a user who signs in for a client of `/mcp` may be sent back.
        /// Whoever has one of them may ask users for their access. Empty: only programs on the user's own machine may.
        oauth_origins: String = String::new();
        /// Largest HTTP body, in bytes.
        body_bytes: usize = limits::REST_BODY, Whole(1_024..=limits::REST_BODY as u64);
        /// Largest WebSocket message, in bytes; a larger one closes the socket with code 1009.
        frame_bytes: usize = limits::SOCKET_FRAME, Whole(4_096..=limits::SOCKET_FRAME as u64);
        /// Concurrent requests on one socket; beyond, no more are read from it.
        requests_per_socket: usize = 64, Whole(1..=65_536);
        /// Concurrent requests in one workspace, over all endpoints.
        requests_per_workspace: usize = 1_024, Whole(1..=1_000_000);
        /// Requests a second that are made with one API key, over all endpoints; ten seconds' worth may come at once. 0: as many
        /// as there are.
        requests_a_second_of_a_key: usize = 0, Whole(0..=1_000_000);
        /// The same of one user, whatever they come with. Without access control everybody is one user.
        requests_a_second_of_a_user: usize = 0, Whole(0..=1_000_000);
        /// The same from one address (of IPv6 a /64), whoever asks, logins and refused keys among them.
        requests_a_second_of_an_address: usize = 0, Whole(0..=1_000_000);
        /// Open connections; more wait to be accepted. Fewer where the system has few file descriptors.
        connections: usize = 4_096, Whole(1..=1_000_000);
        /// Open connections from one address; more are refused.
        connections_per_address: usize = 2_048, Whole(1..=1_000_000);
        /// Open WebSockets of authenticated connections, imports included.
        sockets: usize = 1_024, Whole(1..=1_000_000);
        /// The same of one user; of one address without access control.
        sockets_per_user: usize = 512, Whole(1..=1_000_000);
        /// Open WebSockets of unauthenticated connections (strangers); one more takes the place of the oldest.
        strangers: usize = 512, Whole(1..=1_000_000);
        /// The same from one address.
        strangers_per_address: usize = 256, Whole(1..=1_000_000);
        /// Largest body or frame of an unauthenticated connection, in bytes.
        stranger_bytes: usize = 4_096, Whole(1_024..=1 << 20);
        /// Longest time, in seconds, that an unauthenticated connection may take to send a body, or to authenticate on a WebSocket.
        stranger_seconds: usize = 10, Whole(1..=600);
        /// Slowest body of a request, in bytes a second; one that is slower for half a minute is given up.
        body_bytes_per_second: usize = 256, Whole(1..=1 << 20);
        /// Memory that all requests may need together while they are read, in MiB, by an estimate that errs upwards.
        /// One that needs more than seven eighths alone is refused: the rest is for small ones.
        parsing_mb: usize = 1_024, Whole(64..=1 << 20);
        /// Bodies that are being received, and what sockets sent ahead, in MiB; less than half for one user. A quarter is for
        /// messages of more than 64 KiB while they arrive on sockets, none of which is larger than half of that.
        receiving_mb: usize = 1_024, Whole(64..=1 << 20);
        /// Answers that wait until clients have read them, over sockets and HTTP, in MiB; half for one user. Who finds no room waits.
        sending_mb: usize = 256, Whole(1..=1 << 20);
        /// What a socket may send ahead while its questions wait for one to end, in MiB; beyond, no more is read.
        look_ahead_mb: usize = 4, Whole(1..=1_024);
        /// The same in frames.
        look_ahead_frames: usize = 1_024, Whole(1..=65_536);
        /// Detached requests of one user, which continue without their caller.
        detached_per_user: usize = 32, Whole(0..=65_536);
        /// Frames waiting to be written to one socket.
        outgoing_frames: usize = 64, Whole(1..=65_536);
        /// Records of one import that are not confirmed yet.
        import_records: usize = 32, Whole(1..=65_536);
        /// Longest time in which a store says nothing of the imports whose clients asked for `settled`, in seconds; what is not
        /// confirmed by then is reported as unconfirmed. While it says something of others, it is behind and not away.
        import_settle_seconds: usize = 30, Whole(1..=3_600);
        /// Longest time that a record of such an import may take in all, in seconds, however much the store says of others.
        import_settle_most_seconds: usize = 600, Whole(1..=86_400);
        /// Frames of one such import that no store has confirmed yet; beyond, no more are read.
        import_unsettled: usize = 1_024, Whole(1..=65_536);
        /// Records of all such imports that no store has confirmed yet, an eighth of them of one workspace. Who finds no room
        /// waits; a frame that makes more than that eighth is refused.
        imports_unsettled: usize = 65_536, Whole(2..=10_000_000);
        /// Remembered keys, and as many remembered decisions.
        cache_entries: usize = 10_000, Whole(1..=10_000_000);
    }
    given {
        /// Euros for a dollar; 0: not set.
        usd_eur_rate: f64,
    }
}

impl Settings {
    /// The mistakes that the type of a setting alone does not show.
    pub fn faults(&self) -> Vec<SettingError> {
        let given = |path: &PathBuf| !path.as_os_str().is_empty();
        let lacks = match (given(&self.tls_cert), given(&self.tls_key)) {
            (true, false) => Some(("tls_key", "is required beside gateway.tls_cert")),
            (false, true) => Some(("tls_cert", "is required beside gateway.tls_key")),
            _ => None,
        };
        let lists = [
            ("cors_origins", &self.cors_origins),
            ("oauth_origins", &self.oauth_origins),
        ];
        let wrong = lists.into_iter().filter(|(_, list)| !are_origins(list));
        let wrong = wrong.map(|(name, _)| (name, NO_ORIGINS));
        let faults = lacks.into_iter().chain(wrong);
        faults
            .map(|(name, why)| SettingError::new(name, why))
            .collect()
    }

    /// Whether pages of an origin may ask.
    pub(crate) fn names_origin(&self, origin: &str) -> bool {
        is_among(&self.cors_origins, origin)
    }

    /// Whether users who signed in for a client may be sent to an origin.
    pub(crate) fn sends_users_to(&self, origin: &str) -> bool {
        is_among(&self.oauth_origins, origin)
    }

    /// What is wrong with the files of the certificate, as they are now. Blocks.
    pub fn unreadable(&self) -> Option<SettingError> {
        let read = self.certificate().map(|files| files.read());
        let fault = read.and_then(Result::err)?;
        Some(SettingError::new(
            format!("tls_{}", fault.part),
            fault.why.to_string(),
        ))
    }

    /// Where the certificate is, if there is one.
    pub(crate) fn certificate(&self) -> Option<PairFiles> {
        let given = !self.tls_cert.as_os_str().is_empty();
        given.then(|| PairFiles {
            cert: self.tls_cert.clone(),
            key: self.tls_key.clone(),
        })
    }

    /// Longest time that an unauthenticated connection may take to send a body, or to authenticate on a socket.
    pub(crate) fn stranger_time(&self) -> Duration {
        Duration::from_secs(self.stranger_seconds as u64)
    }

    /// Bytes and frames that a socket may send ahead.
    pub(crate) fn look_ahead(&self) -> (usize, usize) {
        (self.look_ahead_mb << 20, self.look_ahead_frames)
    }
}

/// Most origins.
const ORIGINS: usize = 64;
/// What origins have to be.
const NO_ORIGINS: &str = "must be at most 64 origins as browsers send them, such as https://chat.example, separated by commas";

/// The origins of a list.
fn origins(list: &str) -> impl Iterator<Item = &str> {
    let origins = list.split(',').map(str::trim);
    origins.filter(|origin| !origin.is_empty())
}

fn is_among(list: &str, origin: &str) -> bool {
    origins(list).any(|one| one.eq_ignore_ascii_case(origin))
}

fn are_origins(list: &str) -> bool {
    origins(list).all(is_origin) && origins(list).count() <= ORIGINS
}

/// Whether a text is an origin: a scheme and a host, perhaps with a port, and nothing behind it. Each is named, so `*` is no origin.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else {
        return false;
    };
    let of_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let of_host = |c: char| c.is_ascii_alphanumeric() || "-_.:[]".contains(c);
    !scheme.is_empty()
        && !host.is_empty()
        && scheme.chars().all(of_scheme)
        && host.chars().all(of_host)
}

/// Settings of the gateway.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Who may come in.
    pub auth_mode: AuthMode,
    /// Bounds and certificate.
    pub settings: Settings,
    /// Deadline of a question that is not streamed; a streamed one has the mesh's own.
    pub timeout: Duration,
    /// Pause between signs of life on an event stream.
    pub heartbeat: Duration,
    /// Pause between pings on a socket. That one is not answered means nothing: some clients answer none while they work.
    pub ping: Duration,
    /// How long running work may go on when the process stops.
    pub drain: Duration,
    /// Workspace of the anonymous caller in mode `none`.
    pub default_workspace: String,
    /// Source of `/metrics`; absent: an empty page.
    pub metrics: Option<Exposition>,
    /// What `/mcp` offers beside the operations of this system: for tests of the protocol.
    #[doc(hidden)]
    pub offers: Option<Arc<dyn Offers>>,
}

impl GatewayOptions {
    /// Default settings on an address.
    pub fn new(listen: SocketAddr, auth_mode: AuthMode) -> Self {
        Self {
            listen,
            auth_mode,
            settings: Settings::default(),
            timeout: Duration::from_secs(600),
            heartbeat: Duration::from_secs(15),
            ping: Duration::from_secs(30),
            drain: Duration::from_secs(10),
            default_workspace: "default".to_owned(),
            metrics: None,
            offers: None,
        }
    }

    /// Refuses what would leave the mesh open to the network.
    ///
    /// # Errors
    /// [`GatewayError::Open`].
    pub fn check(&self) -> Result<(), GatewayError> {
        if self.auth_mode == AuthMode::None && !self.listen.ip().is_loopback() {
            return Err(GatewayError::Open {
                listen: self.listen,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_named_one_by_one() {
        let of = |origins: &str| Settings {
            cors_origins: origins.to_owned(),
            ..Settings::default()
        };
        let two = of("https://Chat.example, app://obsidian.md,http://[::1]:3000,");
        assert!(two.faults().is_empty());
        assert!(two.names_origin("https://chat.example"));
        assert!(two.names_origin("app://obsidian.md"));
        for other in [
            "",
            "null",
            "https://chat.example:8443",
            "http://chat.example",
        ] {
            assert!(!two.names_origin(other), "{other}");
        }
        assert!(!Settings::default().names_origin("https://chat.example"));
        let many = vec!["https://a.example"; ORIGINS + 1].join(",");
        for wrong in [
            "*",
            "null",
            "chat.example",
            "https://*.example",
            "https://chat.example/",
            many.as_str(),
        ] {
            let faults = of(wrong).faults();
            assert_eq!(faults, [SettingError::new("cors_origins", NO_ORIGINS)]);
            let users = Settings {
                oauth_origins: wrong.to_owned(),
                ..Settings::default()
            };
            let fault = SettingError::new("oauth_origins", NO_ORIGINS);
            assert_eq!(users.faults(), [fault]);
        }
    }

    #[test]
    fn an_open_door_is_refused_and_the_text_says_how_to_fix_it() {
        let check = |listen: &str, auth_mode| {
            GatewayOptions::new(listen.parse().unwrap(), auth_mode)
                .check()
                .map_err(|error| error.to_string())
        };
        assert!(check("127.0.0.1:0", AuthMode::None).is_ok());
        assert!(check("[::1]:0", AuthMode::None).is_ok());
        assert!(check("0.0.0.0:8888", AuthMode::Iam).is_ok());
        let text = check("0.0.0.0:8888", AuthMode::None).unwrap_err();
        assert!(
            text.contains("--auth iam") && text.contains("--listen 127.0.0.1:8888"),
            "{text}"
        );
    }
}
