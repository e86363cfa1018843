//! The setting that lists agents that are programs.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::engine::delegating::Definition;
use crate::engine::delegating::capability::Capability;

/// Most that are listed.
const MOST: usize = 64;
/// Most arguments, and most variables, of one.
const WORDS: usize = 256;
/// Longest that an answer may take, and a session may be kept, in seconds.
const DAY: u64 = 86_400;
/// Most memory that may be stated, in MiB.
const MEMORY: u64 = 1_048_576;
/// The program of a session where none is named.
const USUAL: &str = "claude";

/// How a program is spoken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Engine {
    /// It is started for each message, which is its last argument, and answers on its standard output.
    Cli,
    /// It stays, and speaks JSON line by line.
    CliStream,
}

/// One of them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CliAgent {
    pub(crate) engine: Engine,
    #[serde(default)]
    command: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    /// Longest that an answer may take.
    #[serde(default = "usual_timeout")]
    pub(crate) timeout_seconds: u64,
    /// What it is started with, of one that stays; empty: nothing.
    #[serde(default)]
    pub(crate) model: String,
    #[serde(default)]
    pub(crate) mcp_config: String,
    #[serde(default)]
    pub(crate) system_prompt: String,
    /// How long one stays that nobody asks.
    #[serde(default = "usual_idle")]
    pub(crate) idle_ttl_seconds: u64,
    /// Names of variables of this process that it has, too.
    #[serde(default)]
    pub(crate) env: Vec<String>,
    #[serde(default)]
    pub(crate) skip_permissions: bool,
    /// Most memory of each of its processes, in MiB; `None`: as much as there is.
    #[serde(default)]
    pub(crate) memory_mb: Option<u64>,
    /// Longest that each of its processes may compute, in seconds; `None`: until it is ended.
    #[serde(default)]
    pub(crate) cpu_seconds: Option<u64>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    capabilities: Vec<Capability>,
    /// Which workspaces may give it work; `None`: all.
    #[serde(default)]
    workspaces: Option<Vec<String>>,
}

fn usual_timeout() -> u64 {
    300
}

fn usual_idle() -> u64 {
    1800
}

impl CliAgent {
    /// The program.
    pub(crate) fn command(&self) -> &str {
        match (self.command.trim(), self.engine) {
            ("", Engine::CliStream) => USUAL,
            (command, _) => command,
        }
    }

    /// Longest that an answer may take.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }

    /// How long one stays that nobody asks.
    pub(crate) fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_ttl_seconds)
    }

    fn is_for(&self, workspace: &str) -> bool {
        let workspaces = self.workspaces.as_ref();
        workspaces.is_none_or(|all| all.iter().any(|one| one == workspace))
    }

    /// The definition that runs see which may give it work: they never wait for it.
    fn definition(&self) -> Definition {
        Definition {
            name: self.name.clone(),
            description: self.description.clone(),
            capabilities: self.capabilities.clone(),
            r#async: true,
            program: true,
            ..Definition::default()
        }
    }

    fn fault(&self) -> Option<&'static str> {
        let own = [&self.command, &self.model, &self.mcp_config];
        let mut texts = self.args.iter().chain(own).chain([&self.system_prompt]);
        let variable = |name: &String| name.is_empty() || name.contains(['=', '\0']);
        let strength = |one: &Capability| one.strength > 0.0 && one.strength <= 1.0;
        if self.command().is_empty() {
            Some("command is required")
        } else if self.args.len() > WORDS || self.env.len() > WORDS {
            Some("args and env must have 256 entries at most")
        } else if self.env.iter().any(variable) {
            Some("env must have names of variables")
        } else if texts.any(|text| text.contains('\0')) {
            Some("a text must not hold a NUL")
        } else if !(1..=DAY).contains(&self.timeout_seconds) {
            Some("timeout_seconds must be from 1 to 86400")
        } else if !(1..=DAY).contains(&self.idle_ttl_seconds) {
            Some("idle_ttl_seconds must be from 1 to 86400")
        } else if self
            .memory_mb
            .is_some_and(|most| !(1..=MEMORY).contains(&most))
        {
            Some("memory_mb must be from 1 to 1048576")
        } else if self
            .cpu_seconds
            .is_some_and(|most| !(1..=DAY).contains(&most))
        {
            Some("cpu_seconds must be from 1 to 86400")
        } else if !self.capabilities.iter().all(strength) {
            Some("strength must be above 0 and up to 1")
        } else {
            None
        }
    }
}

/// The file of a program: itself if it is a path, else the first of its name in these folders that may be run.
fn file_of(command: &str, path: &OsStr) -> Option<String> {
    let runs = |file: &Path| {
        let is_one =
            |known: std::fs::Metadata| known.is_file() && known.permissions().mode() & 0o111 != 0;
        std::fs::metadata(file).is_ok_and(is_one)
    };
    if command.contains('/') {
        return runs(Path::new(command)).then(|| command.to_owned());
    }
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let mut files = folders.map(|folder| folder.join(command));
    let found = files.find(|file| runs(file))?;
    found.into_os_string().into_string().ok()
}

/// All of them by the ids of their agents. Written as a JSON object, in the setting itself or in a file that it names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CliAgents(BTreeMap<String, Arc<CliAgent>>);

/// By their ids: what is shown of settings holds no arguments.
impl Serialize for CliAgents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        serializer.serialize_str(&names.join(", "))
    }
}

impl<'de> Deserialize<'de> for CliAgents {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let text = tg_settings::resolved(String::deserialize(from)?).map_err(D::Error::custom)?;
        let listed: BTreeMap<String, CliAgent> =
            serde_json::from_slice(text.as_bytes()).map_err(|fault| {
                // Of what is written, which may be a secret, only the place is told.
                let (line, column) = (fault.line(), fault.column());
                D::Error::custom(format!(
                    "must be a JSON object of agents by id, each with 'engine' (cli or cli-stream) and 'command', or \
                     file:PATH of one; wrong at line {line}, column {column}"
                ))
            })?;
        if !(1..=MOST).contains(&listed.len()) {
            return Err(D::Error::custom("must list from 1 to 64 agents"));
        }
        for (id, one) in &listed {
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if !(1..=64).contains(&id.len()) || !id.chars().all(plain) {
                let fault = "ids must be of up to 64 letters, digits, dots, dashes and underscores";
                return Err(D::Error::custom(fault));
            }
            if let Some(fault) = one.fault() {
                return Err(D::Error::custom(format!("{id}: {fault}")));
            }
        }
        let listed = listed.into_iter();
        Ok(Self(listed.map(|(id, one)| (id, Arc::new(one))).collect()))
    }
}

impl CliAgents {
    /// One by its id, if a workspace may give it work.
    pub(crate) fn of(&self, id: &str, workspace: &str) -> Option<&Arc<CliAgent>> {
        self.0.get(id).filter(|one| one.is_for(workspace))
    }

    /// The same with the file of each program, found in the folders of `PATH`. A program that nobody has installed yet is
    /// looked for again each time that it is started; until then the log has the id of its agent.
    pub(crate) fn looked_up(self, path: &OsStr) -> Self {
        let listed = self.0.into_iter().map(|(id, one)| {
            let Some(command) = file_of(one.command(), path) else {
                tracing::warn!(agent = id, "the program of an agent was not found");
                return (id, one);
            };
            let found = CliAgent {
                command,
                ..CliAgent::clone(&one)
            };
            (id, Arc::new(found))
        });
        Self(listed.collect())
    }

    /// The definitions of the programs that runs of a workspace may give work to.
    pub(crate) fn definitions(&self, workspace: &str) -> Vec<(String, Definition)> {
        let own = self.0.iter().filter(|(_, one)| one.is_for(workspace));
        own.map(|(id, one)| (id.clone(), one.definition()))
            .collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Reads what a setting says.
    pub(in crate::programs) fn read(listed: &Value) -> Result<CliAgents, String> {
        let text = Value::String(listed.to_string());
        serde_json::from_value(text).map_err(|fault| fault.to_string())
    }

    #[test]
    fn agents_are_listed_by_id_and_show_nothing_of_what_they_are_given() {
        let listed = json!({
            "coder": {"engine": "cli", "command": "coder", "args": ["--key", "s3cret"], "description": "Writes code."},
            "own": {"engine": "cli-stream", "workspaces": ["a"]},
        });
        let agents = read(&listed).unwrap();
        assert_eq!(serde_json::to_value(&agents).unwrap(), "coder, own");
        assert_eq!(agents.of("own", "a").unwrap().command(), "claude");
        assert!(agents.of("own", "b").is_none());
        let seen = agents.definitions("b");
        assert_eq!(seen.len(), 1);
        let (id, one) = &seen[0];
        assert_eq!(
            (id.as_str(), one.description.as_str()),
            ("coder", "Writes code.")
        );
        assert!(one.r#async && one.program, "nobody waits for it");
    }

    /// C.11: the file of a program is found once, at the start; a file that may not be run is none.
    #[test]
    fn programs_are_looked_up_in_the_folders_of_the_path() {
        let dir = tempfile::tempdir().unwrap();
        for (folder, mode) in [("1", 0o600), ("2", 0o700), ("3", 0o700)] {
            let file = dir.path().join(folder).join("coder");
            std::fs::create_dir(dir.path().join(folder)).unwrap();
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        }
        let folders = ["1", "2", "3"].map(|folder| dir.path().join(folder));
        let path = std::env::join_paths(&folders).unwrap();
        let second = folders[1].join("coder").to_str().unwrap().to_owned();
        let agents = read(&json!({
            "coder": {"engine": "cli", "command": "coder"},
            "named": {"engine": "cli", "command": second},
            "later": {"engine": "cli", "command": "nobody-has-this"},
        }));
        let agents = agents.unwrap().looked_up(&path);
        let command = |id| agents.of(id, "w").unwrap().command().to_owned();
        assert_eq!(command("coder"), second);
        assert_eq!(command("named"), second);
        assert_eq!(command("later"), "nobody-has-this");
    }

    #[test]
    fn what_is_wrong_is_named_without_what_was_written() {
        for (listed, why) in [
            (json!([]), "a JSON object of agents"),
            (json!({}), "from 1 to 64"),
            (json!({"a": {"command": "s3cret"}}), "line 1"),
            (json!({"a": {"engine": "s3cret", "command": "c"}}), "line 1"),
            (
                json!({"a": {"engine": "cli", "command": "c", "shell": true}}),
                "line 1",
            ),
            (json!({"a": {"engine": "cli"}}), "a: command is required"),
            (
                json!({"a b": {"engine": "cli", "command": "c"}}),
                "ids must be of up to 64",
            ),
            (
                json!({"a": {"engine": "cli", "command": "c", "timeout_seconds": 0}}),
                "a: timeout_seconds",
            ),
            (
                json!({"a": {"engine": "cli", "command": "c", "env": ["A=B"]}}),
                "a: env must have names",
            ),
            (
                json!({"a": {"engine": "cli", "command": "c", "memory_mb": 0}}),
                "a: memory_mb must be",
            ),
            (
                json!({"a": {"engine": "cli", "command": "c", "cpu_seconds": 90_000}}),
                "a: cpu_seconds must be",
            ),
        ] {
            let told = read(&listed).unwrap_err();
            assert!(told.contains(why) && !told.contains("s3cret"), "{told}");
        }
    }
}
