//! Vectors in one SQLite file, searched in memory. A change is first committed, then applied to what is in memory, then
//! reported, so who is told sees it, whole.

mod cache;
mod changing;
mod done;
mod left;
mod lifecycle;
mod purge;
mod put;
mod read;
mod reembed;
mod reembedding;
mod retract;
mod scans;
pub(crate) mod schema;
mod write;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use futures::executor::block_on;
use tg_storage::rusqlite::Connection;
use tg_storage::{Database, Durability, GroupBounds, GroupCommitter, StorageError, survived};
use tokio::sync::oneshot;

use tg_schemas::msg::Superseded;

use super::reembed::{Begin, Made, Task};
use super::{Hit, MAX_LIMIT, Page, PointStore, Search, Write};
use crate::engine::index::Index;
use crate::engine::kind::{Kind, Place};
use crate::engine::scan::{self, Query};
use crate::engine::top::Candidate;
use crate::error::VectorError;
use crate::options::Limits;
use cache::Cache;
use done::Done;
use left::Left;
use scans::Scans;
pub use schema::ONE_WORKSPACE;
use schema::Space;
use tg_collections::CollectionKey;

type Reply<T> = oneshot::Sender<Result<T, VectorError>>;

enum Job {
    Put(Write),
    Retract {
        key: CollectionKey,
        kind: Kind,
        chunks: Vec<String>,
        superseded: Vec<Superseded>,
    },
    Drop(CollectionKey),
    DropWorkspace(String),
    Begin(Begin),
    Stage(Made),
    Switch(Task, Option<Left>),
    Abandon(CollectionKey),
}

/// What a search of one space came to.
#[derive(Default)]
struct Searched {
    space: i64,
    hits: Vec<Hit>,
    /// It found something, and all of that is still there.
    whole: bool,
}

/// The vectors of one file. Dropped, it commits what waits and closes the file.
pub struct SqlitePoints {
    db: Database,
    cache: Arc<Cache>,
    scans: Scans,
    commits: GroupCommitter<(Job, Reply<Option<usize>>)>,
}

impl SqlitePoints {
    /// Opens or creates the file and takes its lock. Blocks: call it at start-up.
    ///
    /// # Errors
    /// [`VectorError::Storage`] while another process has it, and when the file cannot be used.
    pub fn open(path: &Path, durability: Durability, limits: Limits) -> Result<Self, VectorError> {
        Self::start(schema::open(path, durability)?, limits)
    }

    /// Vectors without a file.
    ///
    /// # Errors
    /// When there is no memory or no thread for it.
    pub fn in_memory(limits: Limits) -> Result<Self, VectorError> {
        Self::start(schema::in_memory()?, limits)
    }

    fn start(db: Database, limits: Limits) -> Result<Self, VectorError> {
        let cache = Arc::new(Cache::new(limits.memory));
        let (writing, purging, applied) = (db.clone(), db.clone(), cache.clone());
        let commits = GroupCommitter::start_with_chores(
            "vectors-commit",
            GroupBounds::default(),
            move |group| {
                if !survived(|| commit(&writing, &applied, limits, std::mem::take(group))) {
                    // What is in memory may lack what was committed: it is loaded anew.
                    applied.clear();
                }
            },
            move || block_on(purging.write(purge::step)).unwrap_or(false),
        )?;
        Ok(Self {
            db,
            cache,
            scans: Scans::new(limits.threads),
            commits,
        })
    }

    /// How much changed; `None` if it came too late.
    async fn change(&self, job: Job) -> Result<Option<usize>, VectorError> {
        let (reply, done) = oneshot::channel();
        self.commits.push((job, reply)).await?;
        done.await.map_err(|_| VectorError::Closed)?
    }

    /// The space that answers.
    async fn space(&self, key: &CollectionKey, kind: Kind) -> Result<Option<Space>, VectorError> {
        let key = key.clone();
        let found = self
            .db
            .read(move |conn| schema::space(conn, &key, Place::serving(kind)));
        Ok(found.await?)
    }

    async fn search_once(&self, search: Search) -> Result<Searched, VectorError> {
        let Search {
            key,
            kind,
            vector: mut query,
            model,
            limit,
            conditions,
        } = search;
        let workspace = key.workspace().to_owned();
        let found = self.db.read(move |conn| {
            let Some(space) = schema::space(conn, &key, Place::serving(kind))? else {
                return Ok(None);
            };
            let allowed = read::allowed(conn, space.id, &conditions)?;
            Ok(Some((space, allowed)))
        });
        let nothing = Searched {
            whole: true,
            ..Searched::default()
        };
        let Some((space, allowed)) = found.await? else {
            return Ok(nothing);
        };
        put::check(&space, kind, &model, query.len())?;
        let limit = limit.min(MAX_LIMIT);
        if limit == 0 || space.points == 0 || !scan::normalise(&mut query) {
            return Ok(nothing);
        }
        let (id, dimension) = (space.id, space.dimension);
        let load = || async {
            let loaded = self.db.read(move |conn| read::load(conn, id, dimension));
            Ok(loaded.await?)
        };
        let points = usize::try_from(space.points).unwrap_or(usize::MAX);
        let bytes = Index::estimate(dimension, points);
        let index = self.cache.get(&workspace, id, bytes, load).await?;
        let query = Query {
            vector: query,
            limit,
            allowed,
        };
        let best = self.scans.search(&space, index, query).await?;
        let wanted = best.len();
        let hits = self.tell(id, best).await?;
        Ok(Searched {
            space: id,
            whole: wanted > 0 && hits.len() == wanted,
            hits,
        })
    }

    async fn tell(&self, space: i64, best: Vec<Candidate>) -> Result<Vec<Hit>, VectorError> {
        if best.is_empty() {
            return Ok(Vec::new());
        }
        let told = self.db.read(move |conn| {
            let mut hits = Vec::with_capacity(best.len());
            if !schema::is_there(conn, space)? {
                // Another model has taken over: what was found may be a part of what there was.
                return Ok(hits);
            }
            for one in best {
                // Gone since the search: no longer an answer.
                if let Some(subject) = read::subject(conn, space, one.group)? {
                    hits.push(Hit {
                        subject,
                        score: f64::from(one.score),
                        facets: read::facets(conn, space, one.facet)?,
                    });
                }
            }
            Ok(hits)
        });
        Ok(told.await?)
    }

    /// Bytes of vectors in memory, with what belongs to them.
    pub fn memory(&self) -> usize {
        self.cache.bytes()
    }
}

#[async_trait]
impl PointStore for SqlitePoints {
    async fn put(&self, write: Write) -> Result<Option<usize>, VectorError> {
        self.change(Job::Put(write)).await
    }

    async fn search(&self, search: Search) -> Result<Vec<Hit>, VectorError> {
        let (key, kind) = (search.key.clone(), search.kind);
        let found = self.search_once(search.clone()).await?;
        if found.whole {
            return Ok(found.hits);
        }
        // Some of it was gone when it was looked for: taken back, or another model has taken over in between.
        let now = self.space(&key, kind).await?.map(|space| space.id);
        if now == Some(found.space) {
            return Ok(found.hits);
        }
        self.cache.remove(found.space);
        Ok(self.search_once(search).await?.hits)
    }
    async fn count(&self, key: &CollectionKey, kind: Kind) -> Result<usize, VectorError> {
        let space = self.space(key, kind).await?;
        Ok(space.map_or(0, |space| space.points.max(0) as usize))
    }

    async fn page(
        &self,
        key: &CollectionKey,
        kind: Kind,
        after: Option<i64>,
        most: usize,
    ) -> Result<Page, VectorError> {
        let (key, workspace) = (key.clone(), key.workspace().to_owned());
        let read = move |conn: &Connection| {
            let space = schema::space(conn, &key, Place::serving(kind))?;
            read::page(conn, space, after, most)
        };
        let page = self.db.read_for(&workspace, read).await?;
        page.ok_or(VectorError::Replaced)
    }
}

/// Commits jobs together, brings memory up to it and tells everybody. Runs on the commit thread.
fn commit(db: &Database, cache: &Cache, limits: Limits, group: Vec<(Job, Reply<Option<usize>>)>) {
    let (jobs, replies): (Vec<Job>, Vec<_>) = group.into_iter().unzip();
    let done = db.write_here(move |tx| {
        let run = |job| match job {
            Job::Put(points) => write::put(tx, limits, points),
            Job::Retract {
                key,
                kind,
                chunks,
                superseded,
            } => retract::retract(tx, &key, kind, &chunks, &superseded).map(Ok),
            Job::Drop(key) => write::drop_collection(tx, &key).map(Ok),
            Job::DropWorkspace(workspace) => write::drop_workspace(tx, &workspace).map(Ok),
            Job::Begin(begin) => reembed::begin(tx, begin).map(Ok),
            Job::Stage(made) => reembed::stage(tx, limits, made),
            Job::Switch(task, left) => reembed::switch(tx, &task, left).map(Ok),
            Job::Abandon(key) => reembed::abandon(tx, &key).map(Ok),
        };
        jobs.into_iter().map(run).collect::<Result<Vec<_>, _>>()
    });
    metrics::counter!("tg_vectors_commits_total").increment(1);
    match done {
        Ok(done) => {
            for (done, reply) in done.into_iter().zip(replies) {
                let told = done.map(|done| apply(cache, done));
                // Nobody may be waiting any more.
                let _ = reply.send(told);
            }
        }
        Err(error) => {
            // The store itself logs a full disk.
            if error != StorageError::Full {
                tracing::warn!(%error, changes = replies.len(), "changes of the vectors failed");
            }
            for reply in replies {
                let _ = reply.send(Err(error.clone().into()));
            }
        }
    }
}

fn apply(cache: &Cache, done: Done) -> Option<usize> {
    let mut changes = done.changes.into_iter().peekable();
    while let Some((space, _)) = changes.peek() {
        let space = *space;
        let of_space = std::iter::from_fn(|| changes.next_if(|(id, _)| *id == space));
        let of_space: Vec<_> = of_space.map(|(_, change)| change).collect();
        cache.apply(space, of_space.into_iter());
    }
    done.gone.into_iter().for_each(|space| cache.remove(space));
    (!done.late).then_some(done.count)
}

#[cfg(test)]
mod tests;
