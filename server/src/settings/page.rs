//! The settings as people read them: what `threadgraph settings` prints, and docs/settings.md.

use serde::Serialize;
use serde_json::Value;
use tg_provider_http::without_credentials;
use tg_settings::{Filled, Key, Options, SettingError, Texts, shown};

use super::memory::{SHARES, WHOLE};
use super::{Flags, Settings, Source};

/// A setting or a variable as it counts now. Keys and passwords are shown as stars.
#[derive(Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What counts; empty: nothing.
    pub value: String,
    /// What counts where nobody says anything.
    pub default: String,
    /// `default`, `file`, `environment`, `flag`, or the variable or setting that fills in what was left open.
    pub from: String,
    /// What it means.
    pub meaning: String,
    /// Whether a settings file has it in quotes.
    #[serde(skip)]
    is_text: bool,
}

/// The settings; of one that has a share of the memory the share is the default.
fn settings() -> Vec<Key> {
    let mut keys = Settings::keys();
    for key in &mut keys {
        if let Some(share) = SHARES.iter().find(|share| share.key == key.name) {
            key.default = share.usual();
        }
    }
    keys
}

/// The variables of model providers, by their names.
fn variables() -> Vec<Key> {
    let mut keys = tg_llm::Variables::keys();
    for key in &mut keys {
        key.name = key.name.to_uppercase();
    }
    keys
}

/// Every setting, and every variable of model providers, with what counts and where that comes from; and all mistakes,
/// in place of which defaults are shown.
pub fn effective(flags: &Flags, env: &Texts) -> (Vec<Row>, Vec<SettingError>) {
    let (settings, given, faults) = Settings::read(flags, env);
    let all = serde_json::to_value(&settings).unwrap_or_default();
    let filled = filled(&settings);
    let own = self::settings().into_iter().map(|key| {
        if let Some((_, filled)) = filled.iter().find(|(name, _)| *name == key.name) {
            let value = Value::from(filled.value.as_str());
            return row(key, &value, filled.by.unwrap_or("default"));
        }
        let value = key.name.split('.').fold(&all, |at, word| &at[word]);
        let from = given.source(&key.name);
        row(key, value, from)
    });
    let told = serde_json::to_value(&settings.llm.variables).unwrap_or_default();
    let theirs = variables().into_iter().map(|key| {
        let value = &told[key.name.to_lowercase()];
        let from = match value {
            Value::Null => Source::Default,
            _ => Source::Environment,
        };
        row(key, value, from)
    });
    (own.chain(theirs).collect(), faults)
}

/// The settings of models and of memory that were left open, by their names.
fn filled(settings: &Settings) -> Vec<(String, Filled)> {
    let within = |section: &'static str, filled: Vec<Filled>| {
        let named = move |filled: Filled| (format!("{section}.{}", filled.name), filled);
        filled.into_iter().map(named)
    };
    within("llm", settings.llm.filled())
        .chain(within("embeddings", settings.embeddings.filled()))
        .chain(within("telemetry", settings.telemetry.filled()))
        .chain(
            settings
                .filled
                .iter()
                .map(|own| (own.name.to_owned(), own.clone())),
        )
        .collect()
}

fn row(key: Key, value: &Value, from: impl ToString) -> Row {
    let value = match value {
        Value::Null => String::new(),
        Value::String(text) if text.contains("://") => without_credentials(text),
        Value::String(text) if is_address(&key.name) => {
            // Without a scheme, as an Ollama's may be; what is before the sign is a user and a password.
            text.rsplit('@').next().unwrap_or_default().to_owned()
        }
        Value::String(text) => text.clone(),
        other => shown(other),
    };
    let is_text = key.bounds.is_none() && !["true", "false"].contains(&key.default.as_str());
    Row {
        is_text: is_text || value.is_empty(),
        meaning: key.meaning(),
        name: key.name,
        value,
        default: key.default,
        from: from.to_string(),
    }
}

/// Whether a setting or variable is the address of a server.
fn is_address(name: &str) -> bool {
    let name = name.to_lowercase();
    name.ends_with("url") || name.ends_with("host")
}

/// The rows as people read them: each as a settings file has it, but for variables, which no file has.
pub fn listing(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let whence = match row.from.as_str() {
            "default" => "default".to_owned(),
            from => format!("from {from}; default {:?}", row.default),
        };
        let variable = row.name.starts_with(char::is_uppercase);
        let mark = if variable { "# variable " } else { "" };
        let name = &row.name;
        let value = match row.is_text {
            true => format!("{:?}", row.value),
            false => row.value.clone(),
        };
        format!("# {}\n{mark}{name} = {value}   # {whence}\n\n", row.meaning)
    };
    rows.iter().map(line).collect()
}

/// The page of all settings, as docs/settings.md has it.
pub fn page() -> String {
    let mut page = String::from(
        "# Settings\n\nMade from the program's own structs by `UPDATE=1 cargo test -p tg-server settings_page`; do not edit.\n\n\
         A setting comes from its flag, else from the environment (`THREADGRAPH_` and its name in capitals, with `__` for \
         each dot), else from `threadgraph.toml`, else it has its default. All mistakes are reported at once. An empty value in a \
         section counts as not set. `threadgraph settings` prints what counts and where each value comes from, keys as \
         stars; it takes the flags of `up`, such as `--config`, and `--json`. A setting that holds a secret may name it: \
         `env:NAME` is what that variable holds, `file:PATH` what that file does.\n\n",
    );
    page.push_str(&table("setting", &settings()));
    page.push_str(
        "\nMemory: each share counts for the consumer, whichever services a process hosts, so that all processes of a \
         system on one machine take no more together than one would; a machine that serves few of them is given more by the \
         settings themselves. All shares are 90 % of `memory_mb`; what is given counts as it is, and where it leaves the \
         others less than their shares they share that. `threadgraph settings` prints what comes of it.\n\
         \nHow retrieval uses `rag.…`: [retrieval.md](retrieval.md).\n\nFlags only: `--adopt-store NAME` (repeatable) \
         serves with a store although another one of its name served before.\n\n## Variables of model providers\n\nWhat \
         `llm.…` leaves open is taken from the variables that providers' own tools use; a setting wins over them. Where \
         neither `llm.provider` nor `llm.url` is set, the first of OpenAI, Anthropic and Ollama whose variables are set \
         serves, and variables of the others mean nothing. None: the extractive reader that is built in. At its start \
         the process that serves `llm` looks whether the provider answers and lists the model, and logs where it does \
         not; `tg-doctor` looks again.\n\n",
    );
    page.push_str(&table("variable", &variables()));
    page
}

fn table(of: &str, keys: &[Key]) -> String {
    let row = |key: &Key| {
        let default = match key.default.as_str() {
            "" => String::new(),
            share if share.contains(WHOLE) => share.to_owned(),
            default => format!("`{default}`"),
        };
        format!("| `{}` | {default} | {} |\n", key.name, key.meaning())
    };
    let rows: String = keys.iter().map(row).collect();
    format!("| {of} | default | meaning |\n|---|---|---|\n{rows}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_page() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/settings.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap();
        assert_eq!(
            written,
            page(),
            "run UPDATE=1 cargo test -p tg-server settings_page"
        );
    }

    #[test]
    fn what_counts_is_shown_with_where_it_comes_from_and_no_key() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("own.toml");
        let text = "[llm]\nurl = \"http://u:hidden@h:1/v1\"\nkey = \"sk-hidden\"\n[agent]\nmax_iterations = 4\n";
        std::fs::write(&file, text).unwrap();
        let flags = Flags {
            config: Some(file),
            bus: Some("amqp://u:hidden@h/".to_owned()),
            ..Flags::default()
        };
        let env = [
            ("THREADGRAPH_AGENT__MAX_ITERATIONS", "5"),
            ("OPENAI_MODEL", "m"),
            ("OLLAMA_HOST", "u:hidden@gpu:1"),
            ("OPENAI_API_KEY", "sk-hidden"),
        ];
        let env: Texts = env
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into();
        let (rows, faults) = effective(&flags, &env);
        assert!(faults.is_empty(), "{faults:?}");
        let shown = |name: &str| {
            let row = rows.iter().find(|row| row.name == name).unwrap();
            (row.value.as_str(), row.from.as_str())
        };
        assert_eq!(shown("llm.url"), ("http://h:1/v1", "file"));
        assert_eq!(shown("llm.key"), ("***", "file"));
        assert_eq!(shown("llm.provider"), ("openai", "llm.url"));
        assert_eq!(shown("llm.model"), ("m", "OPENAI_MODEL"));
        assert_eq!(shown("embeddings.url"), ("", "default"));
        assert_eq!(shown("agent.max_iterations"), ("5", "environment"));
        assert_eq!(shown("bus").1, "flag");
        assert_eq!(shown("auth"), ("none", "default"));
        assert_eq!(shown("OPENAI_MODEL"), ("m", "environment"));
        assert_eq!(shown("OPENAI_API_KEY"), ("***", "environment"));
        assert_eq!(shown("OLLAMA_HOST"), ("gpu:1", "environment"));
        assert_eq!(shown("OLLAMA_MODEL"), ("", "default"));
        let text = listing(&rows);
        // What is printed is a settings file, with numbers as numbers.
        let file = config::File::from_str(&text, config::FileFormat::Toml);
        let file = config::Config::builder().add_source(file).build().unwrap();
        let kind = |name: &str| file.get::<config::Value>(name).unwrap().kind;
        assert_eq!(kind("agent.max_iterations"), config::ValueKind::I64(5));
        assert_eq!(kind("extract.threshold"), config::ValueKind::Float(0.3));
        assert_eq!(kind("auth"), config::ValueKind::String("none".to_owned()));
        assert!(text.contains("\nllm.url = \"http://h:1/v1\"   # from file; default \"\"\n"));
        assert!(text.contains("\nauth = \"none\"   # default\n"));
        assert!(text.contains("\n# variable OPENAI_MODEL = \"m\"   # from environment"));
        let json = serde_json::to_string(&rows).unwrap();
        for text in [text, json, format!("{rows:?}")] {
            assert!(!text.contains("hidden"), "{text}");
        }
    }
}
