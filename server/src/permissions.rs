//! What each service may do at a RabbitMQ broker, as regular expressions over names of queues and exchanges: derived from the
//! table of processors, the shipped blueprints and the short list of what services ask beside their table.
//!
//! RabbitMQ compares names only: `configure` declares and deletes, `write` publishes to an exchange and binds a queue, `read`
//! consumes, purges and binds from an exchange. What every process of the mesh does at its start (its inbox, the queues of dead
//! letters and reports) is allowed to all of them. The gateway lets clients in and may ask everything; the flow service makes and
//! removes what flows need and may do everything. All inboxes are at one exchange, of which the broker also compares the routing
//! keys: each user may bind its own inboxes only.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use tg_mesh::Mode;
use tg_mesh::rabbitmq::INBOX_EXCHANGE;
use tg_schemas::processors::{PROCESSORS, Role, SpecRow, TopicScope, is_relay, system_readers};
use tg_schemas::topic::Class;

use crate::deployed::{DEPLOYED, Deployed};
use crate::seed;

/// What one user may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Permissions {
    /// The user, which is named after its service.
    pub user: &'static str,
    /// Declare and delete.
    pub configure: String,
    /// Publish to exchanges and bind queues.
    pub write: String,
    /// Consume and bind from exchanges.
    pub read: String,
    /// What it may do at the exchange of inboxes.
    pub topics: TopicPermissions,
}

/// What one user may do at an exchange, as regular expressions over routing keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TopicPermissions {
    /// The exchange.
    pub exchange: &'static str,
    /// Publish.
    pub write: String,
    /// Bind.
    pub read: String,
}

/// Every service answers every other one, and hears the answers to its own questions. A key with a wildcard would be another's, too.
fn inboxes(service: &str) -> TopicPermissions {
    let prefix = prefix();
    TopicPermissions {
        exchange: INBOX_EXCHANGE,
        write: format!("^{prefix}\\.inbox\\.[^*#]+$"),
        read: format!("^{prefix}\\.inbox\\.{}\\.[^*#]+$", escaped(service)),
    }
}

/// What a service asks or writes beside its rows of the table: class and base of topics; `*` is any name.
const BESIDE: &[(&str, &[(Class, &str)])] = &[
    (
        "config",
        &[(Class::Notify, "config"), (Class::Request, "flow")],
    ),
    ("iam", &[(Class::Request, "flow")]),
    (
        "agent",
        &[
            (Class::Notify, "session"),
            (Class::Request, "agent"),
            (Class::Request, "flow"),
            (Class::Request, "session-notices"),
            (Class::Request, "text-completion"),
            (Class::Request, "text-completion-rag"),
        ],
    ),
    (
        "knowledge",
        &[
            (Class::Request, "collection"),
            (Class::Request, "librarian"),
            (Class::Flow, "triples-store"),
            (Class::Flow, "graph-embeddings-store"),
            (Class::Flow, "document-embeddings-store"),
        ],
    ),
    (
        "extract",
        &[
            (Class::Request, "librarian"),
            (Class::Request, "text-completion"),
            (Class::Request, "text-completion-rag"),
        ],
    ),
    ("embeddings", &[(Class::Request, "usage")]),
    (
        "rag",
        &[(Class::Request, "traces"), (Class::Request, "usage")],
    ),
    (
        "sessions",
        &[
            (Class::Request, "agent"),
            (Class::Request, "chat-completion"),
            (Class::Request, "document-embeddings"),
            (Class::Request, "embeddings"),
            (Class::Request, "reranker"),
            (Class::Request, "threads"),
            (Class::Request, "librarian"),
            (Class::Notify, "audit-events"),
        ],
    ),
    (
        "threads",
        &[
            (Class::Request, "agent"),
            (Class::Request, "listener.*"),
            (Class::Notify, "thread"),
        ],
    ),
    (
        "llm",
        &[(Class::Notify, "model-rests"), (Class::Request, "usage")],
    ),
    ("vectors", &[(Class::Request, "embeddings")]),
];

/// What processes of a service hear that is no spec: notices.
const HEARS: &[(&str, &[&str])] = &[
    ("llm", &["model-rests"]),
    ("sessions", &["session", "thread"]),
    ("threads", &["thread"]),
];

/// Notices for others that a service declares: a broker has no topic where nobody hears it, and looking for one that is not there costs
/// more than publishing.
const DECLARES: &[(&str, &[&str])] = &[("sessions", &["audit-events"])];

/// What processes of a service are asked that is no spec: each on a topic of its own.
const SERVES: &[(&str, &[&str])] = &[("gateway", &["kept-streams"])];

/// The permissions of all services.
///
/// # Errors
/// The shipped blueprints cannot be read.
pub fn all() -> Result<Vec<Permissions>, serde_json::Error> {
    let streams = streams()?;
    let of = |one: &Deployed| match one.name {
        "flow" => everything(),
        _ => some(one, &streams),
    };
    Ok(DEPLOYED.iter().map(of).collect())
}

/// The permissions as commands of `rabbitmqctl`; users and their passwords are made by whoever runs them.
pub fn commands(all: &[Permissions], vhost: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let vhost = quoted(vhost);
    let line = |one: &Permissions| {
        let [configure, write, read] =
            [&one.configure, &one.write, &one.read].map(|one| quoted(one));
        let (user, topics) = (one.user, &one.topics);
        let [hears, says] = [&topics.read, &topics.write].map(|one| quoted(one));
        let exchange = topics.exchange;
        // A user without rights over routing keys may bind every one, so these come first.
        format!(
            "rabbitmqctl set_topic_permissions -p {vhost} {user} {exchange} {says} {hears}\n\
             rabbitmqctl set_permissions -p {vhost} {user} {configure} {write} {read}\n"
        )
    };
    all.iter().map(line).collect()
}

/// The user of the flow service.
fn everything() -> Permissions {
    let own = format!("^({}\\..*|amq_[0-9a-f]{{32}})$", prefix());
    Permissions {
        user: "flow",
        configure: own.clone(),
        // It sends dead letters back to the queue that they came from.
        write: format!("{own}|^amq\\.default$|^{}$", escaped(INBOX_EXCHANGE)),
        read: format!("{own}|^{}$", escaped(INBOX_EXCHANGE)),
        topics: inboxes("flow"),
    }
}

/// What names begin with.
fn prefix() -> &'static str {
    Mode::Native
        .rules()
        .prefix
        .unwrap_or(tg_schemas::topic::SPACE)
}

/// Base of the topic of each processor's spec that blueprints wire, as (processor, spec).
type Streams = BTreeMap<(String, String), BTreeSet<String>>;

fn streams() -> Result<Streams, serde_json::Error> {
    let seed = seed::seed()?;
    let mut streams = Streams::new();
    let blueprints = seed.types.get("flow-blueprint").into_iter().flatten();
    for (_, blueprint) in blueprints {
        let parts = ["flow", "blueprint"].map(|part| blueprint[part].as_object());
        for (name, row) in parts.into_iter().flatten().flatten() {
            let id = name.split(':').next().unwrap_or_default();
            for (spec, topic) in row["topics"].as_object().into_iter().flatten() {
                let base = topic.as_str().and_then(|topic| topic.split(':').nth(2));
                let key = (id.to_owned(), spec.clone());
                streams
                    .entry(key)
                    .or_default()
                    .extend(base.map(str::to_owned));
            }
        }
    }
    Ok(streams)
}

/// A topic by class and base, whichever workspace or flow it belongs to.
type Base = (Class, String);

fn bases(id: &str, spec: &SpecRow, streams: &Streams) -> Vec<Base> {
    let class = spec.role.class();
    match spec.place {
        TopicScope::Flow => {
            let wired = streams.get(&(id.to_owned(), spec.name.to_owned()));
            wired
                .into_iter()
                .flatten()
                .map(|base| (class, base.clone()))
                .collect()
        }
        _ => vec![(class, spec.name.to_owned())],
    }
}

/// Names of exchanges of these topics. A name of a queue never matches: it goes on with a dot and its reader.
fn exchanges(of: &BTreeSet<Base>) -> Option<String> {
    let mut by_class: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (class, base) in of {
        by_class
            .entry(class.as_str())
            .or_default()
            .push(escaped(base).replace('*', "[^:]*"));
    }
    let classes = by_class
        .iter()
        .map(|(class, bases)| format!("{class}\\.({})", bases.join("|")));
    let classes: Vec<String> = classes.collect();
    let no_queue = format!(
        "(?!.*\\.({})(--|$))",
        ids(PROCESSORS.iter().map(|one| one.id))
    );
    (!classes.is_empty()).then(|| format!("{no_queue}{}\\.({})(:.*)?", prefix(), classes.join("|")))
}

/// Names of queues of these processors, whatever they read.
fn queues(processors: &[&str]) -> String {
    let ids = ids(processors.iter().copied());
    format!("{}\\.(request|flow)\\.[^ ]*\\.({ids})(--.*)?", prefix())
}

fn ids<'a>(all: impl Iterator<Item = &'a str>) -> String {
    all.map(escaped).collect::<Vec<_>>().join("|")
}

fn escaped(text: &str) -> String {
    text.replace('.', "\\.")
}

fn some(one: &Deployed, streams: &Streams) -> Permissions {
    let prefix = prefix();
    let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
    for declared in one.declared() {
        for spec in declared.specs {
            let bases = bases(declared.id, spec, streams);
            match spec.role {
                Role::Serves | Role::Reads => reads.extend(bases),
                // Whoever writes to a relay binds its readers to it.
                Role::Writes if is_relay(spec.name) => {
                    reads.extend(bases.clone());
                    writes.extend(bases);
                }
                Role::Asks | Role::Writes => writes.extend(bases),
                Role::Answers | Role::Hears => {}
            }
        }
    }
    let beside = BESIDE.iter().filter(|(name, _)| *name == one.name);
    let beside = beside.flat_map(|(_, bases)| bases.iter());
    writes.extend(beside.map(|(class, base)| (*class, (*base).to_owned())));
    let hears = HEARS.iter().filter(|(name, _)| *name == one.name);
    let hears = hears.flat_map(|(_, bases)| bases.iter());
    reads.extend(hears.map(|base| (Class::Notify, (*base).to_owned())));
    let serves = SERVES.iter().filter(|(name, _)| *name == one.name);
    let serves = serves.flat_map(|(_, bases)| bases.iter());
    reads.extend(serves.map(|base| (Class::Request, (*base).to_owned())));
    // What every process does.
    let mut fabric = BTreeSet::new();
    let mut waiting = Vec::new();
    for (spec, reader) in system_readers() {
        fabric.insert((Class::Flow, spec.name.to_owned()));
        waiting.push(format!(
            "{prefix}\\.flow\\.{}\\.{}",
            escaped(spec.name),
            escaped(reader.id)
        ));
    }
    let notices = ["control", "config"].map(|base| (Class::Notify, base.to_owned()));
    reads.extend(notices);
    reads.extend(fabric.iter().cloned());
    writes.extend(fabric);
    writes.extend([
        (Class::Notify, "control".to_owned()),
        (Class::Request, "config".to_owned()),
    ]);
    let mut declares = reads.clone();
    let noticed = DECLARES.iter().filter(|(name, _)| *name == one.name);
    let noticed = noticed.flat_map(|(_, bases)| bases.iter());
    declares.extend(noticed.map(|base| (Class::Notify, (*base).to_owned())));
    let stores: Vec<String> = one.stores.iter().map(|store| escaped(store)).collect();
    let mut own = vec![
        format!("{prefix}\\.inbox\\.{}\\..*", escaped(one.name)),
        "amq_[0-9a-f]{32}".to_owned(),
        queues(one.processors),
    ];
    own.extend(waiting);
    if !stores.is_empty() {
        let stores = stores.join("|");
        own.push(format!("{prefix}\\.claim\\.({stores})"));
        own.push(format!(
            "{prefix}\\.flow\\.store-lease:({stores})(\\.({stores}))?"
        ));
    }
    let inbox_exchange = escaped(INBOX_EXCHANGE);
    let regex = |more: Option<String>, whole: Option<&str>, beside: Option<&String>| {
        let mut all = own.clone();
        all.extend(beside.cloned());
        all.extend(more);
        all.extend(whole.map(|classes| {
            let no_queue = format!(
                "(?!.*\\.({})(--|$))",
                ids(PROCESSORS.iter().map(|one| one.id))
            );
            format!("{no_queue}{prefix}\\.({classes})\\..*")
        }));
        format!("^({})$", all.join("|"))
    };
    // Clients come in through these two, on topics of every flow.
    let (asks, looks_on) = match one.name {
        "gateway" => (Some("request|flow|notify"), Some("flow|notify")),
        "librarian" => (Some("request|flow"), None),
        _ => (None, None),
    };
    Permissions {
        user: one.name,
        configure: regex(exchanges(&declares), looks_on, None),
        write: regex(exchanges(&writes), asks, Some(&inbox_exchange)),
        read: regex(exchanges(&reads), looks_on, Some(&inbox_exchange)),
        topics: inboxes(one.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_service_has_permissions_and_none_but_the_flow_service_reaches_every_queue() {
        let all = all().unwrap();
        assert_eq!(all.len(), DEPLOYED.len());
        for one in &all {
            let default = one.write.contains("amq\\.default");
            assert_eq!(default, one.user == "flow", "{}", one.user);
            // Longer ones a broker would still take, and nobody could read.
            assert!(one.read.len().max(one.write.len()) < 8_000, "{}", one.user);
        }
    }

    #[test]
    fn sessions_may_ask_what_finds_passages_and_sums_up() {
        let all = all().unwrap();
        let sessions = all.iter().find(|one| one.user == "sessions").unwrap();
        for base in [
            "agent",
            "chat-completion",
            "document-embeddings",
            "embeddings",
            "reranker",
        ] {
            let may = |text: &str| {
                let (_, asked) = text.rsplit_once(r"request\.(").unwrap();
                asked.split([')', '|']).any(|one| one == base)
            };
            assert!(may(&sessions.write) && !may(&sessions.read), "{base}");
        }
    }

    #[test]
    fn sessions_may_declare_the_topic_of_its_trail_and_hear_nothing_there() {
        for one in all().unwrap() {
            let named = [&one.configure, &one.write, &one.read];
            let named = named.map(|rights| rights.contains("audit-events"));
            let may = one.user == "sessions";
            assert_eq!(named, [may, may, false], "{}", one.user);
        }
    }

    #[test]
    fn threads_may_ask_listeners_and_hears_none_of_them() {
        let all = all().unwrap();
        for one in &all {
            let may = one.write.contains(r"|listener\.[^:]*)");
            assert_eq!(may, one.user == "threads", "{}", one.write);
            assert!(!one.read.contains("listener"), "{}", one.read);
            assert!(!one.configure.contains("listener"), "{}", one.configure);
        }
    }

    #[test]
    fn gateways_alone_are_asked_for_the_streams_that_they_keep() {
        for one in all().unwrap() {
            for rights in [&one.configure, &one.read] {
                let may = rights.contains(r"request\.(kept-streams)");
                assert_eq!(may, one.user == "gateway", "{}: {rights}", one.user);
            }
            let named = one.write.contains("kept-streams");
            assert!(!named, "{}: {}", one.user, one.write);
        }
    }

    #[test]
    fn each_service_binds_its_own_inboxes_only_and_cannot_make_their_exchange_another_one() {
        for one in all().unwrap() {
            let own = format!(r"^nt\.inbox\.{}\.[^*#]+$", one.user);
            assert_eq!(one.topics.read, own);
            assert_eq!(one.topics.exchange, "amq.topic");
            for (rights, may) in [
                (&one.configure, false),
                (&one.write, true),
                (&one.read, true),
            ] {
                assert_eq!(
                    rights.contains(r"amq\.topic"),
                    may,
                    "{}: {rights}",
                    one.user
                );
            }
        }
    }

    #[test]
    fn commands_are_two_a_service() {
        let text = commands(&all().unwrap(), "it's");
        assert_eq!(text.lines().count(), 2 * DEPLOYED.len());
        let keys = r"rabbitmqctl set_topic_permissions -p 'it'\''s' config amq.topic '^nt\.inbox\.[^*#]+$' '^nt\.inbox\.config\.[^*#]+$'";
        let names = r"rabbitmqctl set_permissions -p 'it'\''s' config '^(";
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(keys));
        assert!(
            lines.next().is_some_and(|line| line.starts_with(names)),
            "{text}"
        );
    }
}
