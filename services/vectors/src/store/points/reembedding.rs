//! Changes to another model, as callers of this store have them.

use async_trait::async_trait;

use super::{Job, SqlitePoints, changing, left, reembed};
use crate::error::VectorError;
use crate::store::reembed::{Batch, Begin, Made, Progress, ReembedStore, Task};
use tg_collections::CollectionKey;

#[async_trait]
impl ReembedStore for SqlitePoints {
    async fn begin(&self, begin: Begin) -> Result<(), VectorError> {
        self.change(Job::Begin(begin)).await.map(drop)
    }

    async fn progress(&self, key: &CollectionKey) -> Result<Option<Progress>, VectorError> {
        let key = key.clone();
        Ok(self
            .db
            .read(move |conn| reembed::progress(conn, &key))
            .await?)
    }

    async fn serving(&self, key: &CollectionKey) -> Result<Vec<String>, VectorError> {
        let key = key.clone();
        Ok(self
            .db
            .read(move |conn| reembed::serving(conn, &key))
            .await?)
    }

    async fn tasks(&self, after: i64, most: u32) -> Result<Vec<Task>, VectorError> {
        Ok(self
            .db
            .read(move |conn| changing::tasks(conn, after, most))
            .await?)
    }

    async fn batch(&self, task: &Task) -> Result<Option<Batch>, VectorError> {
        let task = task.clone();
        Ok(self
            .db
            .read(move |conn| reembed::batch(conn, &task))
            .await?)
    }

    async fn stage(&self, made: Made) -> Result<bool, VectorError> {
        let staged = self.change(Job::Stage(made)).await?;
        Ok(staged.is_some())
    }

    async fn switch(&self, task: &Task) -> Result<bool, VectorError> {
        let of = task.clone();
        let counted = self.db.read(move |conn| match left::still(conn, &of)? {
            // Nothing has changed since it was found to wait.
            true => Ok(None),
            false => left::count(conn, &of, usize::MAX),
        });
        let Some(left) = counted.await? else {
            return Ok(false);
        };
        let switched = self.change(Job::Switch(task.clone(), Some(left))).await?;
        Ok(switched.is_some())
    }

    async fn abandon(&self, key: &CollectionKey) -> Result<bool, VectorError> {
        let given_up = self.change(Job::Abandon(key.clone())).await?;
        Ok(given_up.is_some_and(|count| count > 0))
    }
}
