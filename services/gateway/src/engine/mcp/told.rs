//! What an answer of an operation is to a client of this protocol: a text for a model to read, and for listings the same
//! as data. What is too long is cut, and says so.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Value, json};
use tg_schemas::limits::{MCP_ANSWER, MCP_TEXT, human};
use tg_schemas::{Error, ErrorCode, Term, Triple};

use super::connector;
use super::tools::{Answer, Tool};
use crate::engine::rdf::terms;
use crate::engine::translate::{Body, error_value};

/// The result of a call whose operation answered: for the text of a document from a place on.
pub(crate) fn result(
    tool: &Tool,
    body: &Body,
    (document, offset): (&str, usize),
) -> CallToolResult {
    if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
        let text = |key: &str| error.get(key).and_then(Value::as_str).unwrap_or_default();
        return failure(&Error::typed(text("type"), text("message")));
    }
    // What an operation of the sessions answers stands below one key.
    let body = body
        .get("result")
        .and_then(Value::as_object)
        .unwrap_or(body);
    let told = match tool.answer {
        Answer::Prose(key) => Ok(text(prose(body, key))),
        Answer::Triples => Ok(text(triples(body.get("response")))),
        Answer::Results => results(body),
        Answer::Content => content(body, offset).map(text),
        Answer::Added => Ok(data(added(body))),
        Answer::Found => Ok(data(connector::found(&connector::ids(body), &Body::new()))),
        Answer::Fetched => {
            content(body, offset).map(|text| data(connector::fetched(document, &text)))
        }
        Answer::Listing(key, name, keys) => Ok(data(listing(body, (key, name), keys))),
    };
    told.and_then(bounded)
        .unwrap_or_else(|error| failure(&error))
}

/// The result of a call that failed, or was refused.
pub(crate) fn failure(error: &Error) -> CallToolResult {
    let mut failed = CallToolResult::error(vec![ContentBlock::text(error.message.clone())]);
    failed.structured_content = Some(json!({"error": error_value(error)}));
    failed
}

fn text(text: String) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// As data, and as the text of the same for those who read texts alone.
pub(crate) fn data(value: Value) -> CallToolResult {
    let mut told = text(value.to_string());
    told.structured_content = Some(value);
    told
}

/// What is larger than a client is sent at once.
fn bounded(result: CallToolResult) -> Result<CallToolResult, Error> {
    let long = |block: &ContentBlock| block.as_text().map_or(0, |text| text.text.len());
    let bytes: usize = result.content.iter().map(long).sum();
    match bytes > MCP_ANSWER {
        false => Ok(result),
        true => {
            let most = human(MCP_ANSWER);
            let why = format!("the answer is larger than {most}: ask for less, by limit");
            Err(Error::new(ErrorCode::TooLarge, why))
        }
    }
}

fn str_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// An answer in words, with what its numbers cite.
fn prose(body: &Body, key: &str) -> String {
    let answer = body.get(key).and_then(Value::as_str).unwrap_or_default();
    let (mut told, rest) = cut(answer);
    if let Some(rest) = rest {
        told.push_str(&format!("\n[{rest} more bytes are left out]"));
    }
    let citations = body.get("citations").and_then(Value::as_array);
    let citations = citations.map_or(&[][..], Vec::as_slice);
    if !citations.is_empty() {
        told.push_str("\n\nSources:");
    }
    for citation in citations {
        let number = citation
            .get("n")
            .and_then(Value::as_i64)
            .unwrap_or_default();
        let mut line = format!("\n[{number}] {}", str_of(citation, "title"));
        if let Some(page) = citation.get("page").and_then(Value::as_i64) {
            line.push_str(&format!(", page {page}"));
        }
        line.push_str(&format!(" ({})", str_of(citation, "chunk")));
        told.push_str(&line);
    }
    told
}

/// As much of a text as is sent, and how many bytes are left.
fn cut(text: &str) -> (String, Option<usize>) {
    let end = floor(text, MCP_TEXT);
    let rest = text.len() - end;
    (text[..end].to_owned(), Some(rest).filter(|rest| *rest > 0))
}

/// The last place between two letters that is not behind this one.
pub(crate) fn floor(text: &str, at: usize) -> usize {
    let mut end = at.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

/// Statements, one a line.
fn triples(list: Option<&Value>) -> String {
    let all = list.and_then(Value::as_array);
    let all = all.map_or(&[][..], Vec::as_slice);
    if all.is_empty() {
        return "No statement fits.".to_owned();
    }
    let line = |value: &Value| {
        let triple = Triple::from_api(value)?;
        let part = |term: &Option<Term>| term.as_ref().map(terms::text);
        let mut line = format!(
            "{} {} {} ",
            part(&triple.s)?,
            part(&triple.p)?,
            part(&triple.o)?
        );
        if let Some(graph) = triple.g.filter(|graph| !graph.is_empty()) {
            line.push_str(&terms::text(&Term::Iri(graph)));
            line.push(' ');
        }
        line.push_str(".\n");
        Some(line)
    };
    all.iter().filter_map(line).collect()
}

/// What a query found.
fn results(body: &Body) -> Result<CallToolResult, Error> {
    Ok(match body.get("query-type").and_then(Value::as_str) {
        Some("ask") => {
            let is = body.get("ask-result") == Some(&Value::Bool(true));
            data(json!({"result": is}))
        }
        Some("construct" | "describe") => text(triples(body.get("triples"))),
        _ => {
            let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned();
            let variables = list(body.get("variables")).unwrap_or_default();
            let rows = list(body.get("bindings")).unwrap_or_default();
            let row = |row: &Value| {
                let values = row.get("values").and_then(Value::as_array);
                let values = values.into_iter().flatten();
                let pairs = variables.iter().zip(values).filter_map(|(name, value)| {
                    let term = Term::from_api(value).filter(|_| value.is_object())?;
                    Some((name.as_str()?.to_owned(), Value::from(terms::text(&term))))
                });
                Value::Object(pairs.collect())
            };
            let rows: Vec<Value> = rows.iter().map(row).collect();
            data(json!({"variables": variables, "rows": rows}))
        }
    })
}

/// The text of a document from a place on.
fn content(body: &Body, offset: usize) -> Result<String, Error> {
    let encoded = body.get("content").and_then(Value::as_str);
    let bytes = STANDARD.decode(encoded.unwrap_or_default());
    let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| {
        let why = "document_id: is not text; list_document_parts names the pages or passages that were made of it";
        Error::new(ErrorCode::BadRequest, why)
    })?;
    let begin = floor(&text, offset);
    let (mut told, rest) = cut(&text[begin..]);
    if let Some(rest) = rest {
        let next = text.len() - rest;
        told.push_str(&format!(
            "\n[cut after {} bytes: go on with offset {next}; {rest} bytes are left]",
            told.len()
        ));
    }
    Ok(told)
}

/// What was put into the library, and what is done with it.
fn added(body: &Body) -> Value {
    let processing = body.get("processing-metadatas").and_then(Value::as_array);
    let processing = processing.and_then(|all| all.first()).cloned();
    let processing = processing.unwrap_or_default();
    json!({
        "document_id": body.get("document-id"),
        "processing_id": processing.get("id"),
        "status": processing.get("status"),
    })
}

fn listing(body: &Body, (key, name): (&str, &str), keys: &[&str]) -> Value {
    let entries = body.get(key).and_then(Value::as_array);
    let entries = entries.map_or(&[][..], Vec::as_slice);
    let entry = |entry: &Value| match entry {
        Value::Object(entry) if !keys.is_empty() => {
            let kept = keys.iter().filter_map(|key| {
                let value = entry.get(*key)?;
                Some((key.replace('-', "_"), value.clone()))
            });
            Value::Object(kept.collect())
        }
        other => other.clone(),
    };
    let entries: Vec<Value> = entries.iter().map(entry).collect();
    let mut told = Body::new();
    told.insert(name.to_owned(), entries.into());
    if let Some(next) = body.get("next") {
        told.insert("next".to_owned(), next.clone());
    }
    Value::Object(told)
}

#[cfg(test)]
mod tests {
    use super::super::tools::find;
    use super::*;

    fn told(tool: &str, body: Value, offset: usize) -> (String, Value) {
        let body = body.as_object().cloned().unwrap();
        let result = result(find(tool).unwrap(), &body, ("d", offset));
        let shown = serde_json::to_value(&result).unwrap();
        let text = shown["content"][0]["text"].as_str().unwrap().to_owned();
        (text, shown)
    }

    #[test]
    fn an_answer_names_what_it_cites() {
        let body = json!({"answer": "It is so [1].", "citations": [
            {"n": 1, "title": "D", "page": 3, "chunk": "urn:c"}, {"n": 2, "title": "E", "page": null, "chunk": "urn:e"}]});
        let (text, shown) = told("ask_agent", body, 0);
        assert_eq!(
            text,
            "It is so [1].\n\nSources:\n[1] D, page 3 (urn:c)\n[2] E (urn:e)"
        );
        assert_eq!(shown["isError"], false);
    }

    #[test]
    fn statements_and_results_are_written_as_the_standard_writes_terms() {
        let body = json!({"response": [
            {"s": {"t": "i", "i": "urn:s"}, "p": {"t": "i", "i": "urn:p"}, "o": {"t": "l", "v": "a\n\"b\"", "ln": "en"}},
            {"s": {"t": "i", "i": "urn:s"}, "p": {"t": "i", "i": "urn:p"}, "o": {"t": "i", "i": "urn:o"}, "g": "urn:g"}]});
        let (text, _) = told("query_triples", body, 0);
        assert_eq!(
            text,
            "<urn:s> <urn:p> \"a\\n\\\"b\\\"\"@en .\n<urn:s> <urn:p> <urn:o> <urn:g> .\n"
        );
        let (text, _) = told("query_triples", json!({"response": []}), 0);
        assert_eq!(text, "No statement fits.");
        let select = json!({"query-type": "select", "variables": ["a", "b"],
            "bindings": [{"values": [{"t": "i", "i": "urn:x"}, null]}]});
        let (_, shown) = told("sparql_query", select, 0);
        assert_eq!(
            shown["structuredContent"],
            json!({"variables": ["a", "b"], "rows": [{"a": "<urn:x>"}]})
        );
        let (text, _) = told(
            "sparql_query",
            json!({"query-type": "ask", "ask-result": true}),
            0,
        );
        assert_eq!(text, "{\"result\":true}");
    }

    #[test]
    fn a_long_text_is_cut_between_letters_and_says_where_to_go_on() {
        let whole = "ä".repeat(MCP_TEXT / 2 + 10);
        let body = json!({"content": STANDARD.encode(&whole)});
        let (first, _) = told("get_document", body.clone(), 0);
        let (text, note) = first.split_once("\n[cut after ").unwrap();
        assert_eq!(text.len(), MCP_TEXT);
        assert!(
            note.contains(&format!("offset {MCP_TEXT}; 20 bytes are left")),
            "{note}"
        );
        let (second, _) = told("get_document", body.clone(), MCP_TEXT);
        assert_eq!(format!("{text}{second}"), whole);
        assert_eq!(told("get_document", body, usize::MAX).0, "");
        let (text, shown) = told("get_document", json!({"content": "/w=="}), 0);
        assert_eq!(shown["isError"], true);
        assert!(text.contains("is not text"), "{text}");
    }

    #[test]
    fn listings_hold_what_tells_entries_apart() {
        let body = json!({"document-metadatas": [{"id": "d", "title": "T", "metadata": [1], "parent-id": "p"}],
            "processing-metadatas": [], "next": "n"});
        let (_, shown) = told("list_documents", body, 0);
        assert_eq!(
            shown["structuredContent"],
            json!({"documents": [{"id": "d", "title": "T", "parent_id": "p"}], "next": "n"})
        );
        let (text, _) = told("list_flows", json!({"flow-ids": ["default"]}), 0);
        assert_eq!(text, "{\"flows\":[\"default\"]}");
        let body =
            json!({"result": {"agents": [{"name": "maven", "model": "m", "description": "d"}]}});
        let (_, shown) = told("list_agents", body, 0);
        assert_eq!(
            shown["structuredContent"],
            json!({"agents": [{"name": "maven", "description": "d"}]})
        );
        let (text, _) = told("chat_with_agent", json!({"result": {"content": "hi"}}), 0);
        assert_eq!(text, "hi");
    }

    #[test]
    fn what_is_fetched_has_its_id_and_its_address() {
        let body = json!({"content": STANDARD.encode("# Skagen\nIt is grey.")});
        let (text, shown) = told("fetch", body, 0);
        let whole = json!({"id": "d", "title": "Skagen", "text": "# Skagen\nIt is grey.",
            "url": "threadgraph://document/d"});
        assert_eq!(shown["structuredContent"], whole);
        assert_eq!(text, whole.to_string());
        let (_, shown) = told("search", json!({"chunks": [{"chunk_id": "c"}]}), 0);
        assert_eq!(shown["structuredContent"]["results"][0]["id"], "c");
    }

    #[test]
    fn failures_and_what_is_too_large_are_results_that_say_so() {
        let body = json!({"answer": "", "error": {"type": "busy", "message": "later"}});
        let (text, shown) = told("ask_agent", body, 0);
        assert_eq!((text.as_str(), &shown["isError"]), ("later", &json!(true)));
        assert_eq!(shown["structuredContent"]["error"]["type"], "busy");
        let large = json!({"flow-ids": ["x".repeat(MCP_ANSWER)]});
        let (text, shown) = told("list_flows", large, 0);
        assert_eq!(shown["isError"], true);
        assert!(text.starts_with("the answer is larger than"), "{text}");
    }
}
