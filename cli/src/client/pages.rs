//! Listings, page by page: whoever lists something sees all of it, however much there is. A gateway that knows no pages
//! answers with everything at once.

use serde_json::{Map, Value, json};
use tg_schemas::limits;

use super::error::{Error, Result};
use super::http::Http;
use super::socket::{Call, Socket};
use crate::fields::{embedded, text};

/// A configuration that changes while it is read is begun anew so often.
const BEGUN: usize = 4;

impl Http {
    /// The whole answer to a listing, asked of a service as [`Http::service`] does.
    ///
    /// # Errors
    /// How a question failed; one is asked for each page.
    pub async fn all(&self, service: &str, request: Value) -> Result<Value> {
        let ask = async |page: Value| self.service(service, page).await;
        pages(request, ask).await
    }

    /// The whole answer to a listing, asked as [`Http::iam`] does.
    ///
    /// # Errors
    /// As [`Http::all`].
    pub async fn all_iam(&self, request: Value) -> Result<Value> {
        pages(request, async |page: Value| self.iam(page).await).await
    }

    /// The same of a listing that is JSON text in the answer, under a key.
    ///
    /// # Errors
    /// As [`Http::all`], and where that is no JSON.
    pub async fn all_iam_text(&self, request: Value, key: &str) -> Result<Value> {
        let ask = async |page: Value| {
            let reply = self.iam(page).await?;
            let mut listing = embedded(&reply, key);
            let fields = listing.as_object_mut();
            let fields = fields.ok_or_else(|| Error::Protocol(format!("no {key}")))?;
            if let Some(next) = reply.get("next") {
                fields.insert("next".to_owned(), next.clone());
            }
            Ok(listing)
        };
        pages(request, ask).await
    }
}

impl Socket {
    /// The whole answer to a listing of a service of the workspace or the system.
    ///
    /// # Errors
    /// As [`Http::all`].
    pub async fn all(&mut self, service: &'static str, request: Value) -> Result<Value> {
        let ask = async |page: Value| self.ask(&Call::global(service, page)).await;
        pages(request, ask).await
    }
}

async fn pages(
    mut request: Value,
    mut ask: impl AsyncFnMut(Value) -> Result<Value>,
) -> Result<Value> {
    request["limit"] = json!(limits::PAGE_MOST);
    let mut begun = 0;
    'anew: loop {
        begun += 1;
        request["after"] = json!("");
        let mut whole = Map::new();
        loop {
            let page = ask(request.clone()).await?;
            let changed = whole
                .get("version")
                .is_some_and(|version| *version != page["version"]);
            if changed && begun < BEGUN {
                continue 'anew;
            }
            let next = text(&page, "next");
            if let Value::Object(page) = page {
                join(&mut whole, page);
            }
            if next.is_empty() || request["after"] == next {
                whole.remove("next");
                return Ok(Value::Object(whole));
            }
            request["after"] = json!(next);
        }
    }
}

/// Adds a page to those before it: lists follow one another, objects hold what either holds.
fn join(whole: &mut Map<String, Value>, page: Map<String, Value>) {
    for (key, value) in page {
        match (whole.get_mut(&key), value) {
            (Some(Value::Array(before)), Value::Array(more)) => before.extend(more),
            (Some(Value::Object(before)), Value::Object(more)) => join(before, more),
            (_, value) => {
                whole.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn walk(answers: Vec<Value>) -> (Value, Vec<Value>) {
        let (mut answers, mut asked) = (answers.into_iter(), Vec::new());
        let request = json!({"operation": "config"});
        let ask = async |page: Value| {
            asked.push(page["after"].clone());
            Ok(answers.next().unwrap_or_default())
        };
        (pages(request, ask).await.expect("an answer"), asked)
    }

    #[tokio::test]
    async fn pages_join_to_what_one_answer_would_have_been() {
        let (whole, asked) = walk(vec![
            json!({"version": 3, "config": {"a": {"x": "1"}}, "directory": ["k"], "next": "n"}),
            json!({"version": 3, "config": {"a": {"y": "2"}, "b": {"z": "3"}}, "directory": ["l"]}),
        ])
        .await;
        let config = json!({"a": {"x": "1", "y": "2"}, "b": {"z": "3"}});
        let joined = json!({"version": 3, "config": config, "directory": ["k", "l"]});
        assert_eq!((whole, asked), (joined, vec![json!(""), json!("n")]));
    }

    #[tokio::test]
    async fn a_gateway_without_pages_is_asked_once() {
        let (whole, asked) = walk(vec![json!({"ids": ["a"]})]).await;
        assert_eq!((whole, asked.len()), (json!({"ids": ["a"]}), 1));
        // One that answers the same again is not asked for ever.
        let same = json!({"ids": ["a"], "next": "n"});
        let (_, asked) = walk(vec![same; 9]).await;
        assert_eq!(asked.len(), 2);
    }

    #[tokio::test]
    async fn a_listing_that_changes_is_begun_anew() {
        let page = |version: i64, next: &str| json!({"version": version, "directory": [version], "next": next});
        let (whole, asked) = walk(vec![page(1, "n"), page(2, ""), page(2, "m"), page(2, "")]).await;
        assert_eq!(whole["directory"], json!([2, 2]));
        assert_eq!(asked, [json!(""), json!("n"), json!(""), json!("m")]);
    }
}
