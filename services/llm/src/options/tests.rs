//! Which provider settings and variables choose, and what of mistakes in them is told.

use futures::StreamExt;
use parking_lot::Mutex;
use serde_json::json;
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tokio_util::sync::CancellationToken;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::with_default;
use tracing::{Event, Level, Metadata, Subscriber};

use super::*;
use crate::model::{ChatEvent, ChatRequest};

/// Settings in small letters, variables in capitals.
fn from(pairs: &[(&str, &str)]) -> Options {
    let own = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    let all: tg_settings::Texts = pairs.iter().map(own).collect();
    let set = all
        .clone()
        .into_iter()
        .filter(|(key, _)| key.to_lowercase() == *key);
    let (options, faults) = tg_settings::read::<Options>(set.collect());
    assert!(faults.is_empty(), "{faults:?}");
    Options {
        variables: tg_settings::variables(&all).0,
        ..options
    }
}

/// The choice in words, with where it is and who said so.
fn chosen(pairs: &[(&str, &str)]) -> String {
    let options = from(pairs);
    assert!(options.model().is_ok(), "{:?}", options.faults());
    match options.origin() {
        Some(origin) => format!("{} {}", origin.address(), origin.told()),
        None => options.describe(),
    }
}

#[test]
fn nothing_set_means_builtin() {
    for pairs in [
        &[("OPENAI_API_KEY", " ")][..],
        &[("provider", "builtin"), ("OPENAI_API_KEY", "k")],
    ] {
        let model = from(pairs).model().unwrap();
        assert_eq!(
            model.default_model(),
            "builtin (extractive, not a language model)"
        );
    }
}

#[test]
fn each_provider_is_chosen_by_its_variables() {
    for (pairs, told) in [
        (
            &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1/")][..],
            "http://127.0.0.1:1/v1 set by OPENAI_BASE_URL; model gpt-4.1-mini",
        ),
        (
            &[("OPENAI_API_KEY", "k"), ("OPENAI_MODEL", "m")],
            "https://api.openai.com/v1 set by OPENAI_API_KEY; model m",
        ),
        // What belongs to another provider is not looked at.
        (
            &[
                ("ANTHROPIC_API_KEY", "k"),
                ("OLLAMA_HOST", "a b"),
                ("OLLAMA_CONTEXT_LENGTH", "x"),
            ],
            "https://api.anthropic.com set by ANTHROPIC_API_KEY; model claude-sonnet-4-5",
        ),
        (
            &[("OLLAMA_HOST", "gpu:1234")],
            "http://gpu:1234 set by OLLAMA_HOST; model granite4:350m",
        ),
        (
            &[("OLLAMA_HOST", "0.0.0.0"), ("OLLAMA_MODEL", "q")],
            "http://127.0.0.1:11434 set by OLLAMA_HOST; model q",
        ),
    ] {
        assert_eq!(chosen(pairs), told);
    }
}

#[test]
fn settings_win_over_variables_and_leave_them_what_they_do_not_say() {
    for (pairs, told) in [
        (
            &[
                ("url", "http://u:hidden@h/v1"),
                ("model", "m"),
                ("OPENAI_BASE_URL", "http://other/v1"),
                ("OPENAI_MODEL", "n"),
            ][..],
            "http://h/v1 set by llm.url; model m",
        ),
        (
            &[("provider", "ollama"), ("OPENAI_API_KEY", "k")],
            "http://127.0.0.1:11434 set by llm.provider; model granite4:350m",
        ),
        (
            &[("model", "m"), ("OPENAI_BASE_URL", "http://h/v1")],
            "http://h/v1 set by OPENAI_BASE_URL; model m",
        ),
        (
            &[("provider", "anthropic"), ("key", "k"), ("url", "http://h")],
            "http://h set by llm.url; model claude-sonnet-4-5",
        ),
    ] {
        assert_eq!(chosen(pairs), told);
    }
    let own = [("url", "http://h"), ("key", "a"), ("OPENAI_API_KEY", "b")];
    assert_eq!(from(&own).server().unwrap().key, Some(Secret::new("a")));
    let left = [("url", "http://h"), ("OPENAI_API_KEY", "b")];
    assert_eq!(from(&left).server().unwrap().key, Some(Secret::new("b")));
}

#[test]
fn all_mistakes_are_told_where_they_are_and_no_value_is_shown() {
    for (pairs, wanted) in [
        (
            &[
                ("OPENAI_BASE_URL", "ftp://hidden-host/x"),
                ("OPENAI_API_KEY", "sk-hidden\u{7f}"),
            ][..],
            &[
                "OPENAI_BASE_URL: must start with http:// or https://",
                "OPENAI_API_KEY: contains characters that cannot occur in a key",
            ][..],
        ),
        (
            &[("url", "ftp://hidden-host"), ("key", "sk-hidden\u{7f}")],
            &[
                "llm.url: must start with http:// or https://",
                "llm.key: contains characters that cannot occur in a key",
            ],
        ),
        (
            &[("OLLAMA_HOST", "h"), ("OLLAMA_CONTEXT_LENGTH", "0")],
            &["OLLAMA_CONTEXT_LENGTH: must be a whole number above 0"],
        ),
        (
            &[("provider", "anthropic")],
            &["llm.key: is required by this provider, or ANTHROPIC_API_KEY is"],
        ),
        (
            &[("model", "m"), ("key", "sk-hidden")],
            &[
                "llm.model: has no effect on the builtin reader: set llm.provider too",
                "llm.key: has no effect on the builtin reader: set llm.provider too",
            ],
        ),
    ] {
        let options = from(pairs);
        assert!(options.model().is_err());
        let faults: Vec<String> = options.faults().iter().map(ToString::to_string).collect();
        assert_eq!(faults, wanted);
        let shown = format!("{faults:?} {options:?}");
        assert!(!shown.contains("sk-hidden"), "{shown}");
    }
}

/// Whoever uses a gateway by OpenAI's clients has its address and a key of it in these variables.
#[test]
fn a_key_of_a_gateway_is_sent_to_no_public_provider() {
    let of_gateway = "is a key of a Threadgraph gateway (tg_…)";
    for (pairs, key) in [
        (&[("OPENAI_API_KEY", "tg_hidden")][..], "OPENAI_API_KEY"),
        (
            &[
                ("OPENAI_API_KEY", "tg_hidden"),
                ("url", "https://api.openai.com/v1/"),
            ],
            "OPENAI_API_KEY",
        ),
        (
            &[("provider", "anthropic"), ("key", "tg_hidden")],
            "llm.key",
        ),
        (
            &[(
                "backends",
                r#"[{"provider": "groq", "model": "m", "key": "tg_hidden"}]"#,
            )],
            "llm.backends: groq: key",
        ),
    ] {
        let faults = from(pairs).faults();
        let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        let expected = format!("{key}: {of_gateway}");
        assert!(told[0].starts_with(&expected), "{told:?}");
        assert!(!told[0].contains("hidden"), "{told:?}");
    }
    // Another gateway is such a server.
    let elsewhere = [
        ("url", "https://models.example/v1"),
        ("OPENAI_API_KEY", "tg_x"),
    ];
    assert_eq!(from(&elsewhere).faults(), []);
}

#[test]
fn the_gateway_itself_is_no_provider() {
    let listen = "127.0.0.1:8888".parse().unwrap();
    let told = |pairs: &[(&str, &str)]| -> Vec<String> {
        let faults = from(pairs).asks_gateway(listen);
        faults.iter().map(ToString::to_string).collect()
    };
    let own = "http://localhost:8888/v1";
    assert_eq!(
        told(&[("OPENAI_BASE_URL", own)]),
        [
            "OPENAI_BASE_URL: is the address of this gateway, which would ask itself: name the server of the model"
        ]
    );
    assert!(told(&[("url", own)])[0].starts_with("llm.url: is the address of this gateway"));
    let backends = format!(
        r#"[{{"provider": "ollama", "model": "m"}}, {{"name": "near", "provider": "openai", "url": "{own}"}}]"#
    );
    let backends = told(&[("backends", &backends)]);
    assert_eq!(backends.len(), 1, "{backends:?}");
    assert!(
        backends[0].starts_with("llm.backends: near: url is the address of this gateway"),
        "{backends:?}"
    );
    for other in ["http://localhost:8000/v1", "http://models.example:8888/v1"] {
        assert_eq!(told(&[("url", other)]), Vec::<String>::new(), "{other}");
    }
    assert_eq!(told(&[]), Vec::<String>::new());
}

/// Keeps what is warned of.
#[derive(Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

/// The fields of a warning, the text first.
#[derive(Default)]
struct Fields(Vec<String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push(format!("{field}={value:?}"));
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, about: &Metadata<'_>) -> bool {
        *about.level() == Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().push(fields.0.join(" "));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn line_153_an_unknown_strategy_is_warned_of_and_taken_as_failover() {
    let given = r#"[{"provider": "ollama", "model": "m"}]"#;
    for (strategy, taken, is_known) in [
        ("fastest", "failover", false),
        ("", "failover", true),
        ("round-robin", "round-robin", true),
        ("Least-Loaded", "least-loaded", true),
    ] {
        let options = from(&[("backends", given), ("strategy", strategy)]);
        let warnings = Warnings::default();
        let told = warnings.0.clone();
        let completer = with_default(warnings, || options.completer()).unwrap();
        let route = completer.router().explain(None, 0);
        assert_eq!(route.strategy, taken);
        let told = told.lock().join("; ");
        assert_eq!(told.is_empty(), is_known, "{told}");
        assert!(
            is_known || (told.contains("not known") && told.contains("\"fastest\"")),
            "{told}"
        );
    }
}

#[test]
fn a_model_without_a_server_is_logged() {
    for (pairs, logged) in [
        (&[("OPENAI_MODEL", "m")][..], Some("OPENAI_MODEL alone")),
        (&[("OLLAMA_MODEL", "m")], Some("set OLLAMA_HOST too")),
        (&[("OPENAI_MODEL", "m"), ("OPENAI_API_KEY", "k")], None),
        (&[("OPENAI_MODEL", "m"), ("provider", "builtin")], None),
        (&[], None),
    ] {
        let warnings = Warnings::default();
        let all = warnings.0.clone();
        with_default(warnings, || from(pairs).completer()).unwrap();
        let all = all.lock().join("; ");
        assert_eq!(logged.is_some(), !all.is_empty(), "{all}");
        assert!(all.contains(logged.unwrap_or_default()), "{all}");
    }
}

/// What is wrong with backends is told by their names.
#[test]
fn backends_are_listed_and_their_mistakes_told_without_values() {
    let given = r#"[{"provider": "xai", "key": "sk-hidden", "priority": 2},
        {"name": "near", "provider": "ollama", "supported_models": ["llama3"]}]"#;
    let options = from(&[("backends", given)]);
    assert_eq!(options.faults(), []);
    assert_eq!(options.describe(), "llama3 (2 backends)");
    assert!(!options.completer().unwrap().router().is_alone());
    let shown = format!("{options:?}{}", serde_json::to_string(&options).unwrap());
    assert!(
        !shown.contains("sk-hidden") && shown.contains("xai, near"),
        "{shown}"
    );
    for (given, told) in [
        (
            r#"[{"provider": "other", "model": "m"}]"#,
            "llm.backends: other: provider must be one of openai, xai,",
        ),
        (
            r#"[{"provider": "ollama", "model": "m"}, {"provider": "ollama"}]"#,
            "llm.backends: must name each backend differently",
        ),
        (
            r#"[{"provider": "ollama"}]"#,
            "llm.model: must say which model",
        ),
        (
            r#"[{"provider": "anthropic", "model": "m"}]"#,
            "llm.backends: anthropic: key is required",
        ),
        (
            r#"[{"provider": "vertex", "key": "k", "model": "m"}]"#,
            "llm.backends: vertex: url is required by this provider",
        ),
        (
            r#"[{"provider": "ollama", "model": "m", "timeout": 0}]"#,
            "llm.backends: ollama: timeout must be from 1 to 3600 seconds",
        ),
    ] {
        let faults = from(&[("backends", given)]).faults();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].to_string().starts_with(told), "{}", faults[0]);
    }
    let beside = from(&[
        ("backends", given),
        ("url", "http://h"),
        ("key", "sk-hidden"),
    ]);
    assert_eq!(beside.faults().len(), 2);
    for wrong in ["[]", "{", r#"[{"provider": 1, "key": "sk-hidden"}]"#] {
        let given = [("backends".to_owned(), wrong.to_owned())].into();
        let (_, faults) = tg_settings::read::<Options>(given);
        let told = faults[0].to_string();
        assert!(
            told.starts_with("backends: must") && !told.contains("hidden"),
            "{told}"
        );
    }
}

/// Credentials stand in the settings of all processes, and whoever asks models has them.
#[test]
fn a_credential_that_is_not_there_stops_only_whoever_sends_it() {
    let options = from(&[("credentials", "a=env:THREADGRAPH_NO_SUCH_VARIABLE")]);
    assert_eq!(options.faults(), []);
    let told = options.completer().map(drop).unwrap_err().to_string();
    let expected = "llm.credentials: a=env:THREADGRAPH_NO_SUCH_VARIABLE names a variable";
    assert!(told.starts_with(expected), "{told}");
}

/// Who adds a provider touches its file, the table and the page.
#[test]
fn each_provider_of_the_table_is_known_and_documented() {
    let page = include_str!("../../../../docs/models.md");
    for one in crate::providers::PROVIDERS {
        let name = one.name;
        assert!(page.contains(&format!("`{name}`")), "{name}");
        let entry = json!([{"provider": name, "model": "m", "url": "http://h"}]);
        let faults = from(&[("backends", &entry.to_string())]).faults();
        let wants_key = one.key == crate::providers::Key::Required;
        assert_eq!(faults.len(), usize::from(wants_key), "{name}: {faults:?}");
    }
}

/// A single provider has a router of one, and so has the builtin reader.
#[test]
fn without_backends_there_is_a_router_of_one() {
    for options in [from(&[("OPENAI_API_KEY", "k")]), from(&[])] {
        assert!(options.completer().unwrap().router().is_alone());
    }
}

/// The doors of clouds that speak the dialect: path and key are sent as they are written.
#[tokio::test]
async fn the_doors_of_clouds_are_asked_by_their_own_paths() {
    let server = ScriptedModel::start(vec![Rule::always(Reply::text("hello"))]);
    let server = server.await.unwrap();
    let vertex = "v1/projects/p-1/locations/europe-west4/endpoints/openapi";
    for (provider, path, model) in [
        ("bedrock", "openai/v1", "openai.gpt-oss-20b-1:0"),
        ("vertex", vertex, "google/gemini-2.5-flash"),
        ("gemini", "v1", "gemini-2.5-flash"),
    ] {
        let backend = serde_json::json!([{
            "provider": provider, "url": format!("{}/{path}/", server.root()), "key": "door-key", "model": model,
        }]);
        let options = from(&[("backends", &backend.to_string())]);
        assert_eq!(options.faults(), []);
        let request = ChatRequest {
            prompt: "hello".to_owned(),
            ..ChatRequest::default()
        };
        let (within, cancel) = (Duration::from_secs(20), CancellationToken::new());
        let completer = options.completer().unwrap();
        let mut events = completer.open(&request, within, &cancel).await.unwrap();
        let first = events.next().await.unwrap().unwrap();
        assert_eq!(first, ChatEvent::Delta("hello".to_owned()), "{provider}");
        let call = server.calls().pop().unwrap();
        assert_eq!(call.path, format!("/{path}/chat/completions"));
        assert_eq!(call.authorization.as_deref(), Some("Bearer door-key"));
        assert_eq!(call.body["model"], model);
    }
}

/// One door of a cloud is the same for everybody.
#[test]
fn gemini_is_at_its_usual_address() {
    let backend = r#"[{"provider": "gemini", "key": "k", "model": "m"}]"#;
    let options = from(&[("backends", backend)]);
    assert_eq!(options.faults(), []);
    assert_eq!(
        options.origin().unwrap().address(),
        "https://generativelanguage.googleapis.com/v1beta/openai"
    );
}
