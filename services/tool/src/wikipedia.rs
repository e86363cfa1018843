//! Searches Wikipedia, or what speaks as it does at another address, and gives the summary of a page. Text of others: it decides nothing.

use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tg_provider_http::{HttpClient, HttpError, Limits, Reach};
use tg_schemas::limits;
use tokio::sync::OnceCell;

use crate::error::ToolError;
use crate::options::Options;

/// Reserved name of the search; arguments `query` and `limit`.
pub(crate) const SEARCH: &str = "builtin:wikipedia_search";
/// Reserved name of the summary; argument `title`.
pub(crate) const SUMMARY: &str = "builtin:wikipedia_summary";

/// Pages that are found, usually and at most.
const FOUND: (u64, u64) = (5, 20);
/// Longest query or title in bytes.
const ASKED: usize = 1_000;
/// What servers are told of who asks.
const AGENT: &str = concat!("threadgraph/", env!("CARGO_PKG_VERSION"));

#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    pages: Vec<Page>,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    excerpt: Option<String>,
}

#[derive(Deserialize)]
struct Summary {
    #[serde(default)]
    title: String,
    #[serde(default)]
    extract: String,
    #[serde(default)]
    content_urls: Option<Value>,
}

/// The server that is asked.
pub(crate) struct Wikipedia {
    url: String,
    /// Which addresses it may have.
    reach: Reach,
    /// Made when the first call needs it.
    http: OnceCell<HttpClient>,
}

impl Wikipedia {
    /// Opens no connection.
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            url: options.wikipedia_url.clone(),
            reach: options.reach(),
            http: OnceCell::new(),
        }
    }

    /// Runs one of the two tools; `None` if the name is neither.
    pub(crate) async fn call(
        &self,
        name: &str,
        parameters: &Map<String, Value>,
    ) -> Option<Result<String, ToolError>> {
        match name {
            SEARCH => Some(search(self, parameters).await),
            SUMMARY => Some(summary(self, parameters).await),
            _ => None,
        }
    }

    async fn get<T: DeserializeOwned>(&self, url: Url) -> Result<T, ToolError> {
        let within = self.reach.check(url.as_str());
        within.map_err(|_| ToolError::denied(self.reach))?;
        let http = self.http().await?;
        let request = http.get(url.as_str()).header("user-agent", AGENT);
        http.json(request).await.map_err(|error| match error {
            HttpError::Refused(refusal) if refusal.status == 404 => ToolError::NotThere,
            HttpError::Timeout => ToolError::ServerTimeout,
            _ => ToolError::Unreachable,
        })
    }

    /// Reading the machine's certificates blocks.
    async fn http(&self) -> Result<&HttpClient, ToolError> {
        let limits = Limits {
            answer: limits::TOOL_RESULT,
            reach: self.reach,
            ..Limits::default()
        };
        let url = self.url.clone();
        let made = self.http.get_or_try_init(|| async {
            let making = tokio::task::spawn_blocking(move || HttpClient::new(&url, limits)).await;
            making.ok().and_then(Result::ok).ok_or(ToolError::NoClient)
        });
        made.await
    }
}

async fn search(server: &Wikipedia, parameters: &Map<String, Value>) -> Result<String, ToolError> {
    let query = text(parameters, "query")?;
    let limit = parameters.get("limit").and_then(Value::as_u64);
    let limit = limit.unwrap_or(FOUND.0).clamp(1, FOUND.1);
    let mut url = address(&server.url, &["w", "rest.php", "v1", "search", "page"])?;
    url.query_pairs_mut()
        .append_pair("q", query)
        .append_pair("limit", &limit.to_string());
    Ok(listed(query, &server.get(url).await?))
}

/// What was found, a line each.
fn listed(query: &str, found: &Found) -> String {
    let lines = found.pages.iter().take(FOUND.1 as usize).map(|page| {
        let told = [page.description.as_deref(), page.excerpt.as_deref()];
        let told = told.into_iter().flatten().map(plain);
        let told: Vec<String> = told.filter(|text| !text.is_empty()).collect();
        format!("* {}: {}", page.title, told.join(" - "))
    });
    let lines: Vec<String> = lines.collect();
    match lines.is_empty() {
        true => format!("no page was found for '{query}'"),
        false => lines.join("\n"),
    }
}

async fn summary(server: &Wikipedia, parameters: &Map<String, Value>) -> Result<String, ToolError> {
    let title = text(parameters, "title")?;
    let named = title.replace(' ', "_");
    let url = address(&server.url, &["api", "rest_v1", "page", "summary", &named])?;
    let page: Summary = match server.get(url).await {
        Err(ToolError::NotThere) => {
            return Err(ToolError::Said(format!("there is no page '{title}'")));
        }
        page => page?,
    };
    Ok(told(&page))
}

/// A page with where it is from.
fn told(page: &Summary) -> String {
    let whole = page.content_urls.as_ref();
    let whole = whole.and_then(|urls| urls["desktop"]["page"].as_str());
    let source = whole.map_or_else(String::new, |url| format!("\n\nSource: {url}"));
    format!("{}\n\n{}{source}", page.title, page.extract)
}

fn text<'a>(parameters: &'a Map<String, Value>, name: &str) -> Result<&'a str, ToolError> {
    let given = parameters.get(name).and_then(Value::as_str);
    match given.map(str::trim) {
        Some(text) if !text.is_empty() && text.len() <= ASKED => Ok(text),
        Some(text) if !text.is_empty() => {
            Err(ToolError::Said(format!("argument '{name}' is too long")))
        }
        _ => Err(ToolError::Said(format!("argument '{name}' is required"))),
    }
}

/// An address under the base, whatever is in its parts.
fn address(base: &str, parts: &[&str]) -> Result<Url, ToolError> {
    let mut url = Url::parse(base).map_err(|_| ToolError::Unreachable)?;
    url.path_segments_mut()
        .map_err(|()| ToolError::Unreachable)?
        .pop_if_empty()
        .extend(parts);
    Ok(url)
}

/// A text without the marks of what was found in it.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => inside = false,
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out.replace("&quot;", "\"")
        .replace("&amp;", "&")
        .trim()
        .to_owned()
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_stays_in_its_place() {
        let parts = ["api", "rest_v1", "page", "summary", "../../x?y#z/ä"];
        let url = address("http://w.example/base/", &parts).unwrap();
        assert_eq!(
            url.as_str(),
            "http://w.example/base/api/rest_v1/page/summary/..%2F..%2Fx%3Fy%23z%2F%C3%A4"
        );
        assert_eq!(plain("a <span class=\"m\">b</span> &amp; c"), "a b & c");
    }
}
