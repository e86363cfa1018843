//! The prompts of our own that the reader knows by their first line, and what it replies to each. Text that a
//! prompt carries never stands before the headings that are looked for from the front.

use serde_json::json;

use super::{choice, concepts, extract, ontology, parts, react, reading, synthesis, tables};

/// The reply to a prompt; `None` when it is none of those known here.
pub(super) fn reply(prompt: &str) -> Option<String> {
    let lines: Vec<&str> = prompt.lines().collect();
    let prompt = Sections { lines: &lines };
    Some(match lines.first()?.trim_end() {
        "## Definitions wanted" => extract::definition_lines(&prompt.text()?, "entity"),
        "## Topics wanted" => extract::definition_lines(&prompt.text()?, "topic"),
        "## Relationships wanted" => extract::relationship_lines(&prompt.text()?),
        KNOWLEDGE => extract::knowledge_lines(&prompt.text()?),
        "## Rows wanted" => rows(&prompt)?,
        "## Ontology facts wanted" => ontology::reply(
            prompt.between("## Classes", "## Relations")?,
            prompt.between("## Relations", "## Attributes")?,
            prompt.between("## Attributes", "## Form")?,
            &prompt.text()?,
        ),
        "## Kind of task wanted" => choice::choose(
            prompt.between("## Kinds", "## Question")?,
            &prompt.question()?,
        )
        .unwrap_or_else(|| "general".to_owned()),
        "## Way of working wanted" => choice::choose(
            prompt.between("## Ways", "## Question")?,
            &prompt.question()?,
        )?,
        "## Plan wanted" => parts::plan(&prompt.question()?),
        "## Goals wanted" => parts::goals(&prompt.question()?),
        "## Tool for a step wanted" => {
            let form = prompt.lines.iter().take_while(|line| {
                let line = line.trim_end();
                line != "## Results" && line != "## Form"
            });
            let lines: Vec<&str> = form.copied().collect();
            let goal = prompt.lines.get(prompt.last("## Goal")? + 1..)?;
            parts::tool(react::read_tools(&lines), goal.join("\n").trim())
        }
        "## Answer from steps" | "## Answer from findings" => {
            let (from, to) = (prompt.first("## Results")? + 1, prompt.last("## Question")?);
            parts::answer(prompt.lines.get(from..to)?)
        }
        "## Concepts wanted" => concepts::lines(&prompt.question()?),
        "## Answer from facts" => {
            synthesis::from_facts(prompt.material("## Facts")?, &prompt.question()?)
        }
        "## Answer from passages" => {
            reading::from_passages(prompt.material("## Passages")?, &prompt.question()?)
        }
        "## Tables wanted" => {
            let known = tables::tables(prompt.between("## Tables", "## Form")?);
            tables::choose(&known, &prompt.question()?)
        }
        "## GraphQL query wanted" => {
            let known = tables::tables(prompt.between("## Tables", "## Rules")?);
            tables::query(&known, &prompt.question()?)
        }
        "## Import of CSV wanted" => import(&prompt, "csv")?,
        "## Import of JSON wanted" => import(&prompt, "json")?,
        "## Import of XML wanted" => import(&prompt, "xml")?,
        "## Import of data wanted" => import(&prompt, prompt.data_format()?)?,
        _ => return None,
    })
}

/// First line of the prompt that asks an agent what a text says.
const KNOWLEDGE: &str = "## Knowledge wanted";

/// The final answer to a question that asks an agent what a text says.
pub(super) fn knowledge(question: &str) -> Option<String> {
    if question.lines().next()?.trim_end() == KNOWLEDGE {
        reply(question)
    } else {
        None
    }
}

struct Sections<'a> {
    lines: &'a [&'a str],
}

impl<'a> Sections<'a> {
    fn first(&self, heading: &str) -> Option<usize> {
        self.lines
            .iter()
            .position(|line| line.trim_end() == heading)
    }

    fn last(&self, heading: &str) -> Option<usize> {
        self.lines
            .iter()
            .rposition(|line| line.trim_end() == heading)
    }

    /// Everything behind the heading of the text, which is the last of its prompt. Where the text stands is no part of it.
    fn text(&self) -> Option<String> {
        let text = &self.lines[self.first("## Text")? + 1..];
        let text = match text {
            [place, rest @ ..] if synthesis::is_place(place) && !rest.is_empty() => rest,
            whole => whole,
        };
        Some(text.join("\n"))
    }

    /// What the data at the end looks like: `csv`, `json` or `xml`.
    fn data_format(&self) -> Option<&'static str> {
        let data = &self.lines[self.last("## Data")? + 1..];
        let mut starts = data
            .iter()
            .filter_map(|line| line.trim_start().chars().next());
        Some(match starts.next()? {
            '<' => "xml",
            '{' | '[' => "json",
            _ => "csv",
        })
    }

    /// Lines between two headings.
    fn between(&self, from: &str, to: &str) -> Option<&'a [&'a str]> {
        let from = self.first(from)? + 1;
        let to = from
            + self.lines[from..]
                .iter()
                .position(|line| line.trim_end() == to)?;
        Some(&self.lines[from..to])
    }

    /// Facts or passages, which may hold headings of their own.
    fn material(&self, heading: &str) -> Option<&'a [&'a str]> {
        let (from, to) = (self.first(heading)? + 1, self.last("## Rules")?);
        self.lines.get(from..to)
    }

    /// What stands at the end.
    fn question(&self) -> Option<String> {
        let from = self.last("## Question")? + 1;
        let to = self.last("## Your answer").filter(|to| *to > from);
        let lines = &self.lines[from..to.unwrap_or(self.lines.len())];
        Some(lines.join("\n").trim().to_owned())
    }
}

fn rows(prompt: &Sections<'_>) -> Option<String> {
    let find = prompt.lines.get(1)?;
    let name = find.strip_prefix("Find in the text at the end every ")?;
    let name = name
        .split_once(" that it describes")
        .map_or(name, |(name, _)| name);
    let end = prompt.first(
        "Write one JSON object a line and nothing else, with the names of the fields as its keys.",
    )?;
    let fields: Vec<tables::Field> = prompt.lines[2..end.max(2)]
        .iter()
        .filter_map(|line| tables::field(line.strip_prefix("* ")?))
        .collect();
    Some(tables::rows(name, &fields, &prompt.text()?))
}

fn import(prompt: &Sections<'_>, format: &str) -> Option<String> {
    let known = tables::tables(prompt.between("## Table", "## Form")?);
    let data = prompt.lines.get(prompt.last("## Data")? + 1..)?;
    let (sources, options) = match format {
        "csv" => {
            let header = data.iter().find(|line| !line.trim().is_empty())?;
            let mark = ['|', '\t', ';', ',']
                .into_iter()
                .max_by_key(|mark| header.matches(*mark).count())?;
            let names = header
                .split(mark)
                .map(|name| name.trim_matches(['"', ' ']).to_owned())
                .collect();
            (names, json!({"delimiter": mark.to_string()}))
        }
        "json" => (concepts::keys(&data.join("\n")), json!({})),
        _ => {
            let text = data.join("\n");
            let path = concepts::record(&text).map(|name| format!("//{name}"));
            let options = path.map_or_else(|| json!({}), |path| json!({"record_path": path}));
            (concepts::tags(&text), options)
        }
    };
    Some(tables::mapping(format, &options, known.first()?, &sources))
}

#[cfg(test)]
mod tests;
