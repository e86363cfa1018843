//! Which provider settings and environment choose, and what of mistakes in them is told.

use super::*;
use crate::testing;

/// Options, and the keys of what is wrong with them.
fn from(pairs: &[(&str, &str)], data_dir: &Path) -> (Options, Vec<String>) {
    let own = |(key, text): &(&str, &str)| ((*key).to_owned(), (*text).to_owned());
    let all: tg_settings::Texts = pairs.iter().map(own).collect();
    let settings = all
        .clone()
        .into_iter()
        .filter(|(key, _)| key.to_lowercase() == *key);
    let (options, mut faults) = tg_settings::read::<Options>(settings.collect());
    let options = Options {
        data_dir: data_dir.to_owned(),
        variables: tg_settings::variables(&all).0,
        ..options
    };
    faults.extend(options.faults());
    assert!(!format!("{faults:?} {options:?}").contains("sk-hidden"));
    (options, faults.into_iter().map(|fault| fault.key).collect())
}

fn endpoint(pairs: &[(&str, &str)]) -> (String, String, bool) {
    match from(pairs, Path::new("/none")).0.chosen().unwrap() {
        Chosen::Endpoint(_, to) => (to.url, to.model, to.key.is_some()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_set_means_lexical_whatever_answers_prompts() {
    let environment = [("OPENAI_API_KEY", "k"), ("OLLAMA_HOST", "h")];
    let (options, faults) = from(&environment, Path::new("/none"));
    assert!(options.is_lexical() && faults.is_empty());
    assert!(options.embedder().is_ok());
}

#[test]
fn endpoints_take_what_the_environment_has() {
    let openai = ("provider", "openai");
    let (url, model, key) = endpoint(&[openai, ("OPENAI_API_KEY", "k")]);
    assert_eq!(
        (url.as_str(), model.as_str(), key),
        (OPENAI_URL, OPENAI_MODEL, true)
    );
    let local = [openai, ("OPENAI_BASE_URL", "http://h/v1/"), ("model", "m")];
    assert_eq!(endpoint(&local), ("http://h/v1".into(), "m".into(), false));
    let ollama = [("provider", "ollama"), ("OLLAMA_HOST", "0.0.0.0")];
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
    let (named, _) = from(&[("provider", "static"), ("model", "tiny")], dir.path());
    assert_eq!(named.describe(), "tiny (static vectors)");
    assert!(named.embedder().is_ok());
    let path = dir.path().join("models/tiny");
    let at = [("provider", "static"), ("path", path.to_str().unwrap())];
    let (at, _) = from(&at, Path::new("/none"));
    assert_eq!(at.chosen(), named.chosen());
    std::fs::remove_file(path.join("tokenizer.json")).unwrap();
    assert_eq!(at.embedder().err().unwrap().key, "model");
}

#[test]
fn all_mistakes_are_told_and_no_secret_is_shown() {
    let faults = |pairs: &[(&str, &str)]| from(pairs, Path::new("/none")).1;
    let keys = faults(&[
        ("provider", "openai"),
        ("url", "ftp://hidden/x"),
        ("key", "sk-hidden\u{7f}"),
        ("batch", "0"),
        ("dimensions", "many"),
    ]);
    assert_eq!(keys, ["batch", "dimensions", "url", "key"]);
    // A key of a gateway is often in the environment, for clients.
    let openai = [("provider", "openai"), ("OPENAI_API_KEY", "tg_x")];
    assert_eq!(faults(&openai), ["key"]);
    let elsewhere = [openai[0], openai[1], ("url", "https://models.example/v1")];
    assert_eq!(faults(&elsewhere), Vec::<String>::new());
    assert_eq!(faults(&[("provider", "magic")]), ["provider"]);
    assert_eq!(faults(&[("provider", "static")]), ["model"]);
    assert_eq!(
        faults(&[("model", "m"), ("dimensions", "7")]),
        ["model", "dimensions"]
    );
    assert_eq!(
        faults(&[("provider", "static"), ("model", "../x")]),
        ["model"]
    );
}
