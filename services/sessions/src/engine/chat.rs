//! What the operator says of agents of workspaces that say nothing of it themselves: which model answers and in how many tokens, by
//! which instructions, and how many passages are looked up.

use tg_schemas::operations::{Failure, NewLlmService};

use super::llm_service;

/// Passages of a collection that are looked up where nobody says how many.
const PASSAGES: i64 = 6;
/// Tokens of a reply where nobody says how many.
const REPLY: i64 = 1_024;

/// See the module.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatDefaults {
    /// Instructions of an agent that has none; empty: ours.
    pub prompt: String,
    /// Passages of a collection for an agent that does not say how many.
    pub passages: i64,
    /// Most tokens of a reply of a model that the operator or an LLM service names.
    pub max_tokens: i64,
    /// The model that answers for an agent without an LLM service; empty: that of the flow.
    pub model: String,
    /// Who runs this model; `None`: the provider of the flow.
    pub service: Option<NewLlmService>,
    /// Whether the model of the flow answers where nobody names one.
    pub of_flow: bool,
}

impl ChatDefaults {
    /// Whether a model answers for an agent without an LLM service.
    pub fn has_model(&self) -> bool {
        self.of_flow || self.service.is_some() || !self.model.is_empty()
    }
}

impl Default for ChatDefaults {
    fn default() -> Self {
        Self {
            prompt: String::new(),
            passages: PASSAGES,
            max_tokens: REPLY,
            model: String::new(),
            service: None,
            of_flow: true,
        }
    }
}

/// A model as settings name it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named<'a> {
    /// Who runs it; empty: the provider of the flow.
    pub provider: &'a str,
    /// Its name.
    pub model: &'a str,
    /// The address of the provider; empty: the usual one.
    pub url: &'a str,
    /// Where the credential is; empty: there is none.
    pub credential: &'a str,
}

/// The fields of an LLM service, by the settings that say what they are.
const SETTINGS: [(&str, &str); 4] = [
    ("provider", "chat_provider"),
    ("modelName", "chat_model"),
    ("endpointBaseUrl", "chat_url"),
    ("credentialRef", "chat_credential"),
];

/// A text, unless it is empty.
fn given(text: &str) -> Option<String> {
    Some(text.trim())
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

/// The service that settings describe; `None`: the provider of the flow answers.
///
/// # Errors
/// The setting that is wrong, and why.
pub fn service(named: Named<'_>) -> Result<Option<NewLlmService>, (&'static str, String)> {
    let Some(provider) = given(named.provider) else {
        let others = [
            ("chat_url", named.url),
            ("chat_credential", named.credential),
        ];
        let idle = others.iter().find(|(_, text)| given(text).is_some());
        return match idle {
            Some((setting, _)) => {
                let reason = "is used with sessions.chat_provider alone: set both or neither";
                Err((*setting, reason.to_owned()))
            }
            None => Ok(None),
        };
    };
    let Some(needs_credential) = llm_service::needs_credential(&provider) else {
        return Err(("chat_provider", llm_service::KNOWN.to_owned()));
    };
    if needs_credential && given(named.credential).is_none() {
        return Err(("chat_credential", "is required by this provider".to_owned()));
    }
    let described = NewLlmService {
        name: "chat".to_owned(),
        provider,
        model_name: named.model.trim().to_owned(),
        endpoint_base_url: given(named.url),
        credential_ref: given(named.credential),
        ..NewLlmService::default()
    };
    llm_service::settled(described).map(Some).map_err(renamed)
}

/// A fault of a service, in the words of settings.
fn renamed(fault: Failure) -> (&'static str, String) {
    let (field, reason) = fault
        .message
        .split_once(": ")
        .unwrap_or(("", fault.message.as_str()));
    let setting = SETTINGS.iter().find(|(name, _)| *name == field);
    let setting = setting.map_or("chat_provider", |(_, setting)| *setting);
    (setting, reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: Named<'_> = Named {
        provider: "openai",
        model: "m",
        url: "https://models.example/v1",
        credential: "env:KEY",
    };

    #[test]
    fn settings_describe_a_service_or_none() {
        assert_eq!(service(Named::default()), Ok(None));
        let model = Named {
            model: "m",
            ..Named::default()
        };
        assert_eq!(service(model), Ok(None));
        let whole = service(WHOLE).unwrap().unwrap();
        assert_eq!(
            (whole.provider.as_str(), whole.model_name.as_str()),
            ("openai", "m")
        );
        assert_eq!(whole.credential_ref.as_deref(), Some("env:KEY"));
        let own = Named {
            provider: "ollama",
            credential: "",
            ..WHOLE
        };
        assert!(service(own).is_ok());
    }

    #[test]
    fn a_wrong_setting_is_named_and_a_key_is_not_repeated() {
        for (wrong, setting) in [
            (
                Named {
                    provider: "anthropic",
                    ..WHOLE
                },
                "chat_provider",
            ),
            (
                Named {
                    provider: "",
                    ..WHOLE
                },
                "chat_url",
            ),
            (
                Named {
                    model: " ",
                    ..WHOLE
                },
                "chat_model",
            ),
            (
                Named {
                    url: "http://169.254.169.254/",
                    ..WHOLE
                },
                "chat_url",
            ),
            (
                Named {
                    credential: "",
                    ..WHOLE
                },
                "chat_credential",
            ),
            (
                Named {
                    credential: "sk-proj-1",
                    ..WHOLE
                },
                "chat_credential",
            ),
        ] {
            let (named, reason) = service(wrong).unwrap_err();
            assert_eq!(named, setting, "{wrong:?}");
            assert!(!reason.contains("sk-proj-1"), "{reason}");
        }
    }
}
