//! What a first start prints: where to go, the key if there is one, and how to plug a real model in.

use std::path::PathBuf;

use tg_provider_http::{Origin, ollama_address, without_credentials};

use crate::settings::Auth;

/// The one-time code for the first key, while it is not used.
pub enum FirstKey {
    /// There is none, or none is needed.
    None,
    /// As it is, for who sits at a terminal.
    Code(String),
    /// The file that has it, where others may read what is printed.
    File(PathBuf),
}

impl FirstKey {
    /// What a process says that has the code and no gateway.
    pub fn line(&self) -> Option<String> {
        let how = self.command()?;
        Some(format!("The first key: {how}"))
    }

    /// How whoever has the code gets the key.
    fn command(&self) -> Option<String> {
        const COMMAND: &str = "tg bootstrap-iam -u URL --code";
        match self {
            Self::None => None,
            Self::Code(code) => Some(format!("{COMMAND} {code}")),
            Self::File(file) => Some(format!(
                "{COMMAND} CODE   (the code is in {})",
                file.display()
            )),
        }
    }
}

/// Who answers, and who makes vectors.
pub struct Models {
    /// The language model in words.
    pub model: String,
    /// Where it is, and which setting or variable says so; `None`: it is the builtin reader.
    pub at: Option<Origin>,
    /// The embeddings in words.
    pub vectors: String,
    /// An Ollama that answers although nobody chose it; looked for only where the builtin reader serves.
    pub local: Option<Local>,
}

/// An Ollama that could be chosen.
pub struct Local {
    /// Where it answers.
    pub address: String,
    /// Its models.
    pub models: Vec<String>,
}

/// The lines shown when the system is ready.
pub fn lines(url: &str, auth: Auth, models: &Models, first: bool, key: &FirstKey) -> Vec<String> {
    let mut lines = vec![format!("Threadgraph is ready at {url}")];
    if first {
        lines.push(format!("  add:      tg add -u {url} --wait FILE…"));
        lines.push(format!("  ask:      tg ask -u {url} \"What is 6 * 7?\""));
        lines.push(format!("  look:     tg doctor -u {url}   ·   tg --help"));
        lines.push(page(url, tg_gateway::has_page()));
    }
    let waits = !matches!(key, FirstKey::None);
    if auth == Auth::Iam && (first || waits) {
        lines.push(format!(
            "  first key: tg bootstrap-iam -u {url}   (works once, on this machine)"
        ));
    }
    let elsewhere = |how: String| format!("             from elsewhere: {how}");
    lines.extend(key.command().map(elsewhere));
    lines.extend(models.lines());
    lines
}

/// Where the page is. A build without it does not send anybody there.
fn page(url: &str, built: bool) -> String {
    match built {
        true => format!("  browse:   {url}"),
        false => {
            "  browse:   this build does not contain the page; run `make console`, then build again"
                .to_owned()
        }
    }
}

impl Models {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("  model:    {}", self.model)];
        if let Some(at) = &self.at {
            lines.push(format!("            {}; {}", at.address(), at.told()));
        } else {
            lines.extend(self.local.as_ref().map(Local::offer));
            lines.push(
                "            plug in a real one: OPENAI_API_KEY=… (or OPENAI_BASE_URL, ANTHROPIC_API_KEY, \
                 OLLAMA_HOST) threadgraph up"
                    .to_owned(),
            );
            lines.push(
                "            and which: OPENAI_MODEL, ANTHROPIC_MODEL, OLLAMA_MODEL; or llm.provider, llm.url, \
                 llm.model, llm.key in threadgraph.toml"
                    .to_owned(),
            );
        }
        lines.push(format!("  vectors:  {}", self.vectors));
        lines
    }
}

impl Local {
    /// What to set so that it serves.
    fn offer(&self) -> String {
        let address = without_credentials(&self.address);
        let usual = address == ollama_address("");
        let (place, host) = match usual {
            true => ("on this machine".to_owned(), "127.0.0.1"),
            false => (format!("at {address}"), address.as_str()),
        };
        let Some(first) = self.models.first() else {
            return format!(
                "            an Ollama answers {place}, but has no model: `ollama pull` fetches one"
            );
        };
        let more = match self.models.len() {
            1 => String::new(),
            all => format!("   ({all} models)"),
        };
        format!(
            "            an Ollama answers {place}: OLLAMA_HOST={host} OLLAMA_MODEL={first} threadgraph up{more}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builtin(local: Option<&[&str]>) -> Models {
        let own = |models: &[&str]| Local {
            address: "http://127.0.0.1:11434".to_owned(),
            models: models.iter().map(|&model| model.to_owned()).collect(),
        };
        Models {
            model: "builtin".to_owned(),
            at: None,
            vectors: "lexical".to_owned(),
            local: local.map(own),
        }
    }

    #[test]
    fn an_ollama_of_this_machine_is_offered_where_nobody_else_serves() {
        let told = |local| builtin(local).lines().join("\n");
        let offered = told(Some(&["llama3.2:latest", "qwen3:8b"]));
        let line = "an Ollama answers on this machine: OLLAMA_HOST=127.0.0.1 OLLAMA_MODEL=llama3.2:latest \
                    threadgraph up   (2 models)";
        assert!(offered.contains(line), "{offered}");
        assert!(offered.contains("OPENAI_API_KEY=…") && offered.contains("llm.url"));
        assert!(told(Some(&[])).contains("`ollama pull`"));
        assert!(!told(None).contains("an Ollama answers"));
        let elsewhere = Local {
            address: "http://u:hidden@gpu:1".to_owned(),
            models: vec!["m".to_owned()],
        };
        assert_eq!(
            elsewhere.offer().trim(),
            "an Ollama answers at http://gpu:1: OLLAMA_HOST=http://gpu:1 OLLAMA_MODEL=m threadgraph up"
        );
    }

    #[test]
    fn a_server_is_told_with_its_address_and_who_set_it() {
        let models = Models {
            model: "m (OpenAI-compatible)".to_owned(),
            at: Some(Origin::new(
                "http://u:hidden@h:1/v1",
                "OPENAI_BASE_URL",
                "m",
            )),
            ..builtin(Some(&["q"]))
        };
        assert_eq!(
            models.lines(),
            [
                "  model:    m (OpenAI-compatible)",
                "            http://h:1/v1; set by OPENAI_BASE_URL; model m",
                "  vectors:  lexical",
            ]
        );
    }

    #[test]
    fn a_first_start_says_what_to_do_next_and_no_other_does() {
        let url = "http://127.0.0.1:8088/";
        let said = |first, auth| lines(url, auth, &builtin(None), first, &FirstKey::None);
        let next = [
            "  add:      tg add -u http://127.0.0.1:8088/ --wait FILE…",
            "  ask:      tg ask -u http://127.0.0.1:8088/ \"What is 6 * 7?\"",
            "  look:     tg doctor -u http://127.0.0.1:8088/   ·   tg --help",
        ];
        for auth in [Auth::None, Auth::Iam] {
            let first = said(true, auth);
            assert_eq!(first[0], "Threadgraph is ready at http://127.0.0.1:8088/");
            assert_eq!(first[1..4], next);
            let later = said(false, auth);
            assert!(!later.iter().any(|line| next.contains(&line.as_str())));
        }
    }

    #[test]
    fn nobody_is_sent_to_a_page_that_was_not_built() {
        let url = "http://127.0.0.1:8088/";
        assert_eq!(page(url, true), "  browse:   http://127.0.0.1:8088/");
        let none = page(url, false);
        assert!(
            none.contains("does not contain the page") && none.contains("make console"),
            "{none}"
        );
        let first = lines(url, Auth::None, &builtin(None), true, &FirstKey::None);
        assert_eq!(first[4], page(url, tg_gateway::has_page()));
    }

    #[test]
    fn commands_are_written_as_they_can_be_typed_before_links_are_made() {
        let key = FirstKey::Code("s3cret".to_owned());
        let told = lines(
            "http://127.0.0.1:8088/",
            Auth::Iam,
            &builtin(None),
            true,
            &key,
        );
        let told = told.join("\n");
        assert!(
            told.contains("tg bootstrap-iam") && !told.contains("tg-"),
            "{told}"
        );
    }

    #[test]
    fn the_code_is_shown_until_it_is_used_and_only_at_a_terminal() {
        let text = |auth, first, key| {
            lines("http://127.0.0.1:8088/", auth, &builtin(None), first, &key).join("\n")
        };
        let code = || FirstKey::Code("s3cret".to_owned());
        let file = || FirstKey::File("/data/bootstrap-code".into());
        for first in [true, false] {
            assert!(text(Auth::Iam, first, code()).contains("--code s3cret"));
            let elsewhere = text(Auth::Iam, first, file());
            assert!(elsewhere.contains("/data/bootstrap-code"), "{elsewhere}");
            assert!(elsewhere.contains("first key: "));
        }
        assert!(!text(Auth::Iam, false, FirstKey::None).contains("first key"));
        assert!(!text(Auth::None, true, FirstKey::None).contains("first key"));
    }
}
