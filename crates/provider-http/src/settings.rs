//! What the settings of every provider have in common: the address of a server and the key that it is given.

use tg_settings::SettingError;

use crate::secret::Secret;

/// Port of an Ollama server whose address names none.
const OLLAMA_PORT: u16 = 11434;

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
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
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
