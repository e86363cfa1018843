//! What the settings of every provider have in common: the address of a server and the key that it is given.

use std::net::{IpAddr, SocketAddr};

use tg_settings::SettingError;

use crate::secret::Secret;

/// Port of an Ollama server whose address names none.
const OLLAMA_PORT: u16 = 11434;
/// What keys of our own gateways begin with.
const OWN_KEY: &str = "tg_";

/// The address of a server, without a slash at its end.
///
/// # Errors
/// `text` is not an address, or not one of HTTP; the fault names `key`.
pub fn address(key: &str, text: &str) -> Result<String, SettingError> {
    let fault = match reqwest::Url::parse(text) {
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            "must start with http:// or https://"
        }
        Ok(url) if url.host_str().is_none() => "must name a host",
        Ok(_) => return Ok(text.trim_end_matches('/').to_owned()),
        Err(_) => "is not a valid address",
    };
    Err(SettingError::new(key, fault))
}

/// Whether an address is of this machine alone.
pub fn is_loopback(text: &str) -> bool {
    let url = reqwest::Url::parse(text).ok();
    let host = url.as_ref().and_then(reqwest::Url::host_str);
    let host = host.unwrap_or_default().trim_matches(['[', ']']);
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether two addresses are of one server: by host and port.
pub fn is_same_server(one: &str, other: &str) -> bool {
    let place = |text: &str| {
        let url = reqwest::Url::parse(text).ok()?;
        Some((url.host_str()?.to_owned(), url.port_or_known_default()?))
    };
    place(one).is_some_and(|one| place(other) == Some(one))
}

/// Whether an address is the one that a server of this machine listens on. Other names of the machine are not known here.
pub fn is_listened_on(text: &str, listen: SocketAddr) -> bool {
    let Ok(url) = reqwest::Url::parse(text) else {
        return false;
    };
    if url.port_or_known_default() != Some(listen.port()) {
        return false;
    }
    let own = listen.ip().to_canonical();
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let Ok(asked) = host.parse::<IpAddr>() else {
        return host == "localhost" && (own.is_loopback() || own.is_unspecified());
    };
    let asked = asked.to_canonical();
    let is_any = own.is_unspecified() || asked.is_unspecified();
    asked == own || (is_any && (own.is_loopback() || asked.is_loopback()))
}

/// Whether a key can be sent.
///
/// # Errors
/// It contains what no header may; the fault names `key`.
pub fn sendable(key: &str, secret: Option<&Secret>) -> Result<(), SettingError> {
    let strange = |c: char| c.is_control() || !c.is_ascii();
    match secret.is_some_and(|secret| secret.expose().contains(strange)) {
        true => Err(SettingError::new(
            key,
            "contains characters that cannot occur in a key",
        )),
        false => Ok(()),
    }
}

/// Whether a key may go to a provider that everybody reaches: one of our own gateways may not. It is often in the environment,
/// for clients.
///
/// # Errors
/// It begins as those do; the fault names `key`.
pub fn not_of_gateway(key: &str, secret: Option<&Secret>) -> Result<(), SettingError> {
    match secret.is_some_and(|secret| secret.expose().starts_with(OWN_KEY)) {
        true => Err(SettingError::new(
            key,
            "is a key of a Threadgraph gateway (tg_…), which is sent to no public provider: give the provider's own key",
        )),
        false => Ok(()),
    }
}

/// The address that `OLLAMA_HOST` means: it may lack the scheme and the port, and may be the address that a
/// server listens on.
pub fn ollama_address(text: &str) -> String {
    if text.contains("://") {
        return text.to_owned();
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port.to_owned()),
        _ => (text, OLLAMA_PORT.to_string()),
    };
    let host = match host {
        "" | "0.0.0.0" | "[::]" => "127.0.0.1",
        other => other,
    };
    format!("http://{host}:{port}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_known_however_it_is_written() {
        for own in [
            "http://127.0.0.1:9/x",
            "https://localhost",
            "http://LOCALHOST:1",
            "http://[::1]:9",
            "http://[::ffff:127.0.0.1]/",
        ] {
            assert!(is_loopback(own), "{own}");
        }
        for other in [
            "http://127.0.0.1.example",
            "http://127.0.0.1@id.example",
            "http://localhost.example",
            "https://id.example",
            "nothing",
        ] {
            assert!(!is_loopback(other), "{other}");
        }
    }

    #[test]
    fn a_server_is_known_by_host_and_port() {
        let openai = "https://api.openai.com/v1";
        assert!(is_same_server(openai, "https://API.openai.com:443"));
        assert!(!is_same_server(openai, "https://api.openai.com:8443/v1"));
        assert!(!is_same_server(openai, "https://api.openai.com.example/v1"));
        assert!(!is_same_server("", ""));
    }

    #[test]
    fn the_own_listener_is_known_by_its_addresses() {
        for (listen, url, own) in [
            ("127.0.0.1:8888", "http://127.0.0.1:8888/v1", true),
            ("127.0.0.1:8888", "http://localhost:8888/v1/", true),
            ("127.0.0.1:8888", "http://0.0.0.0:8888/v1", true),
            ("127.0.0.1:8888", "http://[::ffff:127.0.0.1]:8888", true),
            ("127.0.0.1:8888", "http://127.0.0.1:8889/v1", false),
            ("127.0.0.1:8888", "http://127.0.0.2:8888/v1", false),
            ("127.0.0.1:8888", "http://10.0.0.1:8888/v1", false),
            ("0.0.0.0:8888", "http://127.0.0.1:8888/v1", true),
            ("0.0.0.0:8888", "http://models:8888/v1", false),
            ("[::]:443", "https://[::1]/v1", true),
            ("10.0.0.1:8888", "http://10.0.0.1:8888/v1", true),
            ("10.0.0.1:8888", "http://localhost:8888/v1", false),
            ("127.0.0.1:0", "http://127.0.0.1:8888/v1", false),
        ] {
            let listen = listen.parse().unwrap();
            assert_eq!(is_listened_on(url, listen), own, "{listen} {url}");
        }
    }

    #[test]
    fn a_key_of_a_gateway_is_for_no_public_provider() {
        let fault = |key: &str| not_of_gateway("key", Some(&Secret::new(key))).err();
        let told = fault("tg_hidden").map(|fault| fault.to_string()).unwrap();
        assert!(
            told.starts_with("key: is a key of a Threadgraph gateway") && !told.contains("hidden"),
            "{told}"
        );
        // Another provider's keys begin alike.
        assert_eq!(fault("tgp_v1_x"), None);
        assert_eq!(fault("sk-1"), None);
        assert!(not_of_gateway("key", None).is_ok());
    }

    #[test]
    fn a_mistake_is_told_with_its_key_and_without_its_value() {
        assert_eq!(
            address("url", "https://h.example/v1/").unwrap(),
            "https://h.example/v1"
        );
        for (given, told) in [
            ("ftp://hidden/x", "url: must start with http:// or https://"),
            ("hidden", "url: is not a valid address"),
        ] {
            assert_eq!(address("url", given).unwrap_err().to_string(), told);
        }
        assert!(sendable("key", Some(&Secret::new("sk-1"))).is_ok());
        let fault = sendable("key", Some(&Secret::new("sk-hidden\u{7f}"))).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "key: contains characters that cannot occur in a key"
        );
    }

    #[test]
    fn ollamas_address_is_read_as_ollama_does() {
        for (given, meant) in [
            ("", "http://127.0.0.1:11434"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            ("[::]:1", "http://127.0.0.1:1"),
            ("gpu:1234", "http://gpu:1234"),
            ("[::1]", "http://[::1]:11434"),
            ("https://o.example", "https://o.example"),
        ] {
            assert_eq!(ollama_address(given), meant, "{given}");
        }
    }
}
