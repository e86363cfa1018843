//! Programs that are MCP servers, as the settings list them: whoever may write a workspace's configuration starts none that
//! is not listed here.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tg_provider_http::Secret;
use tg_settings::SettingError;

/// The setting that lists them.
const KEY: &str = "tool.mcp_servers";
/// Most that are listed.
const MOST: usize = 64;
/// Most arguments and most variables of one.
const WORDS: usize = 256;
/// Variables of this process that a program has, too. None of the others: keys of providers are among them.
pub(crate) const INHERITED: &[&str] = &[
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "TZ", "TMPDIR",
];

/// One of them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    pub(crate) command: String,
    #[serde(default)]
    pub(crate) args: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, Named>,
    /// Which workspaces may use it; `None`: all.
    #[serde(default)]
    workspaces: Option<Vec<String>>,
}

/// What a variable of a program holds, which may be named instead of written: `env:NAME` or `file:PATH`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Named(pub(crate) Secret);

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let secret = tg_provider_http::by_reference(from)?;
        Ok(Self(secret.unwrap_or_else(|| String::new().into())))
    }
}

impl Program {
    /// Whether a workspace may use it.
    pub(crate) fn is_for(&self, workspace: &str) -> bool {
        let workspaces = self.workspaces.as_ref();
        workspaces.is_none_or(|all| all.iter().any(|one| one == workspace))
    }

    fn fault(&self) -> Option<&'static str> {
        let variable = |name: &String| name.is_empty() || name.contains(['=', '\0']);
        let texts = self.args.iter().chain([&self.command]);
        let values = self.env.values().map(|value| value.0.expose());
        if self.command.trim().is_empty() {
            Some("command is required")
        } else if self.args.len() > WORDS || self.env.len() > WORDS {
            Some("args and env must have 256 entries at most")
        } else if self.env.keys().any(variable) {
            Some("env must have names of variables")
        } else if texts
            .map(String::as_str)
            .chain(values)
            .any(|text| text.contains('\0'))
        {
            Some("a text must not hold a NUL")
        } else {
            None
        }
    }
}

/// All of them by name. Written as a JSON object, in the setting itself or in a file that it names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Programs(BTreeMap<String, Arc<Program>>);

/// By their names: what is shown of settings holds no arguments and no variables.
impl Serialize for Programs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        serializer.serialize_str(&names.join(", "))
    }
}

impl<'de> Deserialize<'de> for Programs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let text = tg_settings::resolved(String::deserialize(from)?).map_err(D::Error::custom)?;
        let listed: BTreeMap<String, Program> =
            serde_json::from_slice(text.as_bytes()).map_err(|fault| {
                // Of what is written, which may be a secret, only the place is told.
                let (line, column) = (fault.line(), fault.column());
                D::Error::custom(format!(
                    "must be a JSON object of programs by name, each with 'command', 'args', 'env' and 'workspaces', or \
                     file:PATH of one; wrong at line {line}, column {column}"
                ))
            })?;
        match listed.len() {
            1..=MOST => {
                let listed = listed.into_iter();
                Ok(Self(
                    listed.map(|(name, one)| (name, Arc::new(one))).collect(),
                ))
            }
            _ => Err(D::Error::custom("must list from 1 to 64 programs")),
        }
    }
}

impl Programs {
    /// One by its name, if a workspace may use it.
    pub(crate) fn of(&self, name: &str, workspace: &str) -> Option<&Arc<Program>> {
        self.0.get(name).filter(|one| one.is_for(workspace))
    }

    /// All mistakes in them.
    pub(crate) fn faults(&self) -> Vec<SettingError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let fits = |name: &str| (1..=64).contains(&name.len()) && name.chars().all(plain);
        let faults = self.0.iter().filter_map(|(name, one)| match fits(name) {
            true => Some(format!("{name}: {}", one.fault()?)),
            false => Some(
                "names must be of up to 64 letters, digits, dots, dashes and underscores"
                    .to_owned(),
            ),
        });
        faults.map(|fault| SettingError::new(KEY, fault)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(listed: serde_json::Value) -> Result<Programs, String> {
        let text = serde_json::Value::String(listed.to_string());
        serde_json::from_value(text).map_err(|fault| fault.to_string())
    }

    #[test]
    fn programs_are_listed_by_name_and_show_nothing_of_what_they_are_given() {
        let listed = json!({
            "files": {"command": "files", "args": ["--key", "s3cret"], "env": {"KEY": "s3cret", "NAME": "env:CARGO_PKG_NAME"}},
            "own": {"command": "own", "workspaces": ["a"]},
        });
        let programs = read(listed).unwrap();
        assert_eq!(programs.faults(), []);
        assert_eq!(serde_json::to_value(&programs).unwrap(), "files, own");
        let files = programs.of("files", "b").unwrap();
        assert_eq!(files.env["NAME"].0.expose(), "tg-tool");
        assert!(!format!("{:?}", files.env).contains("s3cret"));
        assert!(programs.of("own", "a").is_some());
        assert!(programs.of("own", "b").is_none() && programs.of("none", "a").is_none());
    }

    #[test]
    fn what_is_wrong_is_named_without_what_was_written() {
        for (listed, why) in [
            (json!([]), "a JSON object of programs"),
            (json!({}), "from 1 to 64"),
            (json!({"a": {"command": "s3cret", "shell": true}}), "line 1"),
            (
                json!({"a": {"command": "c", "env": {"K": "env:NO_SUCH_VARIABLE"}}}),
                "line 1",
            ),
        ] {
            let told = read(listed).unwrap_err();
            assert!(told.contains(why) && !told.contains("s3cret"), "{told}");
        }
        for (name, one, why) in [
            ("a", json!({"command": " "}), "a: command is required"),
            ("a b", json!({"command": "c"}), "names must be of up to 64"),
            (
                "a",
                json!({"command": "c", "env": {"A=B": "x"}}),
                "a: env must have names",
            ),
            (
                "a",
                json!({"command": "c", "args": ["\0"]}),
                "a: a text must not",
            ),
        ] {
            let faults = read(json!({name: one})).unwrap().faults();
            let told = faults[0].to_string();
            assert!(told.contains(why), "{told}");
        }
    }
}
