//! LLM services that workspaces name, as their agents are bound to them: a router over one client for each, which only its workspace
//! asks. It rests after failures as the operator's provider does; another address or credential has another router. None goes to
//! a private address unless the operator allows that, and never to one of a link or of a cloud's metadata; none has a credential that the
//! operator did not list for the workspace.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tg_provider_http::{Keys, Reach};
use tg_schemas::msg::ModelService;

use crate::engine::router::pauses::Policy;
use crate::error::LlmError;
use crate::model::ChatModel;
use crate::providers::OpenAi;
use crate::routing::Router;

/// Routers that are kept; one more, and all are made again, without their rests.
const KEPT: usize = 64;
/// Providers whose services are asked, with their usual addresses.
const KNOWN: [(&str, &str); 3] = [
    ("openai", "https://api.openai.com/v1"),
    ("openrouter", "https://openrouter.ai/api/v1"),
    ("ollama", "http://localhost:11434/v1"),
];
/// The one that needs no credential.
const NEEDS_NONE: &str = "ollama";

/// A workspace and a service that it names: provider, address, reference of the credential.
type Key = [String; 4];

/// See the module.
#[derive(Default)]
pub(crate) struct Services {
    credentials: Keys,
    /// Whether they may be at private addresses.
    private: bool,
    /// How often and when each is tried again.
    policy: Policy,
    /// No cache of moka's: routers are few, and each is made again in no time.
    known: Mutex<BTreeMap<Key, Arc<Router>>>,
}

impl Services {
    /// Which may use these credentials, and private addresses or not.
    pub(crate) fn with(credentials: Keys, private: bool, policy: Policy) -> Self {
        Self {
            credentials,
            private,
            policy,
            ..Self::default()
        }
    }

    /// The router of a service.
    pub(crate) fn of(
        &self,
        workspace: &str,
        service: &ModelService,
    ) -> Result<Arc<Router>, LlmError> {
        let key = [
            workspace.to_owned(),
            service.provider.clone(),
            service.url.clone(),
            service.credential.clone(),
        ];
        if let Some(known) = self.known.lock().get(&key) {
            return Ok(known.clone());
        }
        let usual = KNOWN.iter().find(|(name, _)| *name == service.provider);
        let (_, usual) = usual.ok_or(LlmError::Unsupported)?;
        let url = match service.url.trim_end_matches('/') {
            "" => *usual,
            own => own,
        };
        let reach = match self.private {
            true => Reach::BeyondLink,
            false => Reach::Public,
        };
        reach.check(url).map_err(|_| LlmError::Unsupported)?;
        let credential = match service.credential.as_str() {
            "" => None,
            name => Some(
                self.credentials
                    .get(workspace, name)
                    .ok_or(LlmError::Auth(None))?,
            ),
        };
        if credential.is_none() && service.provider != NEEDS_NONE {
            return Err(LlmError::Auth(None));
        }
        let client = OpenAi::within(url, credential.cloned(), "", reach);
        let client: Arc<dyn ChatModel> = Arc::new(client.map_err(|_| LlmError::Unsupported)?);
        let router = Arc::new(Router::of_workspace(client, self.policy));
        let mut known = self.known.lock();
        if known.len() >= KEPT {
            known.clear();
        }
        // One that was made meanwhile may rest already.
        Ok(known.entry(key).or_insert(router).clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(provider: &str, url: &str, credential: &str) -> ModelService {
        ModelService {
            provider: provider.to_owned(),
            url: url.to_owned(),
            credential: credential.to_owned(),
            ..ModelService::default()
        }
    }

    #[test]
    fn line_066_a_service_without_its_credential_is_not_asked() {
        let services = Services::with(Keys::default(), true, Policy::default());
        let of = |one: ModelService| services.of("w", &one).map(drop);
        assert_eq!(of(service("ollama", "", "")), Ok(()));
        assert_eq!(of(service("openai", "", "")), Err(LlmError::Auth(None)));
        let unlisted = service("openai", "", "env:PATH");
        assert_eq!(of(unlisted), Err(LlmError::Auth(None)));
        assert_eq!(of(service("x", "", "")), Err(LlmError::Unsupported));
    }

    #[test]
    fn line_083_no_service_is_at_an_address_of_a_link() {
        for private in [true, false] {
            let services = Services::with(Keys::default(), private, Policy::default());
            for url in [
                "http://169.254.169.254/v1",
                "http://[fe80::1]/v1",
                "nothing",
            ] {
                let asked = services.of("w", &service("ollama", url, "")).map(drop);
                assert_eq!(asked, Err(LlmError::Unsupported), "{url}");
            }
        }
    }

    #[test]
    fn private_addresses_are_asked_only_where_the_operator_allows_them() {
        for url in [
            "http://127.0.0.1:9/v1",
            "http://10.0.0.1/v1",
            "http://[::1]/v1",
        ] {
            let one = service("ollama", url, "");
            let with = |private| Services::with(Keys::default(), private, Policy::default());
            assert_eq!(with(true).of("w", &one).map(drop), Ok(()), "{url}");
            let refused = with(false).of("w", &one).map(drop);
            assert_eq!(refused, Err(LlmError::Unsupported), "{url}");
        }
        let open = service("ollama", "https://models.example/v1", "");
        let asked = Services::default().of("w", &open).map(drop);
        assert_eq!(asked, Ok(()));
    }
}
