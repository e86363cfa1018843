//! The tables of the ledger.

/// Scripts in the order they are run; only ever appended.
pub(super) const MIGRATIONS: &[&str] = &[
    "
CREATE TABLE run (
  question TEXT PRIMARY KEY,
  text TEXT NOT NULL,
  run TEXT NOT NULL,
  started_at TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX run_created ON run (created_ms);
CREATE TABLE step (
  run TEXT NOT NULL,
  step INTEGER NOT NULL,
  decision TEXT,
  observation TEXT,
  ending TEXT,
  done INTEGER NOT NULL DEFAULT 0, -- 1: the step, 2: the run
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (run, step)
) WITHOUT ROWID;
CREATE INDEX step_created ON step (created_ms);
",
    "
CREATE TABLE said (
  run TEXT NOT NULL,
  step INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  kind INTEGER NOT NULL, -- 0: of the thought, 1: the end of the thought, 2: of the answer
  text TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (run, step, seq)
) WITHOUT ROWID;
CREATE INDEX said_created ON said (created_ms);
",
    // Runs of before are of no workspace: they go by their age, within two days.
    "
ALTER TABLE run ADD COLUMN workspace TEXT NOT NULL DEFAULT '';
CREATE INDEX run_workspace ON run (workspace, run);
",
    "
CREATE TABLE detached (
  user TEXT NOT NULL,
  question TEXT NOT NULL, -- its id alone
  run TEXT NOT NULL,
  workspace TEXT NOT NULL,
  flow TEXT NOT NULL,
  request TEXT NOT NULL,
  cancelled INTEGER NOT NULL DEFAULT 0,
  deadline_ms INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (user, question)
) WITHOUT ROWID;
CREATE INDEX detached_run ON detached (run);
CREATE INDEX detached_created ON detached (created_ms);
",
    "
CREATE TABLE ended (
  workspace TEXT NOT NULL,
  run TEXT NOT NULL,
  day TEXT NOT NULL,
  number INTEGER NOT NULL, -- within the day
  collection TEXT NOT NULL,
  hash TEXT NOT NULL,
  ended_ms INTEGER NOT NULL,
  PRIMARY KEY (workspace, run)
) WITHOUT ROWID;
CREATE UNIQUE INDEX ended_day ON ended (workspace, day, number);
CREATE INDEX ended_at ON ended (ended_ms);
CREATE TABLE head (
  workspace TEXT NOT NULL,
  number INTEGER NOT NULL,
  day TEXT NOT NULL,
  text TEXT NOT NULL,
  signature TEXT NOT NULL,
  PRIMARY KEY (workspace, number)
) WITHOUT ROWID;
CREATE TABLE head_key (id INTEGER PRIMARY KEY CHECK (id = 1), pkcs8 BLOB NOT NULL);
",
];
