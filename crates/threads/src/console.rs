//! The console: a person's lines become messages, and answers prompts. It has no loop of its own: it does something when a
//! prompt or a line comes, and waits for nothing.

use serde_json::{Value, json};

use crate::directory::Directory;
use crate::envelope::Delivery;
use crate::name::Name;
use crate::payload::{PayloadType, SystemError};
use crate::turn::Turn;

/// What is said before the first prompt.
pub const BANNER: &str = "Write '@listener text' to send something, /help for the commands.";
/// What is said to a line that names no listener.
pub const HINT: &str =
    "Begin with '@' and the name of a listener, such as '@greeter hi'; /listeners names them.";
/// What is said to a command that is none.
pub const UNKNOWN: &str = "unknown command";
/// Most lines that are remembered.
const HISTORY: usize = 1000;
const HELP: [&str; 6] = [
    "@listener text  sends the text to a listener",
    "/listeners      names the listeners",
    "/history        shows what was said",
    "/status         says whether the console runs, and on which thread",
    "/quit           leaves",
    "Ctrl-C          stops what runs; the conversation goes on",
];

/// A prompt for a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// What is shown.
    pub output: String,
    /// Who says it, if anybody.
    pub source: String,
    /// Whether the banner is shown first.
    pub show_banner: bool,
}

impl Prompt {
    /// Reads the payload of a `consoleprompt`.
    pub fn read(body: &serde_json::Map<String, Value>) -> Self {
        let text = |key| {
            body.get(key)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };
        Self {
            output: text("output"),
            source: text("source"),
            show_banner: body
                .get("show_banner")
                .and_then(Value::as_bool)
                .unwrap_or(false),
        }
    }

    fn body(&self) -> Value {
        json!({"output": self.output, "source": self.source, "show_banner": self.show_banner})
    }
}

/// What follows from a line, or from the end of all lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// These lines are shown, and the next line is read.
    Again(Vec<String>),
    /// The listeners are shown, and the next line is read.
    Listeners,
    /// The handler returns a `consoleinput` for the router.
    Send {
        /// What is said.
        text: String,
        /// Whom it is for.
        target: String,
    },
    /// The handler returns none: the console is disconnected.
    Quit,
}

/// The handler of a console.
#[derive(Debug, Default)]
pub struct Console {
    thread: Option<String>,
    history: std::collections::VecDeque<String>,
}

impl Console {
    /// The thread under which it goes on, once there is one.
    pub fn thread(&self) -> Option<&str> {
        self.thread.as_deref()
    }

    /// The thread that its message was given.
    pub fn on_thread(&mut self, thread: &str) {
        self.thread = Some(thread.to_owned());
    }

    /// What a prompt shows, a line each.
    pub fn shows(&mut self, prompt: &Prompt) -> Vec<String> {
        let mut lines = Vec::new();
        if prompt.show_banner {
            lines.push(BANNER.to_owned());
        }
        let said = prompt
            .output
            .lines()
            .map(|line| match prompt.source.as_str() {
                "" => line.to_owned(),
                source => format!("[{source}] {line}"),
            });
        for line in said {
            self.note(line.clone());
            lines.push(line);
        }
        lines
    }

    /// What follows from a line; `None` is the end of input.
    pub fn line(&mut self, line: Option<&str>) -> Step {
        let Some(line) = line.map(str::trim) else {
            return Step::Quit;
        };
        let again = |text: String| Step::Again(vec![text]);
        match line {
            "" => Step::Again(Vec::new()),
            "/quit" | "/exit" => Step::Quit,
            "/help" => Step::Again(HELP.map(str::to_owned).to_vec()),
            "/listeners" => Step::Listeners,
            "/history" => Step::Again(self.history.iter().cloned().collect()),
            "/status" => match &self.thread {
                Some(thread) => Step::Again(vec![
                    format!("running, thread {}", &thread[..thread.len().min(8)]),
                    format!("its whole id: {thread}"),
                ]),
                None => again("running, no thread yet".to_owned()),
            },
            other if other.starts_with('/') => again(UNKNOWN.to_owned()),
            other => match other
                .strip_prefix('@')
                .map(|rest| rest.split_once(' ').unwrap_or((rest, "")))
            {
                Some((target, text)) if !target.is_empty() && !text.trim().is_empty() => {
                    self.note(format!("> {other}"));
                    Step::Send {
                        text: text.trim().to_owned(),
                        target: target.to_owned(),
                    }
                }
                _ => again(HINT.to_owned()),
            },
        }
    }

    fn note(&mut self, line: String) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(line);
    }
}

/// The handler of `console-router`: a line goes to its target, everything else to the console as a prompt.
pub fn route(directory: &Directory, delivery: &Delivery) -> Turn {
    let content = delivery.envelope().content();
    let from = &delivery.metadata().from_id;
    match content.kind.as_str() {
        "consoleinput" if *from == Name::console() => {
            let (target, text) = (content.text("target"), content.text("text"));
            let takes = |kind: &str| {
                let kind = PayloadType::new(kind).ok();
                let listener = directory.get(target);
                kind.zip(listener)
                    .is_some_and(|(kind, one)| one.types().contains_key(&kind))
            };
            let user = &delivery.envelope().meta.user_id;
            if takes("textinput") {
                let body = json!({"text": text, "source": "console", "user": user});
                return Turn::forward(target, "textinput", body);
            }
            if takes("agentrequest") {
                return Turn::forward(target, "agentrequest", json!({"question": text}));
            }
            prompt(SystemError::Routing.says().1, "system")
        }
        "systemerror" => prompt(content.text("message"), "system"),
        "huh" => prompt(content.text("error"), "system"),
        _ => {
            let said = ["text", "output", "answer"].map(|key| content.text(key));
            match said.into_iter().find(|text| !text.is_empty()) {
                Some(text) => prompt(text, from.as_str()),
                None => prompt(
                    &Value::Object(content.body.clone()).to_string(),
                    from.as_str(),
                ),
            }
        }
    }
}

fn prompt(output: &str, source: &str) -> Turn {
    let prompt = Prompt {
        output: output.to_owned(),
        source: source.to_owned(),
        show_banner: false,
    };
    Turn::forward(Name::console().as_str(), "consoleprompt", prompt.body())
}
