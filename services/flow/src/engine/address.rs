//! Topic templates of blueprints and how far they reach. The shape is strict so that isolation can be
//! read off it: `class:tg:base`, then `{workspace}` as a part of its own, then `{id}` or other parts.

use tg_schemas::Class;
use tg_schemas::processors;
use tg_schemas::topic::SPACE;

use super::template::Template;

/// Who shares a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The whole system: a literal name.
    System,
    /// A workspace service, e.g. `request:tg:librarian:{workspace}`.
    Service,
    /// Flows of one workspace.
    Workspace,
    /// One flow.
    Flow,
}

/// A checked topic template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The text as written.
    pub template: Template,
    /// Class of the topic.
    pub class: Class,
    /// First part of the name, always literal.
    pub base: String,
    /// Who shares it.
    pub reach: Reach,
}

impl Address {
    /// Reads a topic template.
    ///
    /// # Errors
    /// What is wrong with it, in words: no class that can be used, no base, or names that others would share.
    pub fn parse(text: &str) -> Result<Self, String> {
        let template = Template::parse(text)?;
        let parts: Vec<&str> = text.split(':').collect();
        let [class, space, base, rest @ ..] = parts.as_slice() else {
            return Err(format!(
                "must have the form class:{SPACE}:name:{{workspace}}:{{id}}"
            ));
        };
        let class = class_of(class)
            .ok_or("its class must be flow, request, response or notify, written out")?;
        if *space != SPACE {
            return Err(format!("its second part must be '{SPACE}'"));
        }
        if base.contains(['{', '}']) {
            return Err("the first part of its name must be written out, not a parameter".into());
        }
        if parts.iter().any(|part| part.is_empty()) {
            return Err("has an empty part".into());
        }
        let service = processors::service(base).is_some();
        let reach = match rest {
            [] if service => Reach::System,
            [] => {
                return Err(
                    "is a literal topic that is not the topic of a known global service".into(),
                );
            }
            ["{workspace}"] if service => Reach::Service,
            ["{workspace}", "{id}", ..] => Reach::Flow,
            ["{workspace}", ..] => Reach::Workspace,
            _ if template.names().any(|name| name == "workspace") => {
                return Err("'{workspace}' must directly follow the first part of its name".into());
            }
            _ => {
                return Err(
                    "'{workspace}' is required: flows of other workspaces would share it".into(),
                );
            }
        };
        Ok(Self {
            template,
            class,
            base: (*base).to_owned(),
            reach,
        })
    }

    /// Whether the flow that names it owns it (alone or with others).
    pub fn owned(&self) -> bool {
        matches!(self.reach, Reach::Workspace | Reach::Flow)
    }
}

fn class_of(text: &str) -> Option<Class> {
    [Class::Flow, Class::Request, Class::Response, Class::Notify]
        .into_iter()
        .find(|class| class.as_str() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reach_is_read_off_the_shape() {
        let reach = |text: &str| Address::parse(text).map(|address| address.reach);
        assert_eq!(reach("request:tg:agent:{workspace}:{id}"), Ok(Reach::Flow));
        assert_eq!(reach("flow:tg:x:{workspace}:{id}:{model}"), Ok(Reach::Flow));
        assert_eq!(reach("flow:tg:x:{workspace}:{model}"), Ok(Reach::Workspace));
        assert_eq!(reach("flow:tg:x:{workspace}"), Ok(Reach::Workspace));
        assert_eq!(
            reach("request:tg:librarian:{workspace}"),
            Ok(Reach::Service)
        );
        assert_eq!(reach("request:tg:config"), Ok(Reach::System));
    }

    #[test]
    fn shapes_that_could_reach_another_workspace_are_refused() {
        for bad in [
            "",
            "plain",
            "request:tg",
            "state:tg:x:{workspace}:{id}",
            "{class}:tg:x:{workspace}:{id}",
            "request:other:agent:{workspace}:{id}",
            "request:tg:agent:victim:default",
            "request:tg:agent",
            "request:tg:agent:{a}:{b}",
            "request:tg:agent:{a}:{workspace}",
            "request:tg:agent:x{workspace}:{id}",
            "request:tg:agent{workspace}:{id}",
            "request:tg:{base}:{workspace}:{id}",
            "request:tg:librarian:other",
            "request:tg:agent::{workspace}:{id}",
            "request:tg:agent:{workspace}:",
            "request:tg:agent:{workspace}:{id",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
    }
}
