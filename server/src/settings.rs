//! Settings: defaults, `threadgraph.toml`, environment `THREADGRAPH_…` (`__` for nesting), flags; later
//! ones win. All mistakes are reported at once, each with its key.

pub mod keys;

use self::keys::KEYS;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tg_embeddings::EmbeddingSettings;
use tg_llm::ProviderSettings;

use config::{Config, Environment, File, FileFormat, Value, ValueKind};

/// Where messages travel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BusChoice {
    /// In this process, records on disk.
    Embedded,
    /// Over a broker.
    Amqp(AmqpUrl),
}

/// A broker URL; shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct AmqpUrl(String);

impl AmqpUrl {
    /// The URL with its credentials, for the adapter only.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for AmqpUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AmqpUrl(***)")
    }
}

/// Who may do what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// Everybody everything, on a loopback listener only.
    None,
    /// API keys and roles.
    Iam,
}

/// How the mesh speaks on a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeshMode {
    /// Our own names; shares nothing with foreign processors.
    Native,
    /// The reference's names and JSON.
    Interop,
}

/// How hard a commit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurabilityChoice {
    /// Survives a crash of the process.
    Process,
    /// Survives a loss of power.
    Power,
}

/// Form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// All settings of a process.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Address of the gateway.
    pub listen: SocketAddr,
    /// Where stores live.
    pub data_dir: PathBuf,
    /// Where messages travel.
    pub bus: BusChoice,
    /// Native or interop.
    pub mode: MeshMode,
    /// Who may do what.
    pub auth: Auth,
    /// How hard a commit is.
    pub durability: DurabilityChoice,
    /// Log filter, e.g. `info` or `info,tg_mesh=debug`.
    pub log_filter: String,
    /// Form of log lines.
    pub log_format: LogFormat,
    /// How long a stop waits for work in progress.
    pub drain: Duration,
    /// Stores that serve although another of their name served before.
    pub adopt_stores: Vec<String>,
    /// Iterations after which an agent run ends.
    pub max_iterations: usize,
    /// Chunks in progress per flow and extractor: the most model calls at once for each.
    pub extract_parallel: usize,
    /// How retrieval answers, and who reranks.
    pub rag: tg_rag::Settings,
    /// Who makes vectors of texts.
    pub embeddings: EmbeddingSettings,
    /// Bytes of vectors that are searched in memory.
    pub vectors_memory: usize,
    /// How much graphs and queries over them may take.
    pub graph: tg_graph::Limits,
    /// Rows that one workspace may keep.
    pub workspace_rows: u64,
    /// How long a deleted workspace can be restored before its data is purged.
    pub restore_within: std::time::Duration,
    /// Room for the put-aside records of each workspace; a flow may have half of it.
    pub put_aside: tg_flow::Quota,
    /// Room for the documents of each workspace.
    pub library: tg_librarian::Quota,
    /// The model provider, from the provider's own variables (`OPENAI_API_KEY` …).
    pub provider: ProviderSettings,
}

/// What flags say; absent ones fall through.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--listen`.
    pub listen: Option<String>,
    /// `--data-dir`.
    pub data_dir: Option<String>,
    /// `--bus`.
    pub bus: Option<String>,
    /// `--mode`.
    pub mode: Option<String>,
    /// `--auth`.
    pub auth: Option<String>,
    /// `--adopt-store`, as often as it is given.
    pub adopt_stores: Vec<String>,
}

/// One mistake: the key and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Key as in the file, e.g. `log.format`.
    pub key: String,
    /// What is wrong and what would be right.
    pub text: String,
}

const ENV_PREFIX: &str = "THREADGRAPH";
/// What the keys of retrieval begin with; the rest of their names is the service's (`tg_rag::KEYS`).
const RAG: &str = "rag.";

impl Settings {
    /// Reads all sources. `env` stands for the process environment.
    pub fn load(flags: &Flags, env: BTreeMap<String, String>) -> Result<Self, Vec<Mistake>> {
        let provider = ProviderSettings::from_lookup(|name| env.get(name).cloned());
        let environment = env.clone();
        let values = collect(flags, env).map_err(|mistake| vec![mistake])?;
        let mut mistakes = unknown_keys(&values);
        let provider = provider.unwrap_or_else(|faults| {
            mistakes.extend(faults.into_iter().map(|f| Mistake {
                key: f.key.to_owned(),
                text: f.message,
            }));
            ProviderSettings::Builtin
        });
        let mut reader = Reader {
            values,
            mistakes: &mut mistakes,
        };
        let auth = reader.one_of("auth", &[("none", Auth::None), ("iam", Auth::Iam)]);
        let modes = [("native", MeshMode::Native), ("interop", MeshMode::Interop)];
        let durabilities = [
            ("process", DurabilityChoice::Process),
            ("power", DurabilityChoice::Power),
        ];
        let listen = reader.listen(auth);
        let data_dir = reader.data_dir();
        let settings = Self {
            listen,
            data_dir,
            bus: reader.bus(),
            mode: reader.one_of("mode", &modes),
            auth,
            durability: reader.one_of("durability", &durabilities),
            log_filter: reader.text("log.filter"),
            log_format: reader.one_of(
                "log.format",
                &[("text", LogFormat::Text), ("json", LogFormat::Json)],
            ),
            drain: Duration::from_secs(reader.number("drain_seconds", 1, 600)),
            adopt_stores: flags.adopt_stores.clone(),
            max_iterations: reader.number("agent.max_iterations", 1, 100) as usize,
            extract_parallel: reader.number("extract.parallel", 1, 1024) as usize,
            rag: reader.rag(),
            vectors_memory: (reader.number("vectors.memory_mb", 16, 1 << 20) as usize) << 20,
            graph: reader.graph(),
            workspace_rows: reader.number("rows.workspace_rows", 1, 1 << 40),
            restore_within: std::time::Duration::from_secs(
                reader.number("config.restore_hours", 0, 24 * 366) * 3600,
            ),
            put_aside: tg_flow::Quota {
                records: reader.number("flow.put_aside_records", 2, 1 << 30),
                bytes: reader.number("flow.put_aside_mb", 1, 1 << 20) << 20,
            },
            library: tg_librarian::Quota {
                documents: reader.number("library.documents", 1, 1 << 40),
                bytes: reader.number("library.content_mb", 1, 1 << 30) << 20,
            },
            embeddings: EmbeddingSettings::default(),
            provider,
        };
        let settings = Self {
            embeddings: reader.embeddings(&environment, &settings.data_dir),
            ..settings
        };
        if settings.mode == MeshMode::Interop && settings.bus == BusChoice::Embedded {
            mistakes.push(Mistake {
                key: "mode".into(),
                text: "interop needs a broker: set bus to amqp://user:password@host:port/vhost"
                    .into(),
            });
        }
        if mistakes.is_empty() {
            Ok(settings)
        } else {
            Err(mistakes)
        }
    }
}

fn collect(
    flags: &Flags,
    env: BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Mistake> {
    let unreadable = |key: &str, text: String| Mistake {
        key: key.to_owned(),
        text,
    };
    let mut builder = Config::builder();
    match &flags.config {
        Some(path) if !path.exists() => {
            return Err(unreadable(
                "--config",
                format!("{} does not exist", path.display()),
            ));
        }
        Some(path) => builder = builder.add_source(File::from(path.as_path())),
        None => {
            let default = File::new("threadgraph.toml", FileFormat::Toml).required(false);
            builder = builder.add_source(default);
        }
    }
    let environment = Environment::with_prefix(ENV_PREFIX)
        .prefix_separator("_")
        .separator("__")
        .source(Some(env.into_iter().collect()));
    builder = builder.add_source(environment);
    let config = builder
        .build()
        .map_err(|fault| unreadable("threadgraph.toml", fault.to_string()))?;
    let mut values: BTreeMap<String, String> = KEYS
        .iter()
        .map(|key| (key.name.to_owned(), key.default.to_owned()))
        .collect();
    flatten("", config.cache, &mut values);
    let given = [
        ("listen", &flags.listen),
        ("data_dir", &flags.data_dir),
        ("bus", &flags.bus),
        ("mode", &flags.mode),
        ("auth", &flags.auth),
    ];
    for (key, value) in given {
        if let Some(value) = value {
            values.insert(key.to_owned(), value.clone());
        }
    }
    Ok(values)
}

fn flatten(prefix: &str, value: Value, into: &mut BTreeMap<String, String>) {
    match value.kind {
        ValueKind::Table(table) => {
            for (key, value) in table {
                let path = if prefix.is_empty() {
                    key
                } else {
                    format!("{prefix}.{key}")
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

fn unknown_keys(values: &BTreeMap<String, String>) -> Vec<Mistake> {
    values
        .keys()
        .filter(|key| !KEYS.iter().any(|known| known.name == key.as_str()))
        .filter(|key| {
            let own = key.strip_prefix(RAG);
            !own.is_some_and(|own| tg_rag::KEYS.contains(&own))
        })
        .map(|key| Mistake {
            key: key.clone(),
            text: format!(
                "is not a setting; known ones: {}",
                KEYS.iter()
                    .map(|known| known.name)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        })
        .collect()
}

struct Reader<'a> {
    values: BTreeMap<String, String>,
    mistakes: &'a mut Vec<Mistake>,
}

impl Reader<'_> {
    fn text(&self, key: &str) -> String {
        self.values.get(key).cloned().unwrap_or_default()
    }

    fn wrong(&mut self, key: &str, text: impl Into<String>) {
        self.mistakes.push(Mistake {
            key: key.to_owned(),
            text: text.into(),
        });
    }

    fn one_of<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> T {
        let given = self.text(key);
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == given) {
            return *value;
        }
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        self.wrong(key, format!("must be one of {}", names.join(", ")));
        choices[0].1
    }

    fn number(&mut self, key: &str, least: u64, most: u64) -> u64 {
        match self.text(key).parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => number,
            _ => {
                self.wrong(
                    key,
                    format!("must be a whole number from {least} to {most}"),
                );
                least
            }
        }
    }

    /// Memory for graphs is three quarters of the machine's unless it is given.
    fn graph(&mut self) -> tg_graph::Limits {
        let memory = self.number("graph.memory_mb", 0, 1 << 30) << 20;
        tg_graph::Limits {
            memory: match memory {
                0 => machine_memory().map_or(u64::MAX, |all| all / 4 * 3),
                given => given,
            },
            query_memory: (self.number("graph.query_memory_mb", 8, 1 << 20) as usize) << 20,
            queries_memory: (self.number("graph.queries_memory_mb", 16, 1 << 20) as usize) << 20,
            quota: tg_graph::Quota {
                quads: self.number("graph.workspace_quads", 1, 1 << 40),
                bytes: self.number("graph.workspace_mb", 1, 1 << 30) << 20,
            },
            ..tg_graph::Limits::default()
        }
    }

    fn rag(&mut self) -> tg_rag::Settings {
        let given = |key: &str| self.values.get(&format!("{RAG}{key}")).cloned();
        tg_rag::Settings::from_lookup(given).unwrap_or_else(|faults| {
            for fault in faults {
                self.wrong(&format!("{RAG}{}", fault.key), fault.message);
            }
            tg_rag::Settings::default()
        })
    }

    fn embeddings(
        &mut self,
        environment: &BTreeMap<String, String>,
        data_dir: &Path,
    ) -> EmbeddingSettings {
        let given = |key: &str| {
            self.values
                .get(key)
                .or_else(|| environment.get(key))
                .cloned()
        };
        EmbeddingSettings::from_lookup(given, data_dir).unwrap_or_else(|faults| {
            for fault in faults {
                self.wrong(fault.key, fault.message);
            }
            EmbeddingSettings::default()
        })
    }

    fn listen(&mut self, auth: Auth) -> SocketAddr {
        let given = self.text("listen");
        let Ok(address) = given.parse::<SocketAddr>() else {
            self.wrong("listen", "must be an address and port, e.g. 127.0.0.1:8888");
            return SocketAddr::from(([127, 0, 0, 1], 8888));
        };
        if auth == Auth::None && !address.ip().is_loopback() {
            self.wrong(
                "listen",
                "other machines could reach this address and auth is none: set auth to iam \
                 (--auth iam), or listen on 127.0.0.1",
            );
        }
        address
    }

    fn data_dir(&mut self) -> PathBuf {
        let given = self.text("data_dir");
        if !given.is_empty() {
            return PathBuf::from(given);
        }
        let home = std::env::var_os("HOME")
            .map(PathBuf::from)
            .unwrap_or_default();
        std::env::var_os("XDG_DATA_HOME")
            .map_or_else(|| home.join(".local/share"), PathBuf::from)
            .join("threadgraph")
    }

    fn bus(&mut self) -> BusChoice {
        let given = self.text("bus");
        if given == "embedded" {
            return BusChoice::Embedded;
        }
        if given.starts_with("amqp://") || given.starts_with("amqps://") {
            return BusChoice::Amqp(AmqpUrl(given));
        }
        self.wrong(
            "bus",
            "must be embedded or amqp://user:password@host:port/vhost",
        );
        BusChoice::Embedded
    }
}

/// Bytes of memory of this machine, or of the container the process is in.
fn machine_memory() -> Option<u64> {
    let all = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = all
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let machine = line
        .trim()
        .strip_suffix(" kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        << 10;
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse::<u64>().ok());
    Some(container.map_or(machine, |most| most.min(machine)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn flags_win_over_environment_over_defaults() {
        let flags = Flags {
            listen: Some("127.0.0.1:9999".into()),
            ..Flags::default()
        };
        let vars = env(&[
            ("THREADGRAPH_LISTEN", "127.0.0.1:1"),
            ("THREADGRAPH_LOG__FORMAT", "json"),
            ("THREADGRAPH_AGENT__MAX_ITERATIONS", "4"),
            ("THREADGRAPH_RAG__DOC_LIMIT", "7"),
            ("THREADGRAPH_EMBEDDINGS__PROVIDER", "ollama"),
            ("OLLAMA_HOST", "h"),
        ]);
        let settings = Settings::load(&flags, vars).unwrap();
        assert_eq!(settings.listen.port(), 9999);
        assert_eq!(settings.log_format, LogFormat::Json);
        assert_eq!(settings.max_iterations, 4);
        assert_eq!(settings.rag.documents.documents, 7);
        assert_eq!(settings.bus, BusChoice::Embedded);
        assert_eq!(settings.embeddings.describe(), "mxbai-embed-large (Ollama)");
    }

    #[test]
    fn the_settings_of_embeddings_are_listed() {
        for (name, default) in tg_embeddings::KEYS {
            assert_eq!(keys::default_of(name), Some(default), "{name}");
        }
        let settings = Settings::load(&Flags::default(), BTreeMap::new()).unwrap();
        assert_eq!(settings.embeddings, EmbeddingSettings::default());
    }

    #[test]
    fn all_mistakes_are_reported_with_their_keys() {
        let vars = env(&[
            ("THREADGRAPH_LISTEN", "0.0.0.0:8888"),
            ("THREADGRAPH_BUS", "kafka"),
            ("THREADGRAPH_LOG__FORMAT", "xml"),
            ("THREADGRAPH_TYPO", "1"),
            ("THREADGRAPH_RAG__RETRIEVAL_MODE", "odd"),
            ("THREADGRAPH_EMBEDDINGS__PROVIDER", "magic"),
        ]);
        let mistakes = Settings::load(&Flags::default(), vars).unwrap_err();
        let keys: Vec<_> = mistakes
            .iter()
            .map(|mistake| mistake.key.as_str())
            .collect();
        assert_eq!(
            keys,
            [
                "typo",
                "listen",
                "bus",
                "log.format",
                "rag.retrieval_mode",
                "embeddings.provider"
            ]
        );
        assert!(mistakes[1].text.contains("--auth iam"));
    }

    #[test]
    fn the_brokers_password_is_never_shown() {
        let flags = Flags {
            bus: Some("amqp://u:secret@h:1/".into()),
            ..Flags::default()
        };
        let settings = Settings::load(&flags, BTreeMap::new()).unwrap();
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
