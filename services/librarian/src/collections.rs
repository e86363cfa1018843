//! Collections of a workspace: rows of config type `collection`, as other processes read them. The
//! stores forget a collection when they see its row vanish.

use async_trait::async_trait;
use serde::Deserialize;
use tg_mesh::{Cx, Out, Serve};
use tg_schemas::msg::{
    CollectionManagementRequest, CollectionManagementResponse, CollectionMetadata, ConfigKey,
    ConfigRequest, ConfigResponse, ConfigValue,
};
use tg_schemas::{Class, Error, ErrorCode, Topic};

use crate::fault::invalid;

const KIND: &str = "collection";

pub(crate) struct Collections;

#[async_trait]
impl Serve<CollectionManagementRequest, CollectionManagementResponse> for Collections {
    async fn serve(
        &self,
        cx: Cx,
        ask: CollectionManagementRequest,
        mut out: Out<CollectionManagementResponse>,
    ) -> Result<(), Error> {
        let collections = match ask.operation.as_str() {
            "list-collections" => list(&cx, &ask).await?,
            "update-collection" => vec![update(&cx, ask).await?],
            "delete-collection" => delete(&cx, ask).await?,
            _ => return Err(invalid("operation: is not known to the collection service")),
        };
        let now = chrono::Local::now().naive_local();
        out.send(CollectionManagementResponse {
            error: None,
            timestamp: now.format("%Y-%m-%dT%H:%M:%S%.6f").to_string(),
            collections,
        })
        .await
    }
}

async fn list(
    cx: &Cx,
    ask: &CollectionManagementRequest,
) -> Result<Vec<CollectionMetadata>, Error> {
    let request = ConfigRequest {
        operation: "getvalues".to_owned(),
        r#type: KIND.to_owned(),
        ..ConfigRequest::default()
    };
    let rows = config(cx, &request).await?.values;
    let all = rows.iter().map(|row| from_row(&row.key, &row.value));
    Ok(select(all, &ask.tag_filter, ask.limit))
}

async fn update(cx: &Cx, ask: CollectionManagementRequest) -> Result<CollectionMetadata, Error> {
    let collection = CollectionMetadata {
        name: match ask.name.as_str() {
            "" => ask.collection.clone(),
            _ => ask.name,
        },
        collection: named(ask.collection)?,
        description: ask.description,
        tags: ask.tags,
    };
    let value = serde_json::to_string(&collection)
        .map_err(|error| Error::new(ErrorCode::Internal, error.to_string()))?;
    let request = ConfigRequest {
        operation: "put".to_owned(),
        values: vec![ConfigValue {
            r#type: KIND.to_owned(),
            key: collection.collection.clone(),
            value,
            ..ConfigValue::default()
        }],
        ..ConfigRequest::default()
    };
    config(cx, &request).await?;
    Ok(collection)
}

async fn delete(
    cx: &Cx,
    ask: CollectionManagementRequest,
) -> Result<Vec<CollectionMetadata>, Error> {
    let request = ConfigRequest {
        operation: "delete".to_owned(),
        keys: vec![ConfigKey {
            r#type: KIND.to_owned(),
            key: named(ask.collection)?,
        }],
        ..ConfigRequest::default()
    };
    config(cx, &request).await?;
    Ok(Vec::new())
}

async fn config(cx: &Cx, request: &ConfigRequest) -> Result<ConfigResponse, Error> {
    let workspace = cx.scope.workspace.as_ref();
    let workspace = workspace.ok_or_else(|| invalid("workspace: is required"))?;
    let topic = Topic::workspace(Class::Request, "config", workspace);
    cx.ask_topic(&topic, request).last().await
}

fn named(collection: String) -> Result<String, Error> {
    match collection.as_str() {
        "" => Err(invalid("collection: is required")),
        _ => Ok(collection),
    }
}

/// A row may have been written by hand: what cannot be read is shown by its key.
fn from_row(key: &str, value: &str) -> CollectionMetadata {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Value {
        name: String,
        description: String,
        tags: Vec<String>,
    }
    let value: Value = serde_json::from_str(value).unwrap_or_default();
    CollectionMetadata {
        collection: key.to_owned(),
        name: match value.name.as_str() {
            "" => key.to_owned(),
            _ => value.name,
        },
        description: value.description,
        tags: value.tags,
    }
}

/// Those with any of the tags, up to a limit; no tags and no limit mean all.
fn select(
    all: impl Iterator<Item = CollectionMetadata>,
    tags: &[String],
    limit: i64,
) -> Vec<CollectionMetadata> {
    let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
    all.filter(|one| tags.is_empty() || one.tags.iter().any(|tag| tags.contains(tag)))
        .take(limit.unwrap_or(usize::MAX))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_leniently_and_selected_by_tag() {
        let rows = [
            from_row("a", r#"{"collection":"a","name":"A","tags":["x","y"]}"#),
            from_row("b", "not json"),
            from_row("c", ""),
        ];
        assert_eq!((rows[0].name.as_str(), rows[1].name.as_str()), ("A", "b"));
        let names = |tags: &[&str], limit| -> Vec<String> {
            let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            let found = select(rows.iter().cloned(), &tags, limit);
            found.into_iter().map(|one| one.collection).collect()
        };
        assert_eq!(names(&[], 0), ["a", "b", "c"]);
        assert_eq!(names(&[], 2), ["a", "b"]);
        assert_eq!(names(&["y", "z"], 0), ["a"]);
    }
}
