//! Who has a model, and by which name it is asked for there.

use std::time::Duration;

/// Which models a backend has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Serves {
    /// Any.
    Everything,
    /// Those of a list, in any case.
    Listed(Vec<String>),
    /// Those whose names begin so.
    Starting(&'static str),
    /// Those whose names contain one of these.
    Containing(&'static [&'static str]),
}

impl Serves {
    /// Whether it has a model.
    pub fn has(&self, model: &str) -> bool {
        let low = model.to_lowercase();
        match self {
            Self::Everything => true,
            Self::Listed(all) => all.iter().any(|one| one.to_lowercase() == low),
            Self::Starting(start) => low.starts_with(start),
            Self::Containing(words) => words.iter().any(|word| low.contains(word)),
        }
    }
}

/// A server that may answer, as the settings describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Its name, which no other has.
    pub name: String,
    /// Who offers it.
    pub provider: String,
    /// Which models it has.
    pub serves: Serves,
    /// What it calls all of them; `None`: as they are asked for.
    pub model: Option<String>,
    /// Lower is preferred.
    pub priority: u32,
    /// Tokens that it is sent a minute.
    pub tokens_per_minute: u64,
    /// Most questions that it answers at once.
    pub most: usize,
    /// How long it may take until it begins to answer.
    pub timeout: Duration,
}

/// A backend that has a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its place in the settings.
    pub at: usize,
    /// What it calls the model.
    pub model: String,
}

/// Who has a model. `provider/model` or `backend/model` means those of that provider or backend, where there is such a one.
pub fn servers(backends: &[Backend], asked: &str) -> Vec<Server> {
    let of = |is_meant: &dyn Fn(&Backend) -> bool, model: &str| -> Vec<Server> {
        let all = backends.iter().enumerate();
        let meant = all.filter(|(_, one)| is_meant(one) && one.serves.has(model));
        let server = |(at, one): (usize, &Backend)| Server {
            at,
            model: one.model.clone().unwrap_or_else(|| model.to_owned()),
        };
        meant.map(server).collect()
    };
    if let Some((of_whom, model)) = asked.split_once('/').filter(|(_, model)| !model.is_empty()) {
        let named = of(&|one| one.name == of_whom, model);
        let named = match named.is_empty() {
            true => of(&|one| one.provider == of_whom, model),
            false => named,
        };
        let is_known = |one: &Backend| one.name == of_whom || one.provider == of_whom;
        // Who names one means no other, also where it does not have the model.
        if backends.iter().any(is_known) {
            return named;
        }
    }
    of(&|_| true, asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(name: &str, provider: &str, serves: Serves) -> Backend {
        Backend {
            name: name.to_owned(),
            provider: provider.to_owned(),
            serves,
            model: None,
            priority: 1,
            tokens_per_minute: 1,
            most: 1,
            timeout: Duration::from_secs(1),
        }
    }

    #[test]
    fn a_model_is_looked_for_by_provider_first_then_by_what_each_has() {
        let mut all = vec![
            backend("x", "xai", Serves::Starting("grok")),
            backend("o", "openai", Serves::Containing(&["gpt", "o1", "o3"])),
            backend("l", "ollama", Serves::Listed(vec!["Llama3".to_owned()])),
            backend("any", "openrouter", Serves::Everything),
        ];
        let found = |all: &[Backend], asked: &str| -> Vec<(usize, String)> {
            let found = servers(all, asked);
            found.into_iter().map(|one| (one.at, one.model)).collect()
        };
        let pair = |at, model: &str| (at, model.to_owned());
        assert_eq!(
            found(&all, "Grok-4"),
            [pair(0, "Grok-4"), pair(3, "Grok-4")]
        );
        assert_eq!(found(&all, "openai/gpt-5"), [pair(1, "gpt-5")]);
        assert_eq!(found(&all, "any/gpt-5"), [pair(3, "gpt-5")]);
        // What one is meant to have no other is asked for.
        assert_eq!(found(&all, "ollama/gpt-x"), []);
        assert_eq!(found(&all, "x/gpt-x"), []);
        // No backend of that provider: a name with a slash.
        assert_eq!(found(&all, "meta/llama3"), [pair(3, "meta/llama3")]);
        assert_eq!(found(&all, "llama3")[0], pair(2, "llama3"));
        all.pop();
        assert_eq!(found(&all, "mistral"), []);
        all[2].model = Some("llama3:8b".to_owned());
        assert_eq!(found(&all, "llama3"), [pair(2, "llama3:8b")]);
    }
}
