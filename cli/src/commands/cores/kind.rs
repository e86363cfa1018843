//! The two kinds of cores: what commands and operations of each are called.

use std::fmt::Debug;

/// A kind of core. Commands are named as the operations of the service behind them.
pub trait Kind: Debug + 'static {
    /// Lists cores.
    const SHOW: (&'static str, &'static str);
    /// The operation that lists them.
    const LIST: &'static str;
    /// Core to file, and what it is about.
    const GET: (&'static str, &'static str);
    /// File to core.
    const PUT: (&'static str, &'static str);
    /// Core to collection.
    const LOAD: (&'static str, &'static str);
    /// Out of collections.
    const UNLOAD: (&'static str, &'static str);
    /// No core any more.
    const DELETE: (&'static str, &'static str);
    /// What to say of a record that belongs to the other kind.
    const MISPLACED: &'static str;
}

/// Knowledge: triples, vectors of entities, documents.
#[derive(Debug)]
pub struct Knowledge;

impl Kind for Knowledge {
    const SHOW: (&'static str, &'static str) = ("show-kg-cores", "List the knowledge cores");
    const LIST: &'static str = "list-kg-cores";
    const GET: (&'static str, &'static str) = (
        "get-kg-core",
        "Save a knowledge core with its documents to a file",
    );
    const PUT: (&'static str, &'static str) = (
        "put-kg-core",
        "Put a knowledge core with its documents from a file",
    );
    const LOAD: (&'static str, &'static str) = (
        "load-kg-core",
        "Load a knowledge core into a collection, through a flow",
    );
    const UNLOAD: (&'static str, &'static str) = (
        "unload-kg-core",
        "Take out of collections what loading a core brought in",
    );
    const DELETE: (&'static str, &'static str) = (
        "delete-kg-core",
        "Delete a knowledge core, and the document embeddings of its name",
    );
    const MISPLACED: &'static str = "holds document embeddings; put them with tg put-de-core";
}

/// Vectors of chunks.
#[derive(Debug)]
pub struct Documents;

impl Kind for Documents {
    const SHOW: (&'static str, &'static str) =
        ("show-de-cores", "List the cores of document embeddings");
    const LIST: &'static str = "list-de-cores";
    const GET: (&'static str, &'static str) = (
        "get-de-core",
        "Save a core of document embeddings to a file",
    );
    const PUT: (&'static str, &'static str) = (
        "put-de-core",
        "Put a core of document embeddings from a file",
    );
    const LOAD: (&'static str, &'static str) = (
        "load-de-core",
        "Load document embeddings into a collection, through a flow",
    );
    const UNLOAD: (&'static str, &'static str) = (
        "unload-de-core",
        "Take out of collections what loading document embeddings brought in",
    );
    const DELETE: (&'static str, &'static str) =
        ("delete-de-core", "Delete a core of document embeddings");
    const MISPLACED: &'static str = "holds no document embeddings; put it with tg put-kg-core";
}
