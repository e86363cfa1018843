//! What an LLM service of a workspace may be like, how it changes, and what an agent that names it is asked by.

use tg_provider_http::{Credentials, Reach, address};
use tg_schemas::limits::MODEL_NAME;
use tg_schemas::msg::ModelService;
use tg_schemas::operations::{Failure, FailureCode, LlmServiceChange, NewLlmService};

use super::definition::Definition;

/// Longest name, of whatever kind, in characters.
const NAME: usize = 200;
/// Longest text.
const TEXT: usize = 2_000;
/// Longest list.
const LIST: usize = 200;
/// Tokens of a reply where a service does not say how many.
const REPLY: i64 = 1_024;
/// A model that reads fewer tokens at once is not asked.
const LEAST_WINDOW: i64 = 16_000;
/// Providers whose services answer, and whether they need a credential.
const PROVIDERS: [(&str, bool); 3] = [("openai", true), ("openrouter", true), ("ollama", false)];
/// What is said of any other provider.
pub const KNOWN: &str = "must be openai, openrouter or ollama";
/// Providers of reranking services, and what is said of any other.
pub const RERANKERS: [&str; 3] = ["cohere", "jina", "tei"];
/// What is said of a reranking provider that is not known.
pub const KNOWN_RERANKERS: &str = "must be cohere, jina or tei";
/// What of an address the clients put behind it themselves.
const CALL: &str = "/chat/completions";
/// Names by which machines in a cloud reach its metadata.
const METADATA: [&str; 3] = ["metadata", "metadata.google.internal", "instance-data"];

/// What a service is like, as it is kept.
///
/// # Errors
/// The first field that is out of its range.
pub fn settled(mut service: NewLlmService) -> Result<NewLlmService, Failure> {
    let required = [
        ("name", &service.name),
        ("provider", &service.provider),
        ("modelName", &service.model_name),
    ];
    for (field, text) in required {
        if text.trim().is_empty() {
            return Err(Failure::invalid(field, "is required"));
        }
        if text.chars().count() > NAME {
            return Err(Failure::invalid(field, "must have at most 200 characters"));
        }
    }
    if service.model_name.len() > MODEL_NAME {
        return Err(Failure::invalid("modelName", "must have at most 256 bytes"));
    }
    let usual = |text: &mut String, usual: &str| {
        if text.is_empty() {
            usual.clone_into(text);
        }
    };
    usual(&mut service.status, "active");
    usual(&mut service.auth_type, "none");
    if !["active", "deprecated", "experimental"].contains(&service.status.as_str()) {
        let reason = "must be active, deprecated or experimental";
        return Err(Failure::invalid("status", reason));
    }
    if !["none", "api_key", "oauth2", "mTLS"].contains(&service.auth_type.as_str()) {
        let reason = "must be none, api_key, oauth2 or mTLS";
        return Err(Failure::invalid("authType", reason));
    }
    let texts = [
        ("description", &service.description),
        ("engine", &service.engine),
        ("modelVersion", &service.model_version),
        ("endpointBaseUrl", &service.endpoint_base_url),
        ("endpointPath", &service.endpoint_path),
        ("credentialRef", &service.credential_ref),
    ];
    for (field, text) in texts {
        if text
            .as_ref()
            .is_some_and(|text| text.chars().count() > TEXT)
        {
            return Err(Failure::invalid(
                field,
                "must have at most 2,000 characters",
            ));
        }
    }
    let lists = [
        ("supportedLanguages", &service.supported_languages),
        ("supportedContent", &service.supported_content),
    ];
    for (field, list) in lists {
        let is_long = |text: &String| text.chars().count() > NAME;
        if list.len() > LIST || list.iter().any(is_long) {
            let reason = "must be at most 200 texts of at most 200 characters";
            return Err(Failure::invalid(field, reason));
        }
    }
    numbers(&service)?;
    reached(&service)?;
    Ok(service)
}

fn numbers(service: &NewLlmService) -> Result<(), Failure> {
    for (field, number) in [
        ("contextWindowTokens", service.context_window_tokens),
        ("maxOutputTokens", service.max_output_tokens),
        ("requestTimeoutMs", service.request_timeout_ms),
        ("maxBatchSize", service.max_batch_size),
    ] {
        if number.is_some_and(|number| number < 1) {
            return Err(Failure::invalid(field, "must be a whole number from 1"));
        }
    }
    for (field, number) in [
        ("temperatureMin", service.temperature_min),
        ("temperatureMax", service.temperature_max),
    ] {
        if number.is_some_and(|number| !(0.0..=10.0).contains(&number)) {
            return Err(Failure::invalid(field, "must be a number from 0 to 10"));
        }
    }
    Ok(())
}

/// Whether its address and its credential are named as they may be.
fn reached(service: &NewLlmService) -> Result<(), Failure> {
    if let Some(url) = service.endpoint_base_url.as_deref() {
        let fault =
            |error: tg_settings::SettingError| Failure::invalid("endpointBaseUrl", &error.message);
        address("endpointBaseUrl", url).map_err(fault)?;
        let host = url.split_once("://").map_or(url, |(_, rest)| rest);
        let host = host.split(['/', '?', '#']).next().unwrap_or_default();
        if host.contains('@') {
            let reason = "must not hold a name or a password: see credentialRef";
            return Err(Failure::invalid("endpointBaseUrl", reason));
        }
        if url.contains(['?', '#']) {
            let reason = "must not hold '?' or '#': they would hide the path";
            return Err(Failure::invalid("endpointBaseUrl", reason));
        }
        let name = host.split(':').next().unwrap_or_default();
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let denied = METADATA.contains(&name.as_str()) || Reach::BeyondLink.check(url).is_err();
        if denied {
            let reason = "must not be the address of a link or of a cloud's metadata";
            return Err(Failure::invalid("endpointBaseUrl", reason));
        }
    }
    if let Some(path) = service.endpoint_path.as_deref() {
        let odd = |c: char| c.is_control() || matches!(c, '?' | '#' | '\\');
        if !path.starts_with('/') || path.contains("..") || path.contains(odd) {
            let reason = "must begin with '/' and be a plain path without '..'";
            return Err(Failure::invalid("endpointPath", reason));
        }
    }
    match service.credential_ref.as_deref() {
        Some(reference) if !is_reference(reference) => {
            // What is written may be a key: it is not repeated.
            let reason = "must say where the credential is, as env:NAME or file:PATH";
            Err(Failure::invalid("credentialRef", reason))
        }
        _ => Ok(()),
    }
}

/// Whether a text says where a credential is: a kind, a colon, and the rest.
fn is_reference(text: &str) -> bool {
    let Some((kind, rest)) = text.split_once(':') else {
        return false;
    };
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let begins = kind.starts_with(|c: char| c.is_ascii_lowercase());
    begins && kind.chars().all(plain) && !rest.is_empty() && !rest.contains(char::is_control)
}

/// A service with what changes of it.
///
/// # Errors
/// As of [`settled`].
pub fn changed(
    mut service: NewLlmService,
    change: LlmServiceChange,
) -> Result<NewLlmService, Failure> {
    fn set<T>(field: &mut T, to: Option<T>) {
        if let Some(to) = to {
            *field = to;
        }
    }
    set(&mut service.name, change.name);
    set(&mut service.description, change.description);
    set(&mut service.status, change.status);
    set(&mut service.provider, change.provider);
    set(&mut service.engine, change.engine);
    set(&mut service.model_name, change.model_name);
    set(&mut service.model_version, change.model_version);
    set(
        &mut service.context_window_tokens,
        change.context_window_tokens,
    );
    set(&mut service.max_output_tokens, change.max_output_tokens);
    set(&mut service.temperature_min, change.temperature_min);
    set(&mut service.temperature_max, change.temperature_max);
    set(&mut service.supports_streaming, change.supports_streaming);
    set(&mut service.supports_tools, change.supports_tools);
    set(&mut service.endpoint_base_url, change.endpoint_base_url);
    set(&mut service.endpoint_path, change.endpoint_path);
    set(&mut service.request_timeout_ms, change.request_timeout_ms);
    set(&mut service.max_batch_size, change.max_batch_size);
    set(&mut service.auth_type, change.auth_type);
    set(&mut service.credential_ref, change.credential_ref);
    set(&mut service.supported_languages, change.supported_languages);
    set(&mut service.supported_content, change.supported_content);
    settled(service)
}

/// Whether a provider needs a credential; `None`: nobody asks it.
pub fn needs_credential(provider: &str) -> Option<bool> {
    let known = PROVIDERS.iter().find(|(name, _)| *name == provider);
    known.map(|(_, needs)| *needs)
}

/// Whether a model that reads so many tokens at once may be asked.
///
/// # Errors
/// They are too few.
pub fn reads_enough(window: i64) -> Result<(), Failure> {
    if window >= LEAST_WINDOW {
        return Ok(());
    }
    let text =
        format!("the model reads {window} tokens at once; it must be at least {LEAST_WINDOW}");
    Err(Failure::new(FailureCode::ContextWindowTooSmall, text))
}

/// An agent that a service answers for.
///
/// # Errors
/// Nobody may be asked so: the provider, the credential or the model's window.
pub fn bound(
    agent: Definition,
    service: NewLlmService,
    credentials: Option<&Credentials>,
    workspace: &str,
) -> Result<Definition, Failure> {
    let Some(needs) = needs_credential(&service.provider) else {
        let text =
            "llmServiceId: the service has a provider other than openai, openrouter and ollama";
        return Err(Failure::new(FailureCode::LlmProviderUnsupported, text));
    };
    let named = service.credential_ref.unwrap_or_default();
    let is_listed = credentials.is_some_and(|all| all.has(workspace, &named));
    if (needs || !named.is_empty()) && !is_listed {
        let text = "llmServiceId: the service names no credential that the operator allows in this workspace";
        return Err(Failure::new(FailureCode::LlmCredentialMissing, text));
    }
    if let Some(window) = service.context_window_tokens {
        reads_enough(window)?;
    }
    let path = service.endpoint_path.unwrap_or_default();
    let path = path.strip_suffix(CALL).unwrap_or(&path);
    let url = service.endpoint_base_url.map_or_else(String::new, |url| {
        format!("{}{path}", url.trim_end_matches('/'))
    });
    let tools = match service.supports_tools {
        Some(false) => Vec::new(),
        _ => agent.tools,
    };
    Ok(Definition {
        model: service.model_name,
        models: Vec::new(),
        max_tokens: Some(service.max_output_tokens.unwrap_or(REPLY)),
        tools,
        service: Some(ModelService {
            provider: service.provider,
            url,
            credential: named,
            timeout_ms: service.request_timeout_ms.unwrap_or_default(),
        }),
        window: service
            .context_window_tokens
            .and_then(|window| u64::try_from(window).ok()),
        ..agent
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(provider: &str) -> NewLlmService {
        NewLlmService {
            name: "n".to_owned(),
            provider: provider.to_owned(),
            model_name: "m".to_owned(),
            ..NewLlmService::default()
        }
    }

    #[test]
    fn line_083_a_written_key_and_an_address_of_a_link_are_refused() {
        let field = |one: NewLlmService| settled(one).map_err(|fault| fault.message);
        for (reference, fits) in [
            ("env:KEY", true),
            ("file:/run/key", true),
            ("sk-proj-1", false),
            ("Env:KEY", false),
            ("env:", false),
            (":x", false),
        ] {
            let one = NewLlmService {
                credential_ref: Some(reference.to_owned()),
                ..service("openai")
            };
            let told = field(one);
            assert_eq!(told.is_ok(), fits, "{reference}");
            assert!(fits || told.is_err_and(|told| !told.contains("sk-proj-1")));
        }
        for (url, fits) in [
            ("https://models.example/v1", true),
            ("http://10.0.0.1:8000", true),
            ("http://169.254.169.254/latest", false),
            ("http://[fe80::1]/", false),
            ("http://metadata.google.internal/", false),
            ("http://u:p@models.example/", false),
            ("ftp://models.example", false),
            ("models.example", false),
        ] {
            let one = NewLlmService {
                endpoint_base_url: Some(url.to_owned()),
                ..service("openai")
            };
            assert_eq!(field(one).is_ok(), fits, "{url}");
        }
        for (path, fits) in [
            ("/v1", true),
            ("v1", false),
            ("/a/../b", false),
            ("/a\n", false),
        ] {
            let one = NewLlmService {
                endpoint_path: Some(path.to_owned()),
                ..service("openai")
            };
            assert_eq!(field(one).is_ok(), fits, "{path}");
        }
    }

    #[test]
    fn a_service_has_its_defaults_and_needs_three_fields() {
        let kept = settled(service("x")).unwrap();
        assert_eq!(
            (kept.status.as_str(), kept.auth_type.as_str()),
            ("active", "none")
        );
        for (without, field) in [
            (
                NewLlmService {
                    name: String::new(),
                    ..service("x")
                },
                "name",
            ),
            (service(" "), "provider"),
            (
                NewLlmService {
                    model_name: String::new(),
                    ..service("x")
                },
                "modelName",
            ),
        ] {
            assert!(settled(without).unwrap_err().message.starts_with(field));
        }
    }

    #[test]
    fn an_agent_is_answered_by_the_service_that_it_names() {
        let agent = || Definition {
            tools: vec!["t".to_owned()],
            ..Definition::default()
        };
        let one = NewLlmService {
            endpoint_base_url: Some("http://h:1/".to_owned()),
            endpoint_path: Some("/v1/chat/completions".to_owned()),
            supports_tools: Some(false),
            ..service("ollama")
        };
        let found = bound(agent(), one, None, "w").unwrap();
        assert_eq!((found.model.as_str(), found.max_tokens), ("m", Some(1024)));
        // 75: what calls no tools is offered none.
        assert!(found.tools.is_empty());
        assert_eq!(found.service.unwrap().url, "http://h:1/v1");
        for (provider, code) in [
            ("anthropic", FailureCode::LlmProviderUnsupported),
            ("openai", FailureCode::LlmCredentialMissing),
        ] {
            let refused = bound(agent(), service(provider), None, "w").unwrap_err();
            assert_eq!(refused.code, code);
        }
        let small = NewLlmService {
            context_window_tokens: Some(15_999),
            ..service("ollama")
        };
        let refused = bound(agent(), small, None, "w").unwrap_err();
        assert_eq!(refused.code, FailureCode::ContextWindowTooSmall);
    }
}
