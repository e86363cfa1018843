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
    // JSON; NULL: nothing was settled.
    "ALTER TABLE run ADD COLUMN route TEXT;",
    // What verifies heads that keys before signed.
    "CREATE TABLE head_key_before (number INTEGER PRIMARY KEY AUTOINCREMENT, pem TEXT NOT NULL);",
    // What subagents of a run found, as JSON, numbered in the order of arrival. Rows of `said` of kind 3 are whole parts.
    "
CREATE TABLE finding (
  run TEXT NOT NULL,
  subagent INTEGER NOT NULL,
  number INTEGER NOT NULL,
  finding TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (run, subagent)
) WITHOUT ROWID;
CREATE INDEX finding_created ON finding (created_ms);
",
    // Calls of models (kind 0) and tools (kind 1): what is reserved for those that are under way, and that they are settled;
    // and what was used, by what it is summed up by and day.
    "
CREATE TABLE usage_call (
  run TEXT NOT NULL,
  step INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  workspace TEXT NOT NULL,
  root TEXT NOT NULL, -- the run that it is counted for: of a subagent, its parent
  session TEXT NOT NULL,
  key TEXT NOT NULL,
  settled INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL DEFAULT 0,
  in_token INTEGER NOT NULL DEFAULT 0,
  out_token INTEGER NOT NULL DEFAULT 0,
  nanodollars INTEGER NOT NULL DEFAULT 0,
  expires_ms INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (run, step, kind)
) WITHOUT ROWID;
CREATE INDEX usage_call_open ON usage_call (workspace) WHERE settled = 0;
CREATE INDEX usage_call_created ON usage_call (created_ms);
CREATE TABLE usage_total (
  workspace TEXT NOT NULL,
  scope TEXT NOT NULL,
  name TEXT NOT NULL,
  day TEXT NOT NULL,
  model_calls INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL,
  in_token INTEGER NOT NULL,
  out_token INTEGER NOT NULL,
  nanodollars INTEGER NOT NULL,
  duration_ms INTEGER NOT NULL,
  most_tokens INTEGER NOT NULL, -- of one call
  most_nanodollars INTEGER NOT NULL,
  PRIMARY KEY (workspace, scope, name, day)
) WITHOUT ROWID;
CREATE INDEX usage_total_day ON usage_total (day);
",
    // Why a call was not made, as JSON.
    "ALTER TABLE usage_call ADD COLUMN refused TEXT;",
    // From when on what a key signed does not count, RFC 3339 in UTC; '': it all does.
    "ALTER TABLE head_key_before ADD COLUMN revoked_from TEXT NOT NULL DEFAULT '';",
    // Who asked is known of every run; those of before went on without their callers. `told`: what runs have told, part by
    // part, one JSON text a line; how much that is of each workspace is kept beside it.
    "
ALTER TABLE detached ADD COLUMN goes_on INTEGER NOT NULL DEFAULT 1;
ALTER TABLE detached ADD COLUMN grace_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE detached ADD COLUMN left_ms INTEGER;
CREATE INDEX detached_workspace ON detached (workspace, question);
CREATE TABLE told (
  run TEXT NOT NULL,
  first INTEGER NOT NULL, -- number of the first part
  count INTEGER NOT NULL,
  parts TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  workspace TEXT NOT NULL,
  created_ms INTEGER NOT NULL
);
CREATE UNIQUE INDEX told_run ON told (run, first);
CREATE INDEX told_workspace ON told (workspace, created_ms);
CREATE INDEX told_created ON told (created_ms);
CREATE TABLE told_total (workspace TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TRIGGER told_more AFTER INSERT ON told BEGIN
  INSERT INTO told_total (workspace, bytes) VALUES (new.workspace, new.bytes)
  ON CONFLICT (workspace) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER told_less AFTER DELETE ON told BEGIN
  UPDATE told_total SET bytes = bytes - old.bytes WHERE workspace = old.workspace;
  DELETE FROM told_total WHERE workspace = old.workspace AND bytes <= 0;
END;
",
    // A run is of a workspace by its whole key: one that is made again under a name has no runs of the one before. `asker_gone`:
    // who asked listens no more; `ends`: the number behind the last part, NULL where it is not known.
    "
UPDATE detached SET workspace = run.workspace FROM run WHERE run.run = detached.run AND run.workspace <> '';
ALTER TABLE detached ADD COLUMN asker_gone INTEGER NOT NULL DEFAULT 0;
ALTER TABLE detached ADD COLUMN ends INTEGER;
CREATE INDEX detached_going ON detached (user, question) WHERE goes_on = 1;
",
    // What users are asked before tools are used. `answer`: NULL while it is open; `used`: the tool was about to be used.
    "
CREATE TABLE confirmation (
  run TEXT NOT NULL,
  step INTEGER NOT NULL,
  workspace TEXT NOT NULL,
  asked TEXT NOT NULL, -- its name in the trace
  until_ms INTEGER NOT NULL,
  answer INTEGER, -- 0: no, 1: yes, 2: none came, 3: nobody was asked
  who TEXT NOT NULL DEFAULT '',
  used INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (run, step)
) WITHOUT ROWID;
CREATE INDEX confirmation_open ON confirmation (workspace) WHERE answer IS NULL;
CREATE INDEX confirmation_created ON confirmation (created_ms);
",
    // What recorded runs heard of the outside, entry by entry, each as JSON; those of subagents stand with the run that began
    // all. `grown`: it became too large, and nothing is kept of it.
    "
CREATE TABLE record (
  root TEXT PRIMARY KEY,
  workspace TEXT NOT NULL,
  bytes INTEGER NOT NULL DEFAULT 0,
  grown INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX record_workspace ON record (workspace, created_ms);
CREATE INDEX record_created ON record (created_ms);
CREATE TABLE exchange (
  root TEXT NOT NULL,
  number INTEGER NOT NULL,
  run TEXT NOT NULL,
  step INTEGER NOT NULL,
  name TEXT, -- of what is kept once
  text TEXT NOT NULL,
  PRIMARY KEY (root, number)
) WITHOUT ROWID;
CREATE UNIQUE INDEX exchange_name ON exchange (root, name) WHERE name IS NOT NULL;
CREATE TABLE record_total (workspace TEXT PRIMARY KEY, bytes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TRIGGER record_more AFTER INSERT ON record BEGIN
  INSERT INTO record_total (workspace, bytes) VALUES (new.workspace, new.bytes)
  ON CONFLICT (workspace) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER record_other AFTER UPDATE OF bytes ON record BEGIN
  UPDATE record_total SET bytes = bytes + new.bytes - old.bytes WHERE workspace = new.workspace;
END;
CREATE TRIGGER record_less AFTER DELETE ON record BEGIN
  DELETE FROM exchange WHERE root = old.root;
  UPDATE record_total SET bytes = bytes - old.bytes WHERE workspace = old.workspace;
  DELETE FROM record_total WHERE workspace = old.workspace
    AND NOT EXISTS (SELECT 1 FROM record WHERE workspace = old.workspace);
END;
",
    // Tasks: work that runs gave to others and do not wait for. `owner`: the process that works on it; `tree`: the session that all
    // began with; `completed_ms`: 0 while it is open.
    "
CREATE TABLE task (
  workspace TEXT NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  agent TEXT NOT NULL,
  session TEXT NOT NULL,
  tree TEXT NOT NULL,
  user TEXT NOT NULL,
  run TEXT NOT NULL DEFAULT '',
  message TEXT NOT NULL,
  status TEXT NOT NULL DEFAULT 'pending',
  result TEXT NOT NULL DEFAULT '',
  error TEXT NOT NULL DEFAULT '',
  owner TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL DEFAULT 0,
  completed_ms INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace, id)
) WITHOUT ROWID;
CREATE INDEX task_user ON task (user, created_ms, id);
CREATE INDEX task_session ON task (workspace, tree);
CREATE INDEX task_completed ON task (completed_ms);
",
    // What came of each of several calls of a step, as JSON, until the step has seen all of them; and users are asked before each.
    "
CREATE TABLE call_seen (
  run TEXT NOT NULL,
  step INTEGER NOT NULL,
  nth INTEGER NOT NULL,
  observation TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (run, step, nth)
) WITHOUT ROWID;
CREATE INDEX call_seen_created ON call_seen (created_ms);
DROP INDEX confirmation_open;
DROP INDEX confirmation_created;
ALTER TABLE confirmation RENAME TO confirmation_before;
CREATE TABLE confirmation (
  run TEXT NOT NULL,
  step INTEGER NOT NULL,
  nth INTEGER NOT NULL,
  workspace TEXT NOT NULL,
  asked TEXT NOT NULL, -- its name in the trace
  until_ms INTEGER NOT NULL,
  answer INTEGER, -- 0: no, 1: yes, 2: none came, 3: nobody was asked
  who TEXT NOT NULL DEFAULT '',
  used INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (run, step, nth)
) WITHOUT ROWID;
INSERT INTO confirmation
  SELECT run, step, 0, workspace, asked, until_ms, answer, who, used, created_ms FROM confirmation_before;
DROP TABLE confirmation_before;
CREATE INDEX confirmation_open ON confirmation (workspace) WHERE answer IS NULL;
CREATE INDEX confirmation_created ON confirmation (created_ms);
",
    "ALTER TABLE usage_total ADD COLUMN cache_read INTEGER NOT NULL DEFAULT 0;",
    "ALTER TABLE usage_total ADD COLUMN cache_write INTEGER NOT NULL DEFAULT 0;",
    // Summaries that were made again of what a step had summed up before it, as JSON, by the question that asked for them.
    "
CREATE TABLE remade (
  run TEXT NOT NULL,
  step INTEGER NOT NULL,
  request TEXT NOT NULL,
  text TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (run, step, request)
) WITHOUT ROWID;
CREATE INDEX remade_created ON remade (created_ms);
",
    "ALTER TABLE usage_call ADD COLUMN agent TEXT NOT NULL DEFAULT '';",
    // Calls of no run, by when their time is over. A statement that names their range in these words uses it.
    "
CREATE INDEX usage_call_expires ON usage_call (settled, expires_ms) WHERE run >= 'call/' AND run < 'call0';
",
    // 1: it is reserved with what was committed before it, and nobody has said since that it is under way.
    "ALTER TABLE usage_call ADD COLUMN ahead INTEGER NOT NULL DEFAULT 0;",
    // Whose run asks.
    "ALTER TABLE confirmation ADD COLUMN user TEXT NOT NULL DEFAULT '';",
];
