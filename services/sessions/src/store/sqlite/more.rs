//! The other traits of the store over the same files.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tg_storage::StorageError;

use super::{SqliteSessions, message, room, session, setting, summary};
use crate::store::{
    Began, FactStore, LineageStore, MemoryRow, Message, NewSession, Session, SettingStore,
    Shortening, SummaryRow, Unsearched,
};

#[async_trait]
impl LineageStore for SqliteSessions {
    async fn shorten(
        &self,
        workspace: &str,
        new: Shortening,
    ) -> Result<Option<Session>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let quota = self.quota;
        file.write(move |tx| summary::shorten(tx, &new, &quota))
            .await
    }

    async fn has_room(&self, workspace: &str) -> Result<(), StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(());
        };
        let quota = self.quota;
        file.read(move |conn| room::check(conn, &quota, 1, room::row(&[])))
            .await
    }

    async fn restore(
        &self,
        workspace: &str,
        id: &str,
        request: &str,
    ) -> Result<Option<Session>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let (id, request) = (id.to_owned(), request.to_owned());
        file.write(move |tx| summary::restore(tx, &id, &request))
            .await
    }

    async fn summed_up(&self, workspace: &str, new: SummaryRow) -> Result<bool, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(false);
        };
        file.write(move |tx| summary::add(tx, &new)).await
    }

    async fn summaries(
        &self,
        workspace: &str,
        session: &str,
    ) -> Result<Vec<SummaryRow>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(Vec::new());
        };
        let session = session.to_owned();
        file.read(move |conn| summary::list(conn, &session)).await
    }

    async fn newest_in_place(
        &self,
        workspace: &str,
        session: &str,
    ) -> Result<Option<SummaryRow>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let session = session.to_owned();
        file.read_short(move |conn| summary::newest_in_place(conn, &session))
            .await
    }

    async fn in_place(
        &self,
        workspace: &str,
        session: &str,
        after: i64,
        most: usize,
    ) -> Result<Vec<SummaryRow>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(Vec::new());
        };
        let session = session.to_owned();
        file.read(move |conn| summary::in_place(conn, &session, after, most))
            .await
    }

    async fn one_in_place(
        &self,
        workspace: &str,
        session: &str,
        id: &str,
    ) -> Result<Option<SummaryRow>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let (session, id) = (session.to_owned(), id.to_owned());
        file.read(move |conn| summary::one_in_place(conn, &session, &id))
            .await
    }

    async fn take_back(
        &self,
        workspace: &str,
        session: &str,
        request: &str,
    ) -> Result<bool, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(false);
        };
        let (session, request) = (session.to_owned(), request.to_owned());
        file.write(move |tx| summary::take_back(tx, &session, &request))
            .await
    }

    async fn begun(
        &self,
        workspace: &str,
        session: &str,
        request: &str,
    ) -> Result<Option<Began>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let (session, request) = (session.to_owned(), request.to_owned());
        file.read_short(move |conn| message::begun(conn, &session, &request))
            .await
    }

    async fn last_asked(
        &self,
        workspace: &str,
        session: &str,
    ) -> Result<Option<String>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(None);
        };
        let session = session.to_owned();
        file.read(move |conn| message::last_asked(conn, &session))
            .await
    }

    async fn import(
        &self,
        workspace: &str,
        new: NewSession,
        messages: Vec<Message>,
    ) -> Result<Session, StorageError> {
        let file = self.files.create(workspace).await?;
        let quota = self.quota;
        file.write(move |tx| summary::import(tx, &new, &messages, &quota))
            .await
    }
}

#[async_trait]
impl SettingStore for SqliteSessions {
    async fn settings(&self, workspace: &str) -> Result<BTreeMap<String, String>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(BTreeMap::new());
        };
        file.read_short(setting::all).await
    }

    async fn settings_and_session(
        &self,
        workspace: &str,
        id: &str,
    ) -> Result<(BTreeMap<String, String>, Option<Session>), StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok((BTreeMap::new(), None));
        };
        let id = id.to_owned();
        file.read_short(move |conn| Ok((setting::all(conn)?, session::get(conn, &id)?)))
            .await
    }

    async fn set(
        &self,
        workspace: &str,
        changes: BTreeMap<String, Option<String>>,
        at: i64,
    ) -> Result<(), StorageError> {
        let file = self.files.create(workspace).await?;
        file.write(move |tx| setting::set(tx, &changes, at)).await
    }
}

#[async_trait]
impl FactStore for SqliteSessions {
    async fn unsearched(
        &self,
        workspace: &str,
        session: &str,
        most: usize,
    ) -> Result<Vec<Unsearched>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(Vec::new());
        };
        let session = session.to_owned();
        file.read(move |conn| setting::unsearched(conn, &session, most))
            .await
    }

    async fn search_failed(
        &self,
        workspace: &str,
        (session, seq): (&str, i64),
        most: i64,
    ) -> Result<(), StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(());
        };
        let session = session.to_owned();
        file.write(move |tx| setting::search_failed(tx, (&session, seq), most))
            .await
    }

    async fn remember(
        &self,
        workspace: &str,
        (session, seq): (&str, i64),
        facts: Vec<MemoryRow>,
        most: usize,
    ) -> Result<(), StorageError> {
        // A workspace that was purged meanwhile gets no file again.
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(());
        };
        let session = session.to_owned();
        file.write(move |tx| setting::remember(tx, (&session, seq), &facts, most))
            .await
    }

    async fn memories(
        &self,
        workspace: &str,
        user: &str,
        after: i64,
        most: usize,
    ) -> Result<Vec<MemoryRow>, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(Vec::new());
        };
        let user = user.to_owned();
        file.read(move |conn| setting::memories(conn, &user, after, most))
            .await
    }

    async fn forget(
        &self,
        workspace: &str,
        user: &str,
        id: &str,
        request: &str,
    ) -> Result<bool, StorageError> {
        let Some(file) = self.files.find(workspace).await? else {
            return Ok(false);
        };
        let [user, id, request] = [user, id, request].map(str::to_owned);
        file.write(move |tx| setting::forget(tx, &user, &id, &request))
            .await
    }
}
