//! What the name of a session says: what its client can be asked, by the client's own word. Whichever gateway reads the name
//! knows it, so nothing is kept for it. Whoever changes the name changes what is asked of themselves alone.

use serde_json::Value;

/// Length of what stands before that: a random number.
const RANDOM: usize = 32;

/// What a client can be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Declared {
    /// To have its user fill in a form.
    pub(crate) elicitation: bool,
    /// To have its model write something.
    pub(crate) sampling: bool,
    /// Which folders it works on.
    pub(crate) roots: bool,
}

impl Declared {
    /// By the capabilities that it lists.
    pub(crate) fn of(capabilities: &Value) -> Self {
        let has = |name: &str| capabilities.get(name).filter(|one| one.is_object());
        // Without a word on modes, it is forms.
        let form = |modes: &Value| modes.get("form").is_some() || modes.get("url").is_none();
        Self {
            elicitation: has("elicitation").is_some_and(form),
            sampling: has("sampling").is_some(),
            roots: has("roots").is_some(),
        }
    }

    /// By the name of its session.
    pub(crate) fn of_session(name: &str) -> Self {
        let Some((random, letters)) = name.split_once('-') else {
            return Self::default();
        };
        if random.len() != RANDOM {
            return Self::default();
        }
        Self {
            elicitation: letters.contains('e'),
            sampling: letters.contains('s'),
            roots: letters.contains('r'),
        }
    }

    /// The name of a session.
    pub(crate) fn session(self, random: &str) -> String {
        let all = [
            (self.elicitation, 'e'),
            (self.sampling, 's'),
            (self.roots, 'r'),
        ];
        let letters: String = all
            .iter()
            .filter(|(has, _)| *has)
            .map(|(_, letter)| *letter)
            .collect();
        match letters.is_empty() {
            true => random.to_owned(),
            false => format!("{random}-{letters}"),
        }
    }

    /// Whether a request may be sent to it.
    pub(crate) fn takes(self, method: &str) -> bool {
        match method {
            "elicitation/create" => self.elicitation,
            "sampling/createMessage" => self.sampling,
            "roots/list" => self.roots,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_says_what_was_declared() {
        let random = "0123456789abcdef0123456789abcdef";
        for (capabilities, name) in [
            (json!({}), random.to_owned()),
            (json!(null), random.to_owned()),
            (json!({"elicitation": true}), random.to_owned()),
            (json!({"elicitation": {"url": {}}}), random.to_owned()),
            (json!({"elicitation": {}}), format!("{random}-e")),
            (
                json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}),
                format!("{random}-esr"),
            ),
        ] {
            let declared = Declared::of(&capabilities);
            assert_eq!(declared.session(random), name);
            assert_eq!(Declared::of_session(&name), declared);
        }
        for other in ["", "other", "a-esr", random] {
            assert_eq!(Declared::of_session(other), Declared::default());
        }
    }

    #[test]
    fn a_request_goes_to_whoever_declared_it() {
        let declared = Declared::of(&json!({"sampling": {}}));
        assert!(declared.takes("sampling/createMessage"));
        for other in ["elicitation/create", "roots/list", "ping"] {
            assert!(!declared.takes(other), "{other}");
        }
    }
}
