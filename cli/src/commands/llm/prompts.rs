//! `tg set-prompt` and `tg show-prompts`.

use clap::{ArgGroup, Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::super::config::put_item;
use crate::args::{Common, Options};
use crate::client::{Error, Result};
use crate::fields::{list, text};
use crate::layout::{Width, record};
use crate::registry::Command;
use crate::session::Session;

/// The form a prompt answers in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Response {
    Text,
    Json,
    Jsonl,
}

/// Arguments of `tg set-prompt`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["id", "system"])))]
pub struct SetPrompt {
    #[command(flatten)]
    common: Common,
    /// Id of the prompt
    #[arg(long, requires = "prompt")]
    id: Option<String>,
    /// The template
    #[arg(long, value_name = "TEMPLATE", requires = "id")]
    prompt: Option<String>,
    /// The form of the answer
    #[arg(long, value_enum, default_value_t = Response::Text)]
    response: Response,
    /// JSON schema of a JSON answer
    #[arg(long, value_name = "JSON", requires = "id")]
    schema: Option<String>,
    /// Set the system prompt, not a template
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
}

impl Command for SetPrompt {
    const NAME: &'static str = "set-prompt";
    const ABOUT: &'static str = "Store a prompt, or the system prompt";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        if let Some(system) = &self.system {
            put_item(&http, "prompt", "system", &json!(system).to_string()).await?;
            return session.out.show(&json!({"system": system}), || {
                "System prompt set.".to_owned()
            });
        }
        let (Some(id), Some(prompt)) = (&self.id, &self.prompt) else {
            return Err(Error::Usage("--id and --prompt go together".to_owned()));
        };
        let template = self.template(id, prompt)?;
        let key = format!("template.{id}");
        put_item(&http, "prompt", &key, &template.to_string()).await?;
        session.out.show(&template, || "Prompt set.".to_owned())
    }
}

impl SetPrompt {
    fn template(&self, id: &str, prompt: &str) -> Result<Value> {
        let response = match self.response {
            Response::Text => "text",
            Response::Json => "json",
            Response::Jsonl => "jsonl",
        };
        let mut template = json!({"id": id, "prompt": prompt, "response-type": response});
        if let Some(schema) = &self.schema {
            template["schema"] = serde_json::from_slice(schema.as_bytes())
                .map_err(|error| Error::Usage(format!("--schema is not JSON: {error}")))?;
        }
        Ok(template)
    }
}

/// Arguments of `tg show-prompts`.
#[derive(Debug, Args)]
pub struct ShowPrompts {
    #[command(flatten)]
    common: Common,
}

impl Command for ShowPrompts {
    const NAME: &'static str = "show-prompts";
    const ABOUT: &'static str = "Show the system prompt and all prompts";

    fn options(&self) -> Options {
        Options::from(&self.common)
    }

    async fn run(self, session: &mut Session) -> Result<()> {
        let http = session.http()?;
        let request = json!({"operation": "getvalues", "type": "prompt"});
        let reply = http.all("config", request).await?;
        let mut rows: Vec<(String, String)> = list(&reply, "values")
            .iter()
            .map(|item| (text(item, "key"), text(item, "value")))
            .collect();
        rows.sort();
        let (mut system, mut templates) = (None, Map::new());
        for (key, value) in rows {
            if key == "system" {
                system = Some(match serde_json::from_slice(value.as_bytes()) {
                    Ok(Value::String(text)) => text,
                    _ => value,
                });
            } else if let Some(id) = key.strip_prefix("template.") {
                let template = serde_json::from_slice(value.as_bytes()).unwrap_or(Value::Null);
                templates.insert(id.to_owned(), template);
            }
        }
        let shown = json!({"system": system, "templates": templates});
        session
            .out
            .lay(&shown, |width| render(system.as_deref(), &templates, width))
    }
}

fn render(system: Option<&str>, templates: &Map<String, Value>, width: Width) -> String {
    let system = system.unwrap_or("(none)").to_owned();
    let mut parts = vec![format!(
        "\nSystem prompt:\n{}",
        record(&[("prompt", system)], width)
    )];
    for (id, template) in templates {
        let mut rows = vec![("prompt", text(template, "prompt"))];
        if template.get("response-type").is_some() {
            rows.push(("response", text(template, "response-type")));
        }
        if template.get("schema").is_some() {
            rows.push(("schema", text(template, "schema")));
        }
        parts.push(format!("\n{id}:\n{}", record(&rows, width)));
    }
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_shown_under_their_ids() {
        let templates = json!({"question": {"prompt": "{{question}}", "response-type": "text"}});
        let shown = render(
            Some("Be brief."),
            templates.as_object().expect("a map"),
            None,
        );
        assert!(shown.contains("Be brief."));
        assert!(shown.contains("question:\n"));
        assert!(shown.contains("| response | text"));
    }
}
