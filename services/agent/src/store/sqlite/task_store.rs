//! The ledger as it keeps tasks: its transactions.

use async_trait::async_trait;
use tg_storage::StorageError;

use super::{SqliteLedger, tasks};
use crate::store::IsOver;
use crate::store::tasks::{Opened, TaskEnd, TaskRow, TaskStore, TasksOf};

#[async_trait]
impl TaskStore for SqliteLedger {
    async fn open_task(
        &self,
        task: &TaskRow,
        owner: &str,
        is_over: &IsOver,
    ) -> Result<Opened, StorageError> {
        let (task, owner, is_over) = (task.clone(), owner.to_owned(), is_over.clone());
        let write = self
            .db
            .write(move |tx| tasks::open(tx, &task, &owner, &is_over));
        write.await
    }

    async fn start_task(
        &self,
        workspace: &str,
        id: &str,
        run: &str,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let (workspace, id, run) = (workspace.to_owned(), id.to_owned(), run.to_owned());
        let write = self
            .db
            .write(move |tx| tasks::start(tx, (&workspace, &id), &run, now_ms));
        write.await
    }

    async fn end_task(
        &self,
        workspace: &str,
        id: &str,
        as_said: &TaskEnd,
        now_ms: i64,
    ) -> Result<bool, StorageError> {
        let (workspace, id, as_said) = (workspace.to_owned(), id.to_owned(), as_said.clone());
        let write = self
            .db
            .write(move |tx| tasks::end(tx, (&workspace, &id), &as_said, now_ms));
        write.await
    }

    async fn tasks(
        &self,
        of: &TasksOf,
        owner: &str,
        (after, most): (&str, usize),
        now_ms: i64,
    ) -> Result<Vec<TaskRow>, StorageError> {
        let (of, owner, after) = (of.clone(), owner.to_owned(), after.to_owned());
        let write = self.db.write(move |tx| {
            tasks::interrupt(tx, &owner, now_ms)?;
            tasks::list(tx, &of, &after, most)
        });
        write.await
    }

    async fn prune_tasks(&self, owner: &str, now_ms: i64) -> Result<(), StorageError> {
        let owner = owner.to_owned();
        let write = self.db.write(move |tx| {
            tasks::interrupt(tx, &owner, now_ms)?;
            tasks::prune(tx, now_ms)
        });
        write.await
    }
}
