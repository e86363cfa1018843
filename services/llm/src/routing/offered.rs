//! Which models a backend offers.

use tg_schemas::msg::ModelInfo;

use crate::engine::router::serving::{Backend, Serves};

/// What a backend offers: what it lists, of that what it serves, and what the settings say of it besides.
pub(super) fn offered(about: &Backend, listed: Vec<ModelInfo>) -> Vec<ModelInfo> {
    let own = |model: &str| ModelInfo {
        id: model.to_owned(),
        owned_by: Some(about.provider.clone()),
        ..ModelInfo::default()
    };
    if let Serves::Listed(names) = &about.serves {
        let known = |name: &String| {
            let sent = about.model.as_deref().unwrap_or(name);
            let found = listed.iter().find(|one| one.id.eq_ignore_ascii_case(sent));
            ModelInfo {
                id: name.clone(),
                ..found.cloned().unwrap_or_else(|| own(name))
            }
        };
        return names.iter().map(known).collect();
    }
    let mut offered = listed;
    offered.retain(|model| about.serves.has(&model.id));
    for model in &mut offered {
        model.owned_by.get_or_insert_with(|| about.provider.clone());
    }
    offered
}
