//! What tools a server has, within bounds: what it says of them is shown to models.

use std::collections::BTreeSet;

use rmcp::model::{ListToolsResult, Tool};
use serde_json::{Value, json};
use tg_schemas::limits;
use tg_schemas::msg::McpTool;

/// Most tools of a server.
const TOOLS: usize = 128;
/// Most pages that are asked for.
const PAGES: usize = 32;
/// Most characters of a name.
const NAME: usize = 128;
/// Most characters of a description; more is left out.
const DESCRIPTION: usize = 2_000;

/// The tools of one server, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    tools: Vec<McpTool>,
    /// Tools that are not among them: there are too many, or what is said of them is too long.
    left_out: usize,
    /// There are pages that were not asked for.
    has_more: bool,
    names: BTreeSet<String>,
    bytes: usize,
    pages: usize,
}

impl Listing {
    /// Whether another page is asked for.
    pub(super) fn wants_more(&self) -> bool {
        self.pages < PAGES && self.tools.len() < TOOLS
    }

    /// Adds a page.
    pub(super) fn add(&mut self, page: Vec<Tool>) {
        self.pages += 1;
        for tool in page {
            let Some(tool) = shown(&tool) else {
                self.left_out += 1;
                continue;
            };
            let bytes = tool.name.len() + tool.description.len() + tool.schema.len();
            let fits = self.bytes + bytes <= limits::MCP_TOOLS && self.tools.len() < TOOLS;
            // A page that comes again brings nothing.
            if self.tools.contains(&tool) {
                continue;
            }
            if fits && self.names.insert(tool.name.clone()) {
                self.bytes += bytes;
                self.tools.push(tool);
            } else {
                self.left_out += 1;
            }
        }
    }

    /// There are pages that are not asked for.
    pub(super) fn cut(&mut self) {
        self.has_more = true;
    }

    /// The tools, and what is to be said of those that were left out.
    pub(crate) fn told(&self) -> (Vec<McpTool>, String) {
        let text = match self.left_out {
            _ if self.has_more => "further tools of the server were left out".to_owned(),
            0 if self.tools.is_empty() => "the server has no tools".to_owned(),
            0 => String::new(),
            1 => "1 tool of the server was left out".to_owned(),
            more => format!("{more} tools of the server were left out"),
        };
        (self.tools.clone(), text)
    }
}

/// A page that has tools without a schema, or with one that is no object: they take any arguments. What is no tool for other reasons
/// gets no name, so that it counts as left out. `None`: it is no page.
pub(super) fn mended(mut page: Value) -> Option<ListToolsResult> {
    let any = || json!({"type": "object"});
    for tool in page.get_mut("tools")?.as_array_mut()? {
        if let Some(told) = tool.as_object_mut()
            && told
                .get("inputSchema")
                .is_none_or(|schema| !schema.is_object())
        {
            told.insert("inputSchema".to_owned(), any());
        }
        if serde_json::from_value::<Tool>(tool.clone()).is_err() {
            *tool = json!({"name": "", "inputSchema": any()});
        }
    }
    serde_json::from_value(page).ok()
}

/// A tool as it is passed on; `None`: its name or its schema is none.
fn shown(tool: &Tool) -> Option<McpTool> {
    let name = tool.name.trim();
    let fits = (1..=NAME).contains(&name.chars().count()) && !name.contains(char::is_control);
    let schema = serde_json::to_string(&*tool.input_schema).ok()?;
    if !fits || schema.len() > limits::MCP_SCHEMA {
        return None;
    }
    let title = tool.title.as_deref();
    let said = tool.description.as_deref().or(title).unwrap_or_default();
    let hints = tool.annotations.as_ref();
    let is = |hint: Option<bool>| hint == Some(true);
    Some(McpTool {
        name: name.to_owned(),
        description: said.chars().take(DESCRIPTION).collect(),
        schema,
        read_only: hints.is_some_and(|hints| is(hints.read_only_hint)),
        idempotent: hints.is_some_and(|hints| is(hints.idempotent_hint)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, more: Value) -> Tool {
        let mut tool = json!({"name": name, "inputSchema": {"type": "object"}});
        let more = more.as_object().unwrap().clone();
        tool.as_object_mut().unwrap().extend(more);
        serde_json::from_value(tool).unwrap()
    }

    fn listed(tools: Vec<Tool>) -> (Vec<McpTool>, String) {
        let mut listing = Listing::default();
        listing.add(tools);
        listing.told()
    }

    #[test]
    fn what_a_server_does_not_say_of_a_tool_is_not_assumed() {
        let (tools, told) = listed(vec![
            tool("plain", json!({"title": "A title"})),
            tool(
                "looks",
                json!({"description": "d", "annotations": {"readOnlyHint": true}}),
            ),
            tool(
                "writes",
                json!({"annotations": {"readOnlyHint": false, "idempotentHint": true}}),
            ),
        ]);
        let flags: Vec<_> = tools
            .iter()
            .map(|tool| {
                (
                    &*tool.name,
                    &*tool.description,
                    tool.read_only,
                    tool.idempotent,
                )
            })
            .collect();
        assert_eq!(
            flags,
            [
                ("plain", "A title", false, false),
                ("looks", "d", true, false),
                ("writes", "", false, true)
            ]
        );
        assert_eq!(
            (tools[0].schema.as_str(), told.as_str()),
            (r#"{"type":"object"}"#, "")
        );
    }

    #[test]
    fn a_tool_without_a_schema_hides_no_others() {
        let page = mended(json!({"nextCursor": "n", "tools": [
            {"name": "plain", "inputSchema": {"type": "object"}},
            {"name": "bare"}, {"name": "null", "inputSchema": null}, {"title": "no name"}, 7]}));
        let page = page.unwrap();
        assert_eq!(page.next_cursor.as_deref(), Some("n"));
        let (tools, told) = listed(page.tools);
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["plain", "bare", "null"]);
        assert_eq!(tools[2].schema, r#"{"type":"object"}"#);
        assert_eq!(told, "2 tools of the server were left out");
        assert!(mended(json!({"tools": 3})).is_none());
    }

    #[test]
    fn tools_that_come_again_are_not_left_out() {
        let page = || vec![tool("a", json!({})), tool("b", json!({}))];
        let mut listing = Listing::default();
        listing.add(page());
        listing.add(page());
        let (tools, told) = listing.told();
        assert_eq!((tools.len(), told.as_str()), (2, ""));
    }

    #[test]
    fn tools_are_bounded_in_number_and_bytes() {
        let many = (0..TOOLS + 2).map(|n| tool(&format!("t{n}"), json!({})));
        let (tools, told) = listed(many.collect());
        assert_eq!(tools.len(), TOOLS);
        assert_eq!(told, "2 tools of the server were left out");
        let long = "x".repeat(limits::MCP_SCHEMA);
        let (tools, told) = listed(vec![
            tool("", json!({})),
            tool("a\nb", json!({})),
            tool("same", json!({"description": "d".repeat(DESCRIPTION + 1)})),
            tool("same", json!({})),
            tool(
                "long",
                json!({"inputSchema": {"type": "object", "x": long}}),
            ),
        ]);
        assert_eq!((tools.len(), tools[0].description.len()), (1, DESCRIPTION));
        assert_eq!(told, "4 tools of the server were left out");
        let half = "x".repeat(limits::MCP_SCHEMA / 2);
        let schema = json!({"inputSchema": {"type": "object", "x": half}});
        let large = (0..TOOLS).map(|n| tool(&format!("t{n}"), schema.clone()));
        let (tools, _) = listed(large.collect());
        let bytes: usize = tools.iter().map(|tool| tool.schema.len()).sum();
        assert!(tools.len() < TOOLS && bytes <= limits::MCP_TOOLS);
        let mut pages = Listing::default();
        for _ in 0..PAGES {
            assert!(pages.wants_more());
            pages.add(Vec::new());
        }
        assert!(!pages.wants_more());
        pages.cut();
        assert_eq!(pages.told().1, "further tools of the server were left out");
    }
}
