//! Reading a prompt that the `agent-react` template made, and writing a step in its grammar.

use serde_json::{Map, Value, json};

const TOOLS: &str = "## Tools";
const FORM: &str = "## Form of a step";
const QUESTION: &str = "## Question";
const STEPS: &str = "## Steps so far";
const NEXT: &str = "## Your next step";

/// A tool on offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) arguments: Vec<String>,
}

/// A step that was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Past {
    pub(super) action: String,
    pub(super) args: String,
    pub(super) observation: String,
}

/// The prompt, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) tools: Vec<Tool>,
    pub(super) question: String,
    pub(super) steps: Vec<Past>,
}

impl Prompt {
    /// Reads a prompt; `None` when it is not of our template.
    pub(super) fn read(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let find = |heading: &str, from: usize| {
            lines[from..]
                .iter()
                .position(|line| line.trim_end() == heading)
                .map(|at| from + at)
        };
        let tools = find(TOOLS, 0)?;
        let form = find(FORM, tools)?;
        let question = find(QUESTION, form)?;
        let end = lines.iter().rposition(|line| line.trim_end() == NEXT)?;
        if end <= question {
            return None;
        }
        let steps = find(STEPS, question).filter(|steps| *steps < end);
        let asked = &lines[question + 1..steps.unwrap_or(end)];
        Some(Self {
            tools: read_tools(&lines[tools + 1..form]),
            question: asked.join("\n").trim().to_owned(),
            steps: steps.map_or(Vec::new(), |steps| read_steps(&lines[steps + 1..end])),
        })
    }

    /// A tool by name.
    pub(super) fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

/// Whether a prompt of another template asks for the same grammar.
pub(super) fn wants_grammar(text: &str) -> bool {
    ["Thought:", "Action:", "Final Answer:"]
        .iter()
        .all(|word| text.contains(word))
}

/// Tools as prompts list them.
pub(super) fn read_tools(lines: &[&str]) -> Vec<Tool> {
    let mut tools: Vec<Tool> = Vec::new();
    for line in lines {
        if let Some((name, description)) = line
            .strip_prefix("* ")
            .and_then(|rest| rest.split_once(": "))
        {
            tools.push(Tool {
                name: name.trim().to_owned(),
                description: description.trim().to_owned(),
                arguments: Vec::new(),
            });
        } else if let Some(rest) = line.strip_prefix("  - ")
            && let (Some(tool), Some((name, _))) = (tools.last_mut(), rest.split_once(" ("))
        {
            tool.arguments.push(name.trim().to_owned());
        }
    }
    tools
}

fn read_steps(lines: &[&str]) -> Vec<Past> {
    let mut steps: Vec<Past> = Vec::new();
    let mut observing = false;
    for line in lines {
        if line.starts_with("Thought:") {
            steps.push(Past::default());
            observing = false;
            continue;
        }
        let Some(step) = steps.last_mut() else {
            continue;
        };
        if observing {
            step.observation.push('\n');
            step.observation.push_str(line);
        } else if let Some(action) = line.strip_prefix("Action:") {
            step.action = action.trim().to_owned();
        } else if let Some(args) = line.strip_prefix("Args:") {
            step.args = args.trim().to_owned();
        } else if let Some(seen) = line.strip_prefix("Observation:") {
            step.observation = seen.trim().to_owned();
            observing = true;
        }
    }
    for step in &mut steps {
        step.observation = step.observation.trim().to_owned();
    }
    steps
}

/// A step to make.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Call a tool.
    Call {
        thought: String,
        tool: String,
        args: Value,
    },
    /// Answer.
    Answer { thought: String, text: String },
}

impl Step {
    /// Calls a tool with one argument, or none.
    pub(super) fn call(thought: String, tool: &str, args: Option<(&str, &str)>) -> Self {
        let args: Map<String, Value> = args
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        Self::Call {
            thought,
            tool: tool.to_owned(),
            args: Value::Object(args),
        }
    }

    /// Answers.
    pub(super) fn answer(thought: impl Into<String>, text: String) -> Self {
        Self::Answer {
            thought: thought.into(),
            text,
        }
    }

    /// The step in the grammar of the text protocol.
    pub(super) fn render(&self) -> String {
        match self {
            Self::Call {
                thought,
                tool,
                args,
            } => format!(
                "Thought: {}\nAction: {tool}\nArgs: {args}\n",
                one_line(thought)
            ),
            Self::Answer { thought, text } => {
                format!("Thought: {}\nFinal Answer: {text}\n", one_line(thought))
            }
        }
    }
}

/// A thought repeats words of the question, which must not start a line of their own.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
