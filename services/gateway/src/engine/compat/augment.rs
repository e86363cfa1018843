//! The header `SPASS-Augment`: what may be added to a chat on its way.

use serde_json::Value;
use tg_schemas::Error;

use crate::engine::translate::Body;
use crate::engine::translate::fields::fault;

/// Its name.
pub(crate) const HEADER: &str = "spass-augment";
/// What it knows.
const KEYS: [&str; 3] = [TOOLS, "system-prompt", "memory"];
/// The key of the tools.
const TOOLS: &str = "server-tools";

/// What a request asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Augment {
    /// A model may use the tools of the workspace.
    pub(crate) server_tools: bool,
}

impl Augment {
    /// Whether the tools of the workspace are for this chat: it brings none of its own, and does not forbid them.
    pub(crate) fn offers_tools(self, chat: &Body) -> bool {
        let tools = chat.get("tools").and_then(Value::as_array);
        let brings_some = tools.is_some_and(|tools| !tools.is_empty());
        let forbids = chat
            .get("tool_choice")
            .is_some_and(|choice| choice == "none");
        self.server_tools && !brings_some && !forbids
    }
}

/// Reads it: `server-tools=on|off, system-prompt=on|off, memory=on|off`, in any order. Other keys mean nothing. A chat gets
/// tools only if the header asks for them: without it a model answers alone, as clients of its API expect.
///
/// # Errors
/// One of them is neither on nor off.
pub(crate) fn read(text: &str) -> Result<Augment, Error> {
    let mut augment = Augment::default();
    let pairs = text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    for pair in pairs {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if KEYS.contains(&key.trim()) && !["on", "off"].contains(&value.trim()) {
            return Err(fault(HEADER, &format!("{} must be on or off", key.trim())));
        }
        if key.trim() == TOOLS {
            augment.server_tools = value.trim() == "on";
        }
    }
    Ok(augment)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_offered_where_they_are_asked_for_and_the_chat_has_no_other_wish() {
        let offers = |text: &str, chat: Value| {
            let chat = chat.as_object().cloned().unwrap_or_default();
            read(text).unwrap().offers_tools(&chat)
        };
        assert!(offers("memory=off, server-tools=on", json!({"tools": []})));
        for text in ["", "server-tools=off", "memory=on"] {
            assert!(!offers(text, json!({})), "{text}");
        }
        for chat in [
            json!({"tools": [{"name": "add"}]}),
            json!({"tool_choice": "none"}),
        ] {
            assert!(!offers("server-tools=on", chat.clone()), "{chat}");
        }
    }

    #[test]
    fn only_on_and_off_are_said_of_what_is_known() {
        for good in [
            "",
            "server-tools=off",
            "memory=on , system-prompt=off",
            "colour=red",
        ] {
            assert!(read(good).is_ok(), "{good}");
        }
        for (bad, key) in [
            ("server-tools=maybe", "server-tools"),
            ("x=1, memory", "memory"),
        ] {
            let told = read(bad).unwrap_err().message;
            assert_eq!(told, format!("spass-augment: {key} must be on or off"));
        }
    }
}
