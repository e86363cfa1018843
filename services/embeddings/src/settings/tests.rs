//! Which provider settings and environment choose, and what of mistakes in them is told.

use super::*;
use crate::testing;

fn from(pairs: &[(&str, &str)], dir: &Path) -> Result<EmbeddingSettings, Vec<SettingFault>> {
    let lookup = |name: &str| {
        let found = pairs.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    EmbeddingSettings::from_lookup(lookup, dir)
}

fn endpoint(pairs: &[(&str, &str)]) -> (String, String, bool) {
    match from(pairs, Path::new("/none")).unwrap().provider {
        ProviderSettings::Endpoint {
            url, model, key, ..
        } => (url, model, key.is_some()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_set_means_lexical_whatever_answers_prompts() {
    let environment = [("OPENAI_API_KEY", "k"), ("OLLAMA_HOST", "h")];
    let settings = from(&environment, Path::new("/none")).unwrap();
    assert!(settings.is_lexical());
    assert_eq!(settings, EmbeddingSettings::default());
    assert!(settings.build().is_ok());
    let defaults = KEYS.map(|(key, value)| (key, value));
    assert_eq!(from(&defaults, Path::new("/none")).unwrap(), settings);
}

#[test]
fn endpoints_take_what_the_environment_has() {
    let openai = ("embeddings.provider", "openai");
    let (url, model, key) = endpoint(&[openai, ("OPENAI_API_KEY", "k")]);
    assert_eq!(
        (url.as_str(), model.as_str(), key),
        (OPENAI_URL, OPENAI_MODEL, true)
    );
    let local = [
        openai,
        ("OPENAI_BASE_URL", "http://h/v1/"),
        ("embeddings.model", "m"),
    ];
    assert_eq!(endpoint(&local), ("http://h/v1".into(), "m".into(), false));
    let ollama = [
        ("embeddings.provider", "ollama"),
        ("OLLAMA_HOST", "0.0.0.0"),
    ];
    let (url, model, _) = endpoint(&ollama);
    assert_eq!(
        (url.as_str(), model.as_str()),
        ("http://127.0.0.1:11434", OLLAMA_MODEL)
    );
}

#[test]
fn a_static_model_is_found_by_name_or_path() {
    let dir = tempfile::tempdir().unwrap();
    testing::write_model(dir.path(), "models/tiny", false);
    let named = [
        ("embeddings.provider", "static"),
        ("embeddings.model", "tiny"),
    ];
    let settings = from(&named, dir.path()).unwrap();
    assert_eq!(settings.describe(), "tiny (static vectors)");
    assert!(settings.build().is_ok());
    let path = dir.path().join("models/tiny");
    let at = [
        ("embeddings.provider", "static"),
        ("embeddings.path", path.to_str().unwrap()),
    ];
    assert_eq!(from(&at, Path::new("/none")).unwrap(), settings);
    std::fs::remove_file(path.join("tokenizer.json")).unwrap();
    let fault = settings.build().err().unwrap();
    assert_eq!(fault.key, "embeddings.model");
}

#[test]
fn all_mistakes_are_told_and_no_secret_is_shown() {
    let faults = |pairs: &[(&str, &str)]| {
        let faults = from(pairs, Path::new("/none")).unwrap_err();
        let keys: Vec<_> = faults.iter().map(|fault| fault.key).collect();
        let text: Vec<_> = faults.iter().map(ToString::to_string).collect();
        assert!(!text.join(" ").contains("hidden"), "{text:?}");
        keys
    };
    let keys = faults(&[
        ("embeddings.provider", "openai"),
        ("embeddings.url", "ftp://hidden/x"),
        ("embeddings.key", "sk-hidden\u{7f}"),
        ("embeddings.batch", "0"),
        ("embeddings.dimensions", "many"),
    ]);
    let wanted = [
        "embeddings.dimensions",
        "embeddings.url",
        "embeddings.key",
        "embeddings.batch",
    ];
    assert_eq!(keys, wanted);
    assert_eq!(
        faults(&[("embeddings.provider", "magic")]),
        ["embeddings.provider"]
    );
    assert_eq!(
        faults(&[("embeddings.provider", "static")]),
        ["embeddings.model"]
    );
    assert_eq!(faults(&[("embeddings.model", "m")]), ["embeddings.model"]);
    let outside = [
        ("embeddings.provider", "static"),
        ("embeddings.model", "../x"),
    ];
    assert_eq!(faults(&outside), ["embeddings.model"]);
    let key = [
        ("embeddings.provider", "openai"),
        ("embeddings.key", "sk-hidden"),
    ];
    let settings = from(&key, Path::new("/none")).unwrap();
    assert!(!format!("{settings:?}").contains("sk-hidden"));
}
