//! Settings of a provider, read through a look-up so that files and variables alike can give them. All
//! mistakes are told at once, each with its key and never with its value.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::secret::Secret;

/// Port of an Ollama server whose address names none.
const OLLAMA_PORT: u16 = 11434;

/// A mistake in one setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct SettingFault {
    /// The setting.
    pub key: &'static str,
    /// What is wrong with it; never repeats its value.
    pub message: String,
}

/// Reads settings and collects the mistakes in them.
pub struct SettingReader<F> {
    lookup: F,
    faults: Vec<SettingFault>,
}

impl<F: Fn(&str) -> Option<String>> SettingReader<F> {
    /// A reader of what `lookup` knows.
    pub fn new(lookup: F) -> Self {
        Self {
            lookup,
            faults: Vec::new(),
        }
    }

    /// A text without the blanks around it; `None` if it is absent or empty.
    pub fn text(&self, key: &str) -> Option<String> {
        let text = (self.lookup)(key)?.trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Notes a mistake.
    pub fn wrong(&mut self, key: &'static str, message: impl Into<String>) {
        let message = message.into();
        self.faults.push(SettingFault { key, message });
    }

    /// A whole number above 0.
    pub fn count<T: FromStr + PartialOrd + Default>(&mut self, key: &'static str) -> Option<T> {
        let fits = |number: &T| *number > T::default();
        self.parsed(key, fits, || "must be a whole number above 0".to_owned())
    }

    /// A whole number of a range.
    pub fn whole(&mut self, key: &'static str, range: RangeInclusive<usize>) -> Option<usize> {
        let fits = |number: &usize| range.contains(number);
        self.parsed(key, fits, || between("a whole number", &range))
    }

    /// A number of a range.
    pub fn number(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let fits = |number: &f64| range.contains(number);
        self.parsed(key, fits, || between("a number", &range))
    }

    /// One of a few names, told as `names`.
    pub fn choice<T>(
        &mut self,
        key: &'static str,
        names: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(key)?;
        let chosen = parse(&text);
        if chosen.is_none() {
            self.wrong(key, format!("must be {names}"));
        }
        chosen
    }

    /// The address of a server, given by `key` as `text`, without a slash at its end.
    pub fn address(&mut self, key: &'static str, text: &str) -> String {
        let fault = match reqwest::Url::parse(text) {
            Ok(url) if !matches!(url.scheme(), "http" | "https") => {
                Some("must start with http:// or https://")
            }
            Ok(url) if url.host_str().is_none() => Some("must name a host"),
            Ok(_) => None,
            Err(_) => Some("is not a valid address"),
        };
        if let Some(message) = fault {
            self.wrong(key, message);
        }
        text.trim_end_matches('/').to_owned()
    }

    /// A key that signs requests.
    pub fn secret(&mut self, key: &'static str) -> Option<Secret> {
        let text = self.text(key)?;
        if text.chars().any(|c| c.is_control() || !c.is_ascii()) {
            self.wrong(key, "contains characters that cannot occur in a key");
        }
        Some(Secret::new(text))
    }

    /// What was read, if nothing was wrong with it.
    ///
    /// # Errors
    /// All mistakes, in the order in which they were met.
    pub fn finish<T>(self, settings: T) -> Result<T, Vec<SettingFault>> {
        match self.faults.is_empty() {
            true => Ok(settings),
            false => Err(self.faults),
        }
    }

    fn parsed<T: FromStr>(
        &mut self,
        key: &'static str,
        fits: impl Fn(&T) -> bool,
        wanted: impl Fn() -> String,
    ) -> Option<T> {
        let number = self.text(key)?.parse().ok().filter(fits);
        if number.is_none() {
            self.wrong(key, wanted());
        }
        number
    }
}

fn between<T: Display>(what: &str, range: &RangeInclusive<T>) -> String {
    format!("must be {what} from {} to {}", range.start(), range.end())
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
    fn every_mistake_is_told_once_with_its_key_and_without_its_value() {
        let mut reader = SettingReader::new(|key| {
            let text = match key {
                "blank" => "  ",
                "good" => " 7 ",
                "url" => "https://h.example/v1/",
                "ftp" => "ftp://hidden/x",
                "key" => "sk-hidden\u{7f}",
                "absent" => return None,
                _ => "hidden",
            };
            Some(text.to_owned())
        });
        assert_eq!(reader.text("blank"), None);
        assert_eq!(reader.count::<u32>("absent"), None);
        assert_eq!(reader.count("good"), Some(7_u32));
        assert_eq!(reader.whole("good", 1..=7), Some(7));
        assert_eq!(reader.number("good", 0.0..=7.5), Some(7.0));
        assert_eq!(
            reader.choice("good", "7", |text| (text == "7").then_some(())),
            Some(())
        );
        assert_eq!(
            reader.address("url", "https://h.example/v1/"),
            "https://h.example/v1"
        );
        assert_eq!(reader.whole("good", 8..=9), None);
        assert_eq!(reader.number("odd", 0.5..=2.0), None);
        assert_eq!(reader.count::<u32>("odd"), None);
        reader.address("ftp", "ftp://hidden/x");
        assert!(reader.secret("key").is_some());
        let faults = reader.finish(()).unwrap_err();
        let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "good: must be a whole number from 8 to 9",
                "odd: must be a number from 0.5 to 2",
                "odd: must be a whole number above 0",
                "ftp: must start with http:// or https://",
                "key: contains characters that cannot occur in a key",
            ]
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
