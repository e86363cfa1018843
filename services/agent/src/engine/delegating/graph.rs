//! Tasks that depend on each other: which may begin, what each is sent, what a failure does to the others, and how the result
//! reads. A function of what was found, in the order of arrival.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Definition, MAX_RESULT, cut};
use crate::engine::decision::Finding;

/// Tasks of a graph at most.
pub const MAX_TASKS: usize = 64;
/// Longest output that stands for a placeholder, in characters.
const MAX_INSERTED: usize = 4_000;
/// Longest message with what stands in it, in bytes; placeholders beyond stay as they are.
const MAX_MESSAGE: usize = 256 << 10;
/// Longest output in the readable part of a result, in characters.
const MAX_SHOWN: usize = 2_000;
/// Characters of all outputs together.
const MAX_OUTPUTS: usize = 128 << 10;
/// Stands for the agent that fits the message best.
const AUTO: &str = "auto";
/// Longest that one task may be given, in seconds.
const MAX_SECONDS: i64 = 86_400;

#[derive(Deserialize)]
struct Written {
    #[serde(default)]
    tasks: Vec<WrittenTask>,
}

#[derive(Deserialize)]
struct WrittenTask {
    #[serde(default)]
    id: String,
    #[serde(default)]
    agent_id: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    blocking: bool,
    #[serde(default)]
    timeout_seconds: Option<i64>,
}

/// One task.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its name.
    pub id: String,
    /// Who does it.
    pub agent: String,
    /// What that agent is.
    pub definition: Definition,
    /// Its message, before placeholders are filled in.
    pub message: String,
    /// Its failure ends all.
    pub blocking: bool,
    /// How long it may take.
    pub timeout_seconds: Option<u64>,
    /// Places of the tasks that come first.
    after: BTreeSet<usize>,
    /// Those, and those that come before them.
    ancestors: BTreeSet<usize>,
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Not begun.
    Pending,
    /// Begun.
    Running,
    /// There is an output.
    Success,
    /// There is none.
    Failed,
    /// It was not begun, or not waited for.
    Cancelled,
    /// It took too long.
    Timeout,
}

impl Status {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
        }
    }

    fn is_settled(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

#[derive(Debug, Clone)]
struct State {
    status: Status,
    output: String,
    error: Option<String>,
    took_ms: u64,
}

/// A graph under way.
#[derive(Debug, Clone)]
pub struct Graph {
    nodes: Vec<Node>,
    states: Vec<State>,
    most: usize,
    ended: bool,
}

/// Who does a task, by what was written: an id or nothing, and the message.
pub type Choose<'a> = &'a dyn Fn(&str, &str) -> Result<(String, Definition), String>;

impl Graph {
    /// Reads what a model wrote; so many tasks may go on at the same time.
    ///
    /// # Errors
    /// The first fault, for the model.
    pub fn read(written: &Value, most: usize, choose: Choose<'_>) -> Result<Self, String> {
        let written: Written = serde_json::from_value(written.clone())
            .map_err(|error| format!("task_graph: {error}"))?;
        let tasks = written.tasks;
        if tasks.is_empty() {
            return Err("task_graph: has no tasks".to_owned());
        }
        if tasks.len() > MAX_TASKS {
            return Err(format!("task_graph: has more than {MAX_TASKS} tasks"));
        }
        let mut places = BTreeMap::new();
        for (at, task) in tasks.iter().enumerate() {
            let fields = [
                ("id", &task.id),
                ("agent_id", &task.agent_id),
                ("message", &task.message),
            ];
            for (name, text) in fields {
                if text.trim().is_empty() {
                    return Err(format!("tasks[{at}]: {name}: is required"));
                }
            }
            if task
                .timeout_seconds
                .is_some_and(|seconds| !(1..=MAX_SECONDS).contains(&seconds))
            {
                return Err(format!(
                    "tasks[{at}]: timeout_seconds: must be 1 to {MAX_SECONDS}"
                ));
            }
        }
        for (at, task) in tasks.iter().enumerate() {
            if places.insert(task.id.clone(), at).is_some() {
                return Err(format!("task '{}' is there twice", task.id));
            }
        }
        let mut nodes = Vec::with_capacity(tasks.len());
        for task in &tasks {
            let agent = match task.agent_id.trim() {
                AUTO => "",
                id => id,
            };
            let (agent, definition) = choose(agent, &task.message)
                .map_err(|fault| format!("task '{}': {fault}", task.id))?;
            nodes.push(Node {
                id: task.id.clone(),
                agent,
                definition,
                message: task.message.clone(),
                blocking: task.blocking,
                timeout_seconds: task
                    .timeout_seconds
                    .and_then(|seconds| u64::try_from(seconds).ok()),
                after: BTreeSet::new(),
                ancestors: BTreeSet::new(),
            });
        }
        for (node, task) in nodes.iter_mut().zip(&tasks) {
            for id in &task.depends_on {
                let Some(at) = places.get(id) else {
                    return Err(format!(
                        "task '{}' depends on '{id}', which there is not",
                        task.id
                    ));
                };
                node.after.insert(*at);
            }
        }
        ancestors(&mut nodes)?;
        let new = State {
            status: Status::Pending,
            output: String::new(),
            error: None,
            took_ms: 0,
        };
        Ok(Self {
            states: vec![new; nodes.len()],
            nodes,
            most,
            ended: false,
        })
    }

    /// The report before the first task begins.
    pub fn begun(&self) -> String {
        let names = self.nodes.iter();
        let names = names.map(|node| format!("{} ({})", node.id, node.agent));
        let count = self.nodes.len();
        format!(
            "Dispatching {count} tasks: {}",
            names.collect::<Vec<_>>().join(", ")
        )
    }

    /// The graph without what its tasks say: who does what after what.
    pub fn outline(&self) -> String {
        let tasks = self.nodes.iter().map(|node| {
            let after = node.after.iter().map(|at| self.nodes[*at].id.as_str());
            let after = after.collect::<Vec<_>>().join(",");
            format!("{}:{}<-[{after}]", node.id, node.agent)
        });
        tasks.collect::<Vec<_>>().join(" ")
    }

    /// A task.
    pub fn node(&self, at: usize) -> Option<&Node> {
        self.nodes.get(at)
    }

    /// The next task to begin, with its message, if one may begin now.
    pub fn start(&mut self) -> Option<(usize, String)> {
        let under_way = self
            .states
            .iter()
            .filter(|state| state.status == Status::Running);
        if self.ended || under_way.count() >= self.most {
            return None;
        }
        let settled = |at: &usize| self.states[*at].status.is_settled();
        let at = (0..self.nodes.len()).find(|at| {
            self.states[*at].status == Status::Pending && self.nodes[*at].after.iter().all(settled)
        })?;
        self.states[at].status = Status::Running;
        Some((at, self.filled(at)))
    }

    /// The message of a task, where outputs stand for the placeholders of tasks that came before it.
    fn filled(&self, at: usize) -> String {
        let node = &self.nodes[at];
        let (mut text, mut rest) = (String::new(), node.message.as_str());
        while let Some(from) = rest.find("{{") {
            let (before, holder) = rest.split_at(from);
            text.push_str(before);
            let Some(to) = holder.find("}}") else {
                rest = holder;
                break;
            };
            let output = self.output(node, &holder[2..to]);
            match output.filter(|output| text.len() + output.len() <= MAX_MESSAGE) {
                Some(output) => {
                    text.push_str(&output);
                    rest = &holder[to + 2..];
                }
                None => {
                    text.push_str("{{");
                    rest = &holder[2..];
                }
            }
        }
        text.push_str(rest);
        text
    }

    fn output(&self, node: &Node, name: &str) -> Option<String> {
        let id = name.trim().strip_suffix(".output")?;
        let at = self.nodes.iter().position(|other| other.id == id)?;
        let state = &self.states[at];
        let known = node.ancestors.contains(&at) && state.status == Status::Success;
        known.then(|| cut(&state.output, MAX_INSERTED))
    }

    /// Takes in what came of a task, and says how far the graph is.
    pub fn found(&mut self, at: usize, finding: &Finding) -> Option<String> {
        if self.ended || self.states.get(at)?.status.is_settled() {
            return None;
        }
        let state = &mut self.states[at];
        state.took_ms = finding.took_ms;
        state.status = match (&finding.error, finding.late) {
            (None, _) => Status::Success,
            (Some(_), true) => Status::Timeout,
            (Some(_), false) => Status::Failed,
        };
        state.error.clone_from(&finding.error);
        if finding.error.is_none() {
            state.output = match finding.stopped {
                true => format!("[subagent stopped] {}", finding.text),
                false => finding.text.clone(),
            };
        }
        let status = state.status;
        let node = &self.nodes[at];
        let over = self
            .states
            .iter()
            .filter(|state| state.status.is_settled())
            .count();
        let all = self.nodes.len();
        let told = format!(
            "[{over}/{all}] {} ({}): {}",
            node.id,
            node.agent,
            status.as_str()
        );
        if status != Status::Success && node.blocking {
            self.end(at);
        }
        Some(told)
    }

    /// Nothing more is done, because of the failure of a task.
    fn end(&mut self, failed: usize) {
        self.ended = true;
        let id = self.nodes[failed].id.clone();
        for (node, state) in self.nodes.iter().zip(&mut self.states) {
            if state.status.is_settled() {
                continue;
            }
            state.status = Status::Cancelled;
            state.error = Some(match node.ancestors.contains(&failed) {
                true => format!("cancelled: it depends on '{id}', which failed"),
                false => "cancelled".to_owned(),
            });
        }
    }

    /// Nobody is to be waited for.
    pub fn is_over(&self) -> bool {
        self.states.iter().all(|state| state.status.is_settled())
    }

    /// Why nothing came of it; `None`: a task succeeded.
    pub fn fault(&self) -> Option<String> {
        let all = self.nodes.iter().zip(&self.states);
        let mut faults = Vec::new();
        for (node, state) in all {
            if state.status == Status::Success {
                return None;
            }
            let error = state.error.as_deref().unwrap_or_default();
            faults.push(format!("{} ({}): {error}", node.id, state.status.as_str()));
        }
        let faults = format!("no task succeeded: {}", faults.join("; "));
        Some(cut(&faults, MAX_RESULT))
    }

    /// The result as the caller reads it: how many there are, all of them as JSON, and each once more to be read.
    pub fn told(&self) -> String {
        let most = MAX_RESULT.min(MAX_OUTPUTS / self.nodes.len().max(1));
        let tasks = self.nodes.iter().zip(&self.states).map(|(node, state)| {
            let mut task = json!({
                "id": node.id, "agent_id": node.agent, "status": state.status.as_str(),
                "output": cut(&state.output, most), "duration_ms": state.took_ms,
            });
            if let Some(error) = &state.error {
                task["error"] = error.as_str().into();
            }
            task
        });
        let tasks: Vec<Value> = tasks.collect();
        let succeeded = self
            .states
            .iter()
            .filter(|state| state.status == Status::Success);
        let mut text = format!(
            "Tasks: {} of {} succeeded\n{}",
            succeeded.count(),
            self.nodes.len(),
            json!({"tasks": tasks})
        );
        for (node, state) in self.nodes.iter().zip(&self.states) {
            let status = state.status.as_str();
            text.push_str(&format!(
                "\n\n[task: {} | agent: {} | status: {status}]\n",
                node.id, node.agent
            ));
            let error = state.error.as_deref().unwrap_or_default();
            match state.status {
                Status::Success => text.push_str(&cut(&state.output, MAX_SHOWN)),
                Status::Cancelled => text.push_str(&format!("CANCELLED: {error}")),
                _ => text.push_str(&format!("ERROR: {error}")),
            }
        }
        text
    }
}

/// Fills in who comes before whom.
fn ancestors(nodes: &mut [Node]) -> Result<(), String> {
    let mut open: BTreeSet<usize> = (0..nodes.len()).collect();
    loop {
        let free = open.iter().copied();
        let free: Vec<usize> = free
            .filter(|at| nodes[*at].after.is_disjoint(&open))
            .collect();
        if free.is_empty() {
            break;
        }
        for at in free {
            let mut all = nodes[at].after.clone();
            for before in &nodes[at].after {
                all.extend(&nodes[*before].ancestors);
            }
            nodes[at].ancestors = all;
            open.remove(&at);
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = open.iter().map(|at| nodes[*at].id.as_str()).collect();
    Err(format!(
        "depends_on: the tasks go in a circle: {}",
        ids.join(", ")
    ))
}

#[cfg(test)]
mod tests;
