//! What a reranking service of a workspace may be like, and how it changes. What holds for the address and the credential of an LLM service
//! holds here, too.

use tg_schemas::msg::{ModelService, ModelSettings};
use tg_schemas::operations::{Failure, NewLlmService, NewRerankingService, RerankingServiceChange};

use super::llm_service;

/// What a service is like, as it is kept.
///
/// # Errors
/// The first field that is out of its range.
pub fn settled(service: NewRerankingService) -> Result<NewRerankingService, Failure> {
    llm_service::settled(NewLlmService {
        name: service.name.clone(),
        provider: service.provider.clone(),
        model_name: service.model_name.clone(),
        endpoint_base_url: Some(service.endpoint_base_url.clone()),
        endpoint_path: service.endpoint_path.clone(),
        credential_ref: service.credential_ref.clone(),
        ..NewLlmService::default()
    })?;
    match llm_service::RERANKERS.contains(&service.provider.as_str()) {
        true => Ok(service),
        false => Err(Failure::invalid("provider", llm_service::KNOWN_RERANKERS)),
    }
}

/// A service with what changes of it.
///
/// # Errors
/// As of [`settled`].
pub fn changed(
    service: NewRerankingService,
    change: RerankingServiceChange,
) -> Result<NewRerankingService, Failure> {
    settled(NewRerankingService {
        reranking_service_id: service.reranking_service_id,
        name: change.name.unwrap_or(service.name),
        provider: change.provider.unwrap_or(service.provider),
        model_name: change.model_name.unwrap_or(service.model_name),
        endpoint_base_url: change
            .endpoint_base_url
            .unwrap_or(service.endpoint_base_url),
        endpoint_path: change.endpoint_path.unwrap_or(service.endpoint_path),
        credential_ref: change.credential_ref.unwrap_or(service.credential_ref),
    })
}

/// By what a service is asked, and for which model.
pub fn asked(service: NewRerankingService) -> ModelSettings {
    let path = service.endpoint_path.unwrap_or_default();
    let base = match path.is_empty() {
        // A slash at the end may matter: this is a whole address.
        true => service.endpoint_base_url.as_str(),
        false => service.endpoint_base_url.trim_end_matches('/'),
    };
    let by = ModelService {
        provider: service.provider,
        url: format!("{base}{path}"),
        credential: service.credential_ref.unwrap_or_default(),
        timeout_ms: 0,
    };
    ModelSettings {
        model: service.model_name,
        service: Some(by),
        ..ModelSettings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> NewRerankingService {
        NewRerankingService {
            name: "near".to_owned(),
            provider: "tei".to_owned(),
            model_name: "m".to_owned(),
            endpoint_base_url: "https://order.example/".to_owned(),
            endpoint_path: Some("/v2/rerank".to_owned()),
            ..NewRerankingService::default()
        }
    }

    #[test]
    fn what_is_out_of_its_range_is_refused_by_its_name() {
        assert_eq!(settled(service()), Ok(service()));
        let wrong = |change: fn(&mut NewRerankingService)| {
            let mut one = service();
            change(&mut one);
            settled(one).unwrap_err().message
        };
        let named = |text: String, field: &str| assert!(text.starts_with(field), "{text}");
        named(wrong(|one| one.name.clear()), "name: ");
        named(wrong(|one| one.model_name.clear()), "modelName: ");
        named(wrong(|one| one.provider = "odd".to_owned()), "provider: ");
        named(
            wrong(|one| one.endpoint_base_url.clear()),
            "endpointBaseUrl: ",
        );
        named(
            wrong(|one| one.endpoint_base_url = "http://169.254.169.254/".to_owned()),
            "endpointBaseUrl: ",
        );
        named(
            wrong(|one| one.credential_ref = Some("sk-1".to_owned())),
            "credentialRef: ",
        );
    }

    #[test]
    fn what_is_left_out_of_a_change_stays() {
        let change = RerankingServiceChange {
            endpoint_path: Some(None),
            model_name: Some("n".to_owned()),
            ..RerankingServiceChange::default()
        };
        let changed = changed(service(), change).unwrap();
        assert_eq!(
            (changed.name.as_str(), changed.endpoint_path.as_deref()),
            ("near", None)
        );
        assert_eq!(asked(changed).model, "n");
        let by = asked(service()).service;
        assert_eq!(by.unwrap().url, "https://order.example/v2/rerank");
    }
}
