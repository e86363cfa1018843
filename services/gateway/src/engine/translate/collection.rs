//! `collection-management`: the collections of a workspace.

use serde_json::{Value, json};
use tg_schemas::Error;
use tg_schemas::msg::{CollectionManagementRequest, CollectionManagementResponse};

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
            .done()
    }
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
    fn tag_filter_is_snake_case() {
        let list =
            question::<Collection>(json!({"tag_filter": ["a"]}), "list-collections").unwrap();
        assert_eq!(list.tag_filter, ["a"]);
    }
}
