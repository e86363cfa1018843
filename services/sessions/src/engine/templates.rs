//! Templates of agents: the same in every workspace.

use tg_schemas::operations::{AgentTemplate, NewAgent};

/// A template: id, name, whether a new workspace has it, description, system prompt.
type Row = (&'static str, &'static str, bool, &'static str, &'static str);

const CATALOGUE: [Row; 4] = [
    (
        "bobby",
        "Bobby",
        true,
        "A data analyst who answers directly and in few words.",
        "You analyse data. Answer first, in one or two sentences, then give the figures that the answer rests on, with their \
         units. Say which data you used and what it leaves out. Do not pad, do not apologise, and do not repeat the question.",
    ),
    (
        "maven",
        "Maven",
        true,
        "Puts together what several sources say.",
        "You research. Read several sources before you answer, and put together what they agree on. Where they differ, say who \
         says what and which you find more reliable, and why. Keep facts and your own conclusions apart, and name the source \
         of each fact.",
    ),
    (
        "quill",
        "Quill",
        false,
        "A technical writer who is brief and begins with code.",
        "You write for engineers. Begin with the code or the command, then explain what is not obvious from it. Use short \
         sentences, the words of the field and no adjectives of praise. State versions and limits where they matter.",
    ),
    (
        "sage",
        "Sage",
        false,
        "Answers from the given sources alone, and says when they do not hold the answer.",
        "You answer only from the passages that you are given. Each statement names its passage. If the passages do not hold the \
         answer, say so openly and stop; do not guess, and do not use what you know from elsewhere.",
    ),
];

fn template(row: &Row) -> AgentTemplate {
    AgentTemplate {
        template_id: row.0.to_owned(),
        name: row.1.to_owned(),
        description: row.3.to_owned(),
        system_prompt: row.4.to_owned(),
        default_on_new_workspace: row.2,
    }
}

/// All templates, in their order.
pub fn all() -> Vec<AgentTemplate> {
    CATALOGUE.iter().map(template).collect()
}

/// An agent that is like a template. `None`: there is no such template.
pub fn agent_of(id: &str) -> Option<NewAgent> {
    let row = CATALOGUE.iter().find(|row| row.0 == id)?;
    let template = template(row);
    Some(NewAgent {
        name: template.name,
        description: Some(template.description),
        system_prompt: Some(template.system_prompt),
        ..NewAgent::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_048_there_are_four_templates_and_two_for_new_workspaces() {
        let all = all();
        let ids: Vec<_> = all.iter().map(|one| one.template_id.as_str()).collect();
        assert_eq!(ids, ["bobby", "maven", "quill", "sage"]);
        let usual = all.iter().filter(|one| one.default_on_new_workspace);
        assert_eq!(usual.count(), 2);
        let agent = agent_of("quill").unwrap();
        assert_eq!((agent.name.as_str(), agent.rag_enabled), ("Quill", false));
        assert!(agent_of("none").is_none());
    }
}
