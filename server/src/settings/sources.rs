//! Where settings come from: a file, the environment, flags. Later ones win.

use std::collections::BTreeMap;
use std::fmt;

use config::{Config, Environment, File, FileFormat, Value, ValueKind};
use tg_settings::{SettingError, Texts};

use super::Flags;

const PREFIX: &str = "THREADGRAPH";
/// What the `tg` commands read under the same prefix: no settings of the server.
const OF_COMMANDS: [&str; 7] = [
    "URL",
    "TOKEN",
    "CA_FILE",
    "WORKSPACE",
    "PROFILE",
    "MODELS_FROM",
    "BOOTSTRAP_CODE",
];
/// The file that is read where none is named.
const FILE: &str = "threadgraph.toml";

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// The settings file.
    File,
    /// A variable.
    Environment,
    /// A flag.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
            Self::Flag => "flag",
        })
    }
}

/// What was given, by the names of settings.
#[derive(Debug, Default)]
pub struct Given(BTreeMap<String, (String, Source)>);

impl Given {
    /// The values alone.
    pub fn texts(&self) -> Texts {
        let own = |(key, (text, _)): (&String, &(String, Source))| (key.clone(), text.clone());
        self.0.iter().map(own).collect()
    }

    /// Where the value of a setting comes from.
    pub fn source(&self, key: &str) -> Source {
        self.0.get(key).map_or(Source::Default, |(_, from)| *from)
    }

    fn take(&mut self, config: Config, from: Source) {
        let mut values = Texts::new();
        flatten("", config.cache, &mut values);
        let values = values.into_iter();
        self.0.extend(values.map(|(key, text)| (key, (text, from))));
    }
}

/// All that is given. `env` stands for the process environment.
///
/// # Errors
/// A file that is not there or cannot be read.
pub fn collect(flags: &Flags, env: Texts) -> Result<Given, SettingError> {
    let file = match &flags.config {
        Some(path) if !path.exists() => {
            let text = format!("{} does not exist", path.display());
            return Err(SettingError::new("--config", text));
        }
        Some(path) => Config::builder().add_source(File::from(path.as_path())),
        None => Config::builder().add_source(File::new(FILE, FileFormat::Toml).required(false)),
    };
    let ours = env.into_iter().filter(|(name, _)| {
        let name = name
            .strip_prefix(PREFIX)
            .and_then(|name| name.strip_prefix('_'));
        name.is_none_or(|name| !OF_COMMANDS.contains(&name))
    });
    let environment = Environment::with_prefix(PREFIX)
        .prefix_separator("_")
        .separator("__")
        .source(Some(ours.collect()));
    let environment = Config::builder().add_source(environment);
    let mut given = Given::default();
    let named = flags.config.as_ref().map(|path| path.display().to_string());
    let named = named.unwrap_or_else(|| FILE.to_owned());
    for (source, name, from) in [
        (file, named.as_str(), Source::File),
        (environment, PREFIX, Source::Environment),
    ] {
        let config = source.build();
        given.take(
            config.map_err(|fault| SettingError::new(name, fault.to_string()))?,
            from,
        );
    }
    given.0.retain(|key, (text, _)| !is_unset(key, text));
    let flags = [
        ("listen", &flags.listen),
        ("data_dir", &flags.data_dir),
        ("bus", &flags.bus),
        ("mode", &flags.mode),
        ("auth", &flags.auth),
    ];
    let flags = flags.into_iter();
    let flags = flags.filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)));
    given
        .0
        .extend(flags.map(|(key, value)| (key, (value, Source::Flag))));
    Ok(given)
}

/// Whether a value counts as not set: an empty one, of a service. An empty one of the process is a mistake, so that a
/// variable that turns out empty does not let everybody in.
fn is_unset(key: &str, text: &str) -> bool {
    text.trim().is_empty() && key.contains('.') && !key.starts_with("log.")
}

fn flatten(prefix: &str, value: Value, into: &mut Texts) {
    match value.kind {
        ValueKind::Table(table) => {
            for (key, value) in table {
                let path = match prefix {
                    "" => key,
                    prefix => format!("{prefix}.{key}"),
                };
                flatten(&path.replace('-', "_"), value, into);
            }
        }
        ValueKind::Nil => {}
        other => {
            into.insert(prefix.to_owned(), other.to_string());
        }
    }
}
