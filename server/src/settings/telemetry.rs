//! Where traces are exported to: by the settings, and where they leave it open by the variables of OpenTelemetry.

use percent_encoding::percent_decode_str;
use tg_provider_http::{Secret, address};
use tg_settings::{Filled, SettingError};

/// What says that nothing is exported, whatever the variables say.
const NONE: &str = "none";
/// Where a receiver takes traces, below its base address.
const PATH: &str = "/v1/traces";
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

tg_settings::options! {
    /// Traces of requests, as OpenTelemetry has them.
    pub struct Telemetry {
        /// Base address of a receiver of OTLP over HTTP that takes JSON at `/v1/traces`, such as an OpenTelemetry Collector.
        /// Empty: `OTEL_EXPORTER_OTLP_ENDPOINT`, else nothing is exported; `none`: nothing is, whatever that says.
        otlp_url: Option<String> = None;
        /// Headers of the requests to it, such as a key: `name=value,name=value`, values percent-encoded. Empty:
        /// `OTEL_EXPORTER_OTLP_HEADERS`. They may be named: `env:NAME` or `file:PATH`.
        #[serde(deserialize_with = "tg_provider_http::by_reference")]
        otlp_headers: Option<Secret> = None;
        /// Share of the traces that are recorded, of those that begin here. One that a client began, with a header
        /// `traceparent`, is recorded where that says so.
        sample: f64 = 1.0, Number(0.0..=1.0);
        /// Whether requests to providers of language models carry `traceparent`.
        to_providers: bool = false;
    }
    given {
        /// What the environment says of receivers.
        variables: Variables,
    }
}

tg_settings::options! {
    /// The receiver as the environment names it, for what the settings leave open.
    pub struct Variables {
        /// Its base address.
        otel_exporter_otlp_endpoint: Option<String> = None;
        /// Headers of the requests to it.
        otel_exporter_otlp_headers: Option<Secret> = None;
    }
}

/// A receiver, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Receiver {
    /// Where it takes traces.
    pub url: String,
    /// Headers of each request.
    pub headers: Vec<(String, Secret)>,
}

impl Telemetry {
    /// Where traces go; `None`: nowhere.
    ///
    /// # Errors
    /// The mistakes in it, each with its setting or variable and never with its value.
    pub fn receiver(&self) -> Result<Option<Receiver>, Vec<SettingError>> {
        let Some((url, by)) = self.url() else {
            return Ok(None);
        };
        let (headers, given_by) = self.headers();
        let url = address(by, url).map(|base| format!("{base}{PATH}"));
        let headers = headers.map_or(Ok(Vec::new()), |text| pairs(given_by, text.expose()));
        match (url, headers) {
            (Ok(url), Ok(headers)) => Ok(Some(Receiver { url, headers })),
            (url, headers) => Err([url.err(), headers.err()].into_iter().flatten().collect()),
        }
    }

    /// What the settings that were left open are filled in with.
    pub(super) fn filled(&self) -> Vec<Filled> {
        let mut filled = Vec::new();
        let mut fill = |name, value: String, by| {
            filled.push(Filled {
                name,
                value,
                by: Some(by),
            });
        };
        if let Some((url, ENDPOINT)) = self.url() {
            fill("otlp_url", url.to_owned(), ENDPOINT);
        }
        if let (Some(_), HEADERS) = self.headers() {
            fill("otlp_headers", Secret::SHOWN.to_owned(), HEADERS);
        }
        filled
    }

    fn url(&self) -> Option<(&str, &'static str)> {
        let own = self.otlp_url.as_deref();
        let told = self.variables.otel_exporter_otlp_endpoint.as_deref();
        let own = own.map(|url| (url, "telemetry.otlp_url"));
        own.or(told.map(|url| (url, ENDPOINT)))
            .filter(|(url, _)| *url != NONE)
    }

    fn headers(&self) -> (Option<&Secret>, &'static str) {
        match &self.otlp_headers {
            Some(own) => (Some(own), "telemetry.otlp_headers"),
            None => (self.variables.otel_exporter_otlp_headers.as_ref(), HEADERS),
        }
    }
}

/// The headers that a text names.
fn pairs(key: &str, text: &str) -> Result<Vec<(String, Secret)>, SettingError> {
    let all = text.split(',').map(str::trim).filter(|one| !one.is_empty());
    all.map(|one| {
        let fault = || SettingError::new(key, "must be name=value,name=value");
        let (name, value) = one.split_once('=').ok_or_else(fault)?;
        let (name, value) = (name.trim(), value.trim());
        let value = percent_decode_str(value)
            .decode_utf8()
            .map_err(|_| fault())?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_value = |c: char| c == ' ' || c.is_ascii_graphic();
        match !name.is_empty() && name.chars().all(is_name) && value.chars().all(is_value) {
            true => Ok((name.to_lowercase(), Secret::new(value))),
            false => Err(SettingError::new(key, "contains what no header may")),
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(own: &[(&str, &str)], environment: &[(&str, &str)]) -> Telemetry {
        let texts = |pairs: &[(&str, &str)]| -> tg_settings::Texts {
            let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
            pairs.iter().map(own).collect()
        };
        let (settings, faults) = tg_settings::read::<Telemetry>(texts(own));
        assert_eq!(faults, []);
        Telemetry {
            variables: tg_settings::variables(&texts(environment)).0,
            ..settings
        }
    }

    fn shown(receiver: &Receiver) -> Vec<(&str, &str)> {
        let headers = receiver.headers.iter();
        headers
            .map(|(name, value)| (name.as_str(), value.expose()))
            .collect()
    }

    #[test]
    fn settings_win_over_variables_and_without_any_nothing_is_exported() {
        assert_eq!(read(&[], &[]).receiver(), Ok(None));
        let told = [
            (ENDPOINT, "http://collector:4318/"),
            (HEADERS, "Authorization=Basic%20a%3D, x-of = 2"),
        ];
        let of_variables = read(&[], &told).receiver().unwrap().unwrap();
        assert_eq!(of_variables.url, "http://collector:4318/v1/traces");
        let headers = [("authorization", "Basic a="), ("x-of", "2")];
        assert_eq!(shown(&of_variables), headers);
        let own = [
            ("otlp_url", "https://own.example/otlp"),
            ("otlp_headers", "a=b"),
        ];
        let own = read(&own, &told).receiver().unwrap().unwrap();
        assert_eq!(own.url, "https://own.example/otlp/v1/traces");
        assert_eq!(shown(&own), [("a", "b")]);
        assert_eq!(read(&[("otlp_url", "none")], &told).receiver(), Ok(None));
    }

    #[test]
    fn mistakes_are_told_with_who_made_them_and_without_what_they_hold() {
        let told = |own: &[(&str, &str)], environment: &[(&str, &str)]| {
            let faults = read(own, environment).receiver().unwrap_err();
            faults.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let form = "must be name=value,name=value";
        let own = [("otlp_url", "ftp://hidden"), ("otlp_headers", "hidden")];
        let wanted = [
            "telemetry.otlp_url: must start with http:// or https://".to_owned(),
            format!("telemetry.otlp_headers: {form}"),
        ];
        assert_eq!(told(&own, &[]), wanted);
        for text in ["a=hid%0Aden", "a=hid%C3%BCden", "=hidden", "a b=hidden"] {
            let environment = [(ENDPOINT, "http://h"), (HEADERS, text)];
            assert_eq!(
                told(&[], &environment),
                [format!("{HEADERS}: contains what no header may")]
            );
        }
        let environment = [(ENDPOINT, "hidden")];
        assert_eq!(
            told(&[], &environment),
            [format!("{ENDPOINT}: is not a valid address")]
        );
    }

    #[test]
    fn headers_are_never_shown() {
        let told = [(ENDPOINT, "http://h"), (HEADERS, "a=s3cret")];
        let of_variables = read(&[], &told);
        let own = read(
            &[("otlp_url", "http://h"), ("otlp_headers", "a=s3cret")],
            &[],
        );
        for settings in [of_variables, own] {
            let receiver = settings.receiver().unwrap().unwrap();
            let json = serde_json::to_string(&settings).unwrap();
            let filled = settings.filled();
            let shown = format!("{settings:?}{receiver:?}{json}{filled:?}");
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }
}
