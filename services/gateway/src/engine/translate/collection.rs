//! `collection-management`: the collections of a workspace.

use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{CollectionManagementRequest, CollectionManagementResponse, Reembedding};

use super::fields::{Body, Fields, Reply};
use super::{About, Translate};

/// The `collection-management` service.
pub struct Collection;

impl Translate for Collection {
    type Question = CollectionManagementRequest;
    type Answer = CollectionManagementResponse;

    fn question(body: &Fields<'_>, about: &About) -> Result<Self::Question, Error> {
        Ok(CollectionManagementRequest {
            operation: about.operation.clone(),
            collection: body.text("collection")?,
            timestamp: body.text("timestamp")?,
            name: body.text("name")?,
            description: body.text("description")?,
            tags: body.texts("tags")?,
            tag_filter: body.texts("tag_filter")?,
            limit: body.integer_or("limit", 0)?,
            after: body.text("after")?,
            flow: body.text("flow")?,
            leave_out: body.flag("leave-out")?,
        })
    }

    fn part(part: Self::Answer, _about: &About) -> Body {
        let collections: Vec<Value> = part
            .collections
            .into_iter()
            .map(|one| {
                json!({"collection": one.collection, "name": one.name,
                       "description": one.description, "tags": one.tags})
            })
            .collect();
        Reply::new()
            .put_truthy("timestamp", part.timestamp)
            .put("collections", collections)
            .put_truthy("next", part.next)
            .put_some("reembedding", part.reembedding.map(reembedding))
            .done()
    }
}

fn reembedding(of: Reembedding) -> Value {
    json!({"state": of.state, "model": of.model, "serving": of.serving, "done": of.done, "total": of.total,
           "textless": of.textless, "refused": of.refused, "refusal": of.refusal, "reason": of.reason})
}

#[cfg(test)]
mod tests {
    use super::super::testing::{part, question};
    use super::*;
    use tg_schemas::msg::CollectionMetadata;

    #[test]
    fn collections_are_always_listed() {
        assert_eq!(
            part::<Collection>(CollectionManagementResponse::default(), ""),
            json!({"collections": []})
        );
        let reply = CollectionManagementResponse {
            collections: vec![CollectionMetadata {
                collection: "c".into(),
                ..CollectionMetadata::default()
            }],
            ..CollectionManagementResponse::default()
        };
        assert_eq!(
            part::<Collection>(reply, "")["collections"][0],
            json!({"collection": "c", "name": "", "description": "", "tags": []})
        );
    }

    #[test]
    fn pages_are_asked_for_and_told() {
        let page = json!({"limit": 7, "after": "x"});
        let page = question::<Collection>(page, "list-collections").unwrap();
        assert_eq!((page.limit, page.after.as_str()), (7, "x"));
        let reply = CollectionManagementResponse {
            next: "y".into(),
            ..CollectionManagementResponse::default()
        };
        let shown = part::<Collection>(reply, "list-collections");
        assert_eq!(shown, json!({"collections": [], "next": "y"}));
    }

    #[test]
    fn how_far_vectors_are_made_again_is_told() {
        let ask = json!({"collection": "c", "flow": "f", "leave-out": true});
        let ask = question::<Collection>(ask, "reembed-collection").unwrap();
        assert_eq!((ask.flow.as_str(), ask.leave_out), ("f", true));
        let reply = CollectionManagementResponse {
            reembedding: Some(Reembedding {
                state: "running".into(),
                done: 3,
                ..Reembedding::default()
            }),
            ..CollectionManagementResponse::default()
        };
        let shown = part::<Collection>(reply, "show-reembedding");
        assert_eq!(shown["reembedding"]["state"], "running");
        assert_eq!(shown["reembedding"]["done"], 3);
    }

    #[test]
    fn tag_filter_is_snake_case() {
        let list =
            question::<Collection>(json!({"tag_filter": ["a"]}), "list-collections").unwrap();
        assert_eq!(list.tag_filter, ["a"]);
    }
}
