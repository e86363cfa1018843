//! `GET /api/v1/i18n/packs/{lang}`: texts for user interfaces.

use std::collections::BTreeMap;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;

use crate::error::{json_response, refusal};

/// One object per language, keys to texts.
const PACKS: &str = include_str!("../../i18n/packs.json");

/// The pack of a language; English for those we do not speak.
pub(crate) async fn pack(Path(lang): Path<String>) -> Response {
    if lang.contains('/') || lang.contains("..") {
        return refusal(StatusCode::BAD_REQUEST, "lang: is not a language");
    }
    json_response(StatusCode::OK, &find(&lang.to_ascii_lowercase()))
}

fn find(lang: &str) -> Value {
    let mut packs: BTreeMap<String, Value> =
        serde_json::from_slice(PACKS.as_bytes()).unwrap_or_default();
    packs
        .remove(lang)
        .or_else(|| packs.remove("en"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_language_has_every_text() {
        let english = find("en");
        let keys: Vec<_> = english.as_object().unwrap().keys().collect();
        assert!(!keys.is_empty());
        for lang in ["ar", "es", "he", "hi", "pt", "ru", "sw", "tr", "zh-cn"] {
            let pack = find(lang);
            assert_ne!(pack, english, "{lang}");
            let own: Vec<_> = pack.as_object().unwrap().keys().collect();
            assert_eq!(own, keys, "{lang}");
        }
        assert_eq!(find("tlh"), english);
    }
}
