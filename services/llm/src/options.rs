//! Which provider serves, by the variables that its own tools use.

use std::sync::Arc;

use tg_provider_http::{Backoff, NoClient, Secret, address, ollama_address, sendable};
use tg_settings::Fault;

use crate::engine::builtin::Builtin;
use crate::model::ChatModel;
use crate::providers::{Anthropic, Ollama, OpenAi};

const OPENAI_URL: &str = "https://api.openai.com/v1";

tg_settings::options! {
    /// The provider: the first of OpenAI, Anthropic and Ollama that is configured; none means the builtin reader.
    /// Variables of the others mean nothing.
    pub struct Options {
        /// Base address of a server that speaks OpenAI chat completions, up to and including the version. Empty, with
        /// a key: OpenAI's own.
        openai_base_url: Option<String> = None;
        /// Key of that server; local ones often need none.
        openai_api_key: Option<Secret> = None;
        /// Its model when a flow names none.
        openai_model: String = "gpt-4.1-mini".to_owned();
        /// Key of Anthropic.
        anthropic_api_key: Option<Secret> = None;
        /// Base address of Anthropic, without version.
        anthropic_base_url: String = "https://api.anthropic.com".to_owned();
        /// Its model when a flow names none.
        anthropic_model: String = "claude-sonnet-4-5".to_owned();
        /// Address of an Ollama; scheme and port may be left out.
        ollama_host: Option<String> = None;
        /// Its model when a flow names none.
        ollama_model: String = "granite4:350m".to_owned();
        /// Context length asked of it, in tokens; empty: its own.
        ollama_context_length: Option<String> = None;
    }
    given {
        /// When a provider that failed is asked again.
        backoff: Backoff,
    }
}

/// The provider that is configured.
enum Chosen<'a> {
    Builtin,
    OpenAi(&'a str),
    Anthropic(&'a Secret),
    Ollama(String),
}

impl Options {
    fn chosen(&self) -> Chosen<'_> {
        match (&self.openai_base_url, &self.openai_api_key) {
            (Some(url), _) => return Chosen::OpenAi(url),
            (None, Some(_)) => return Chosen::OpenAi(OPENAI_URL),
            (None, None) => {}
        }
        match (&self.anthropic_api_key, &self.ollama_host) {
            (Some(key), _) => Chosen::Anthropic(key),
            (None, Some(host)) => Chosen::Ollama(ollama_address(host)),
            (None, None) => Chosen::Builtin,
        }
    }

    fn context(&self) -> Result<Option<u32>, Fault> {
        let Some(text) = &self.ollama_context_length else {
            return Ok(None);
        };
        let length = text.parse().ok().filter(|length| *length > 0);
        let fault = || Fault::new("OLLAMA_CONTEXT_LENGTH", "must be a whole number above 0");
        length.map(Some).ok_or_else(fault)
    }

    /// All mistakes in the variables of the provider that is configured.
    pub fn faults(&self) -> Vec<Fault> {
        let (url, other) = match self.chosen() {
            Chosen::Builtin => return Vec::new(),
            Chosen::OpenAi(url) => (
                address("OPENAI_BASE_URL", url),
                sendable("OPENAI_API_KEY", self.openai_api_key.as_ref()),
            ),
            Chosen::Anthropic(key) => (
                address("ANTHROPIC_BASE_URL", &self.anthropic_base_url),
                sendable("ANTHROPIC_API_KEY", Some(key)),
            ),
            Chosen::Ollama(host) => (address("OLLAMA_HOST", &host), self.context().map(drop)),
        };
        url.err().into_iter().chain(other.err()).collect()
    }

    /// The choice in words, without address or key.
    pub fn describe(&self) -> String {
        match self.chosen() {
            Chosen::Builtin => crate::engine::builtin::NAME.to_owned(),
            Chosen::OpenAi(_) => format!("{} (OpenAI-compatible)", self.openai_model),
            Chosen::Anthropic(_) => format!("{} (Anthropic)", self.anthropic_model),
            Chosen::Ollama(_) => format!("{} (Ollama)", self.ollama_model),
        }
    }

    /// The model, ready to be asked. Opens no connection.
    ///
    /// # Errors
    /// The first of [`Self::faults`], or that no HTTP client can be made.
    pub fn model(&self) -> Result<Arc<dyn ChatModel>, Fault> {
        if let Some(fault) = self.faults().into_iter().next() {
            return Err(fault);
        }
        let fault = |key| move |fault: NoClient| Fault::new(key, fault.to_string());
        Ok(match self.chosen() {
            Chosen::Builtin => Arc::new(Builtin),
            Chosen::OpenAi(url) => {
                let (key, url) = (self.openai_api_key.clone(), url.trim_end_matches('/'));
                let model = OpenAi::new(url, key, &self.openai_model);
                Arc::new(model.map_err(fault("OPENAI_BASE_URL"))?)
            }
            Chosen::Anthropic(key) => {
                let url = self.anthropic_base_url.trim_end_matches('/');
                let model = Anthropic::new(url, key.clone(), &self.anthropic_model);
                Arc::new(model.map_err(fault("ANTHROPIC_BASE_URL"))?)
            }
            Chosen::Ollama(host) => {
                let host = host.trim_end_matches('/');
                let model = Ollama::new(host, &self.ollama_model, self.context()?);
                Arc::new(model.map_err(fault("OLLAMA_HOST"))?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Options {
        let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
        let (options, faults) = tg_settings::variables(&pairs.iter().map(own).collect());
        assert!(faults.is_empty(), "{faults:?}");
        options
    }

    #[test]
    fn nothing_set_means_builtin() {
        let model = from(&[("OPENAI_API_KEY", " ")]).model().unwrap();
        assert_eq!(
            model.default_model(),
            "builtin (extractive, not a language model)"
        );
    }

    #[test]
    fn each_provider_is_chosen_by_its_variables() {
        let told = |pairs: &[(&str, &str)]| {
            let options = from(pairs);
            assert!(options.model().is_ok(), "{:?}", options.faults());
            options.describe()
        };
        assert_eq!(
            told(&[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/")]),
            "gpt-4.1-mini (OpenAI-compatible)"
        );
        // What belongs to another provider is not looked at.
        let anthropic = [
            ("ANTHROPIC_API_KEY", "k"),
            ("OLLAMA_HOST", "a b"),
            ("OLLAMA_CONTEXT_LENGTH", "x"),
        ];
        assert_eq!(told(&anthropic), "claude-sonnet-4-5 (Anthropic)");
        for host in ["0.0.0.0", "gpu:1234", "https://o.example/"] {
            assert_eq!(told(&[("OLLAMA_HOST", host)]), "granite4:350m (Ollama)");
        }
    }

    #[test]
    fn all_mistakes_are_told_and_no_value_is_shown() {
        let told = |pairs: &[(&str, &str)]| {
            let options = from(pairs);
            assert!(options.model().is_err());
            let faults: Vec<String> = options.faults().iter().map(ToString::to_string).collect();
            assert!(!format!("{faults:?} {options:?}").contains("sk-hidden"));
            faults
        };
        let openai = [
            ("OPENAI_BASE_URL", "ftp://hidden-host/x"),
            ("OPENAI_API_KEY", "sk-hidden\u{7f}"),
        ];
        assert_eq!(
            told(&openai),
            [
                "OPENAI_BASE_URL: must start with http:// or https://",
                "OPENAI_API_KEY: contains characters that cannot occur in a key",
            ]
        );
        let ollama = [("OLLAMA_HOST", "h"), ("OLLAMA_CONTEXT_LENGTH", "0")];
        assert_eq!(
            told(&ollama),
            ["OLLAMA_CONTEXT_LENGTH: must be a whole number above 0"]
        );
    }
}
