//! The tables, from release to release.

/// Scripts in the order they are run; only ever appended.
pub(crate) const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE document (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    comments TEXT NOT NULL,
    metadata TEXT NOT NULL,
    tags TEXT NOT NULL,
    parent TEXT NOT NULL,
    type TEXT NOT NULL,
    content TEXT NOT NULL,
    UNIQUE (workspace, id)
);
CREATE INDEX document_by_parent ON document (workspace, parent);
CREATE INDEX document_by_content ON document (content);
CREATE TABLE request (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE
);
",
    "
CREATE TABLE content (
    number INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    size INTEGER,
    refs INTEGER NOT NULL,
    body BLOB
);
INSERT INTO content (hash, refs) SELECT unhex(content), count(*) FROM document GROUP BY content;
CREATE INDEX content_unused ON content (refs) WHERE refs <= 0;
CREATE TABLE document_2 (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    title TEXT NOT NULL,
    comments TEXT NOT NULL,
    metadata TEXT NOT NULL,
    tags TEXT NOT NULL,
    parent TEXT NOT NULL,
    type TEXT NOT NULL,
    content INTEGER NOT NULL,
    UNIQUE (workspace, id)
);
INSERT INTO document_2
    SELECT document.number, workspace, id, time, kind, title, comments, metadata, tags, parent, type,
           content.number
    FROM document JOIN content ON content.hash = unhex(document.content);
DROP TABLE document;
ALTER TABLE document_2 RENAME TO document;
CREATE INDEX document_by_parent ON document (workspace, parent) WHERE parent <> '';
CREATE INDEX document_on_top ON document (workspace, number) WHERE parent = '' AND type <> 'answer';
CREATE INDEX document_answer ON document (workspace, number) WHERE type = 'answer';

CREATE TABLE upload (
    id TEXT PRIMARY KEY,
    workspace TEXT NOT NULL,
    document TEXT NOT NULL,
    metadata TEXT NOT NULL,
    size INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    created INTEGER NOT NULL,
    object TEXT NOT NULL
);
CREATE TABLE upload_part (
    upload TEXT NOT NULL,
    position INTEGER NOT NULL,
    hash BLOB NOT NULL,
    size INTEGER NOT NULL,
    PRIMARY KEY (upload, position)
) WITHOUT ROWID;

CREATE TABLE run (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    thread TEXT NOT NULL UNIQUE,
    listed INTEGER NOT NULL,
    workspace TEXT NOT NULL,
    processing TEXT NOT NULL,
    document TEXT NOT NULL,
    flow TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    time INTEGER NOT NULL,
    tags TEXT NOT NULL,
    state TEXT NOT NULL,
    why TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    shape INTEGER NOT NULL,
    swept INTEGER NOT NULL,
    touched INTEGER NOT NULL,
    expected INTEGER NOT NULL,
    settled INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    summary TEXT NOT NULL
);
CREATE UNIQUE INDEX run_listed ON run (workspace, processing) WHERE listed = 1;
CREATE INDEX run_of_document ON run (workspace, document);
CREATE INDEX run_live ON run (state)
    WHERE state IN ('queued', 'starting', 'running', 'cancelled');
CREATE TABLE run_reader (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    subscription TEXT NOT NULL,
    topic TEXT NOT NULL,
    expected INTEGER NOT NULL,
    done INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
CREATE TABLE run_pair (
    run INTEGER NOT NULL,
    record BLOB NOT NULL,
    reader INTEGER NOT NULL,
    expected INTEGER NOT NULL,
    outcome INTEGER,
    PRIMARY KEY (run, record, reader)
) WITHOUT ROWID;
CREATE TABLE run_fault (
    run INTEGER NOT NULL,
    record BLOB NOT NULL,
    reader INTEGER NOT NULL,
    subject TEXT NOT NULL,
    processor TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (run, record, reader)
) WITHOUT ROWID;
CREATE TABLE run_effect (
    run INTEGER NOT NULL,
    kind TEXT NOT NULL,
    made INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    PRIMARY KEY (run, kind)
) WITHOUT ROWID;

CREATE TABLE target (
    number INTEGER PRIMARY KEY,
    workspace TEXT NOT NULL,
    document TEXT NOT NULL,
    flow TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    UNIQUE (workspace, document, flow, collection, incarnation)
);
CREATE TABLE made (
    target INTEGER NOT NULL,
    child TEXT NOT NULL,
    run INTEGER NOT NULL,
    done INTEGER NOT NULL,
    shape INTEGER NOT NULL,
    PRIMARY KEY (target, child)
) WITHOUT ROWID;
CREATE INDEX made_of_child ON made (child);

CREATE TABLE outbox (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace TEXT NOT NULL,
    flow TEXT NOT NULL,
    collection TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    document TEXT NOT NULL,
    thread TEXT NOT NULL,
    record TEXT NOT NULL,
    chunks TEXT NOT NULL,
    triples TEXT NOT NULL,
    after INTEGER
);

CREATE TABLE collection (
    workspace TEXT NOT NULL,
    id TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    labelled INTEGER NOT NULL,
    PRIMARY KEY (workspace, id)
) WITHOUT ROWID;
CREATE TABLE tombstone (
    workspace TEXT NOT NULL,
    collection TEXT NOT NULL,
    store TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    PRIMARY KEY (workspace, collection, store)
) WITHOUT ROWID;
",
    "
ALTER TABLE upload ADD COLUMN adopting TEXT NOT NULL DEFAULT '';
ALTER TABLE upload ADD COLUMN replaces INTEGER NOT NULL DEFAULT 0;
CREATE TABLE usage (
    workspace TEXT PRIMARY KEY,
    documents INTEGER NOT NULL,
    bytes INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO usage
    SELECT workspace, count(*), coalesce(sum(content.size), 0)
    FROM document JOIN content ON content.number = document.content GROUP BY workspace;
CREATE TRIGGER document_added AFTER INSERT ON document BEGIN
    INSERT INTO usage VALUES (NEW.workspace, 1,
        coalesce((SELECT size FROM content WHERE number = NEW.content), 0))
    ON CONFLICT (workspace) DO UPDATE SET documents = documents + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER document_removed AFTER DELETE ON document BEGIN
    UPDATE usage SET documents = documents - 1,
        bytes = bytes - coalesce((SELECT size FROM content WHERE number = OLD.content), 0)
    WHERE workspace = OLD.workspace;
END;
CREATE TRIGGER document_changed AFTER UPDATE OF workspace, content ON document BEGIN
    UPDATE usage SET documents = documents - 1,
        bytes = bytes - coalesce((SELECT size FROM content WHERE number = OLD.content), 0)
    WHERE workspace = OLD.workspace;
    INSERT INTO usage VALUES (NEW.workspace, 1,
        coalesce((SELECT size FROM content WHERE number = NEW.content), 0))
    ON CONFLICT (workspace) DO UPDATE SET documents = documents + 1, bytes = bytes + excluded.bytes;
END;
",
    "
-- The wire type of the error; empty of faults that were kept before.
ALTER TABLE run_fault ADD COLUMN kind TEXT NOT NULL DEFAULT '';
",
    "
-- The hash that the client said; empty where it said none. What is open is found by it.
ALTER TABLE upload ADD COLUMN announced TEXT NOT NULL DEFAULT '';
CREATE INDEX upload_open ON upload (workspace, document) WHERE object = '';
-- What flows do with documents. `shape` of runs and parts, a number for less than that, is not read any more.
CREATE TABLE fingerprints (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL UNIQUE
);
ALTER TABLE run ADD COLUMN fingerprints INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN content INTEGER NOT NULL DEFAULT 0;
ALTER TABLE target ADD COLUMN fingerprints INTEGER NOT NULL DEFAULT 0;
ALTER TABLE target ADD COLUMN content INTEGER NOT NULL DEFAULT 0;
ALTER TABLE made ADD COLUMN fingerprints INTEGER NOT NULL DEFAULT 0;
ALTER TABLE made ADD COLUMN says INTEGER;
ALTER TABLE made ADD COLUMN salt INTEGER NOT NULL DEFAULT 0;
-- Fingerprints of what the last run is to make anew; NULL of a part that was not there before.
ALTER TABLE made ADD COLUMN before INTEGER;
ALTER TABLE outbox ADD COLUMN superseded TEXT NOT NULL DEFAULT '[]';
",
];
