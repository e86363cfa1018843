//! The collection service: which collections of a workspace there are, and making one.

use tg_mesh::Cx;
use tg_schemas::msg::{
    CollectionManagementRequest, CollectionManagementResponse, CollectionMetadata,
};
use tg_schemas::processors::librarian::COLLECTION;
use tg_schemas::{Error, WorkspaceId};

use crate::caller::{Caller, goes_on};

/// Asks about the collections of one workspace.
#[derive(Clone)]
pub struct Collections {
    caller: Caller<CollectionManagementRequest, CollectionManagementResponse>,
}

impl Collections {
    /// As part of the work on a message.
    pub fn within(cx: &Cx, workspace: &WorkspaceId) -> Self {
        Self {
            caller: Caller::within(cx, Ok(COLLECTION.of_workspace(workspace))),
        }
    }

    /// All of them.
    ///
    /// # Errors
    /// How a question failed; one is asked for each page.
    pub async fn list(&self) -> Result<Vec<CollectionMetadata>, Error> {
        let mut all = Vec::new();
        let mut request = CollectionManagementRequest {
            limit: self.caller.page(),
            ..about("list-collections")
        };
        loop {
            let page = self.caller.last(&request).await?;
            all.extend(page.collections);
            if !goes_on(&mut request.after, page.next) {
                return Ok(all);
            }
        }
    }

    /// Makes a collection of which nothing is said but its id; one that is there is left alone.
    ///
    /// # Errors
    /// How a question failed.
    pub async fn ensure(&self, id: &str) -> Result<(), Error> {
        let known = self.list().await?;
        if known.iter().any(|one| one.collection == id) {
            return Ok(());
        }
        let request = CollectionManagementRequest {
            collection: id.to_owned(),
            ..about("update-collection")
        };
        self.caller.last(&request).await.map(drop)
    }
}

fn about(operation: &str) -> CollectionManagementRequest {
    CollectionManagementRequest {
        operation: operation.to_owned(),
        ..CollectionManagementRequest::default()
    }
}
