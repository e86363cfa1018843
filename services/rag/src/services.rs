//! Reranking services that workspaces name, as their agents are bound to them: a client for each, which only its workspace asks. None
//! is at a private address unless the operator allows that, and never at one of a link or of a cloud's metadata; none has a credential
//! that the operator did not list for the workspace.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use tg_provider_http::{Keys, Reach};
use tg_schemas::msg::ModelSettings;

use crate::endpoint::{Dialect, Endpoint};
use crate::error::RagError;

/// Clients that are kept; one more, and all are made again.
const KEPT: usize = 64;

/// A workspace and a service that it names: provider, address, reference of the credential, model.
type Key = [String; 5];

/// See the module.
#[derive(Default)]
pub(crate) struct Services {
    credentials: Keys,
    /// Whether they may be at private addresses.
    private: bool,
    /// No cache of moka's: clients are few, and each is made again in no time.
    known: Mutex<BTreeMap<Key, Endpoint>>,
}

impl Services {
    /// Which may use these credentials, and private addresses or not.
    pub(crate) fn with(credentials: Keys, private: bool) -> Self {
        Self {
            credentials,
            private,
            ..Self::default()
        }
    }

    /// The endpoint of a service, which keeps its connections for the next question. `None`: the asker names none.
    pub(crate) fn of(
        &self,
        workspace: &str,
        settings: &ModelSettings,
    ) -> Result<Option<Endpoint>, RagError> {
        let Some(service) = &settings.service else {
            return Ok(None);
        };
        let key = [
            workspace.to_owned(),
            service.provider.clone(),
            service.url.clone(),
            service.credential.clone(),
            settings.model.clone(),
        ];
        if let Some(known) = self.known.lock().get(&key) {
            return Ok(Some(known.clone()));
        }
        let dialect = Dialect::of(&service.provider);
        let dialect = dialect.ok_or_else(|| refused("has a provider that is not known"))?;
        let reach = match self.private {
            true => Reach::BeyondLink,
            false => Reach::Public,
        };
        if reach.check(&service.url).is_err() {
            return Err(refused("is at an address that is not asked"));
        }
        let credential = match service.credential.as_str() {
            "" => None,
            name => match self.credentials.get(workspace, name) {
                Some(key) => Some(key.clone()),
                None => return Err(refused("names a credential that is not listed")),
            },
        };
        let model = Some(settings.model.clone()).filter(|model| !model.is_empty());
        let endpoint = Endpoint::within(&service.url, credential, model, dialect, reach);
        let endpoint = endpoint.map_err(|_| refused("cannot be asked"))?;
        let mut known = self.known.lock();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key, endpoint.clone());
        Ok(Some(endpoint))
    }
}

fn refused(why: &'static str) -> RagError {
    RagError::Field {
        field: "service",
        why,
    }
}

#[cfg(test)]
mod tests {
    use tg_schemas::msg::ModelService;

    use super::*;

    fn service(provider: &str, url: &str, credential: &str) -> ModelSettings {
        let service = ModelService {
            provider: provider.to_owned(),
            url: url.to_owned(),
            credential: credential.to_owned(),
            ..ModelService::default()
        };
        ModelSettings {
            service: Some(service),
            ..ModelSettings::default()
        }
    }

    #[test]
    fn a_service_is_asked_where_it_may_be_and_with_what_is_listed() {
        let far = "https://order.example/rerank";
        let near = "http://127.0.0.1:9/rerank";
        let link = "http://169.254.169.254/rerank";
        let is_asked = |private: bool, one: ModelSettings| {
            let services = Services::with(Keys::default(), private);
            services.of("w", &one).is_ok()
        };
        let none = Services::default().of("w", &ModelSettings::default());
        assert!(none.is_ok_and(|endpoint| endpoint.is_none()));
        assert!(is_asked(false, service("tei", far, "")));
        assert!(!is_asked(false, service("odd", far, "")));
        assert!(!is_asked(false, service("tei", near, "")));
        assert!(is_asked(true, service("tei", near, "")));
        assert!(!is_asked(true, service("tei", link, "")));
        assert!(!is_asked(false, service("tei", far, "env:PATH")));
    }
    #[test]
    fn a_service_keeps_its_client_and_no_other_workspace_has_it() {
        let services = Services::default();
        let of = |workspace: &str, model: &str| {
            let settings = ModelSettings {
                model: model.to_owned(),
                ..service("tei", "https://order.example/rerank", "")
            };
            services.of(workspace, &settings).unwrap().unwrap()
        };
        let first = of("w", "m");
        assert!(first.is_same(&of("w", "m")));
        assert!(!first.is_same(&of("other", "m")));
        assert!(!first.is_same(&of("w", "n")));
        for number in 0..=KEPT {
            of(&format!("w{number}"), "m");
            assert!(services.known.lock().len() <= KEPT);
        }
    }
}
