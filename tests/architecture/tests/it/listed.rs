//! What is listed with its reasons, so that one more is seen: where services go by what others can do, limits that nobody
//! reads, fakes beside those of `tg-testkit`, and meshes of tests beside its flow.

use std::collections::{BTreeMap, BTreeSet};

use tg_architecture_tests::source::{Source, all, shipped};
use tg_architecture_tests::text::{is_word, line_of};
use tg_architecture_tests::words::places;

/// Where a service does something else among foreign processors: how often, and what.
const BRANCHES: &[(&str, usize, &str)] = &[
    (
        "services/agent/src/handlers/replay.rs",
        1,
        "terms have all their fields",
    ),
    (
        "services/agent/src/run/saying.rs",
        1,
        "a run is not taken up where its asker cannot be found",
    ),
    (
        "services/agent/src/run/remembered.rs",
        1,
        "terms have all their fields",
    ),
    (
        "services/flow/src/operations/blueprints.rs",
        1,
        "whether a blueprint is served is not known",
    ),
    (
        "services/flow/src/operations/presence.rs",
        4,
        "who serves is seen by the consumers of queues",
    ),
    (
        "services/flow/src/operations/teardown.rs",
        1,
        "exchanges of answers are removed, too",
    ),
    (
        "services/flow/src/operations/why.rs",
        1,
        "who serves is not known",
    ),
    (
        "services/gateway/src/handlers/bulk.rs",
        1,
        "stores tell no receipts",
    ),
    (
        "services/knowledge/src/load/mod.rs",
        1,
        "a load is not confirmed by reports",
    ),
    (
        "services/librarian/src/processing/add.rs",
        2,
        "runs are not counted to their end",
    ),
    (
        "services/librarian/src/processing/models.rs",
        2,
        "what is outdated is not taken back; models are not said",
    ),
    (
        "services/librarian/src/processing/outbox.rs",
        1,
        "nobody takes a retraction",
    ),
    (
        "services/librarian/src/processing/start.rs",
        1,
        "runs are not counted to their end",
    ),
    (
        "services/librarian/src/processing/watch.rs",
        1,
        "runs are not counted to their end",
    ),
];

/// How often each file of the services asks what its neighbours can do.
fn branches(sources: &[Source]) -> BTreeMap<&str, usize> {
    let services = sources
        .iter()
        .filter(|one| one.path.starts_with("services/"));
    let counted = services.map(|one| {
        let words = ["Neighbours::of", ".neighbours()"];
        (one.path.as_str(), places(&one.code, &words).len())
    });
    counted.filter(|(_, count)| *count > 0).collect()
}

#[test]
fn where_services_go_by_their_neighbours_is_listed() {
    let sources = shipped();
    let listed = BRANCHES
        .iter()
        .map(|(path, count, _)| (*path, *count))
        .collect();
    assert_eq!(branches(&sources), listed);
    let text = "fn f() { if Neighbours::of(mesh).have_pages() {} }";
    let one = [Source::new("services/a/src/engine/b.rs", text)];
    assert_eq!(
        branches(&one),
        BTreeMap::from([("services/a/src/engine/b.rs", 1)])
    );
}

/// The table of sizes.
const TABLE: &str = "schemas/src/limits.rs";

/// Sizes that only the assertions of the table reckon with, and why they are there.
const RECKONED: &[(&str, &str)] = &[("DEAD_LETTER", "a record as it is: says that each fits")];

/// Constants of the table that no other shipped file names, and no other constant is made of.
fn unread(sources: &[Source]) -> BTreeSet<String> {
    let Some(table) = sources.iter().find(|one| one.path == TABLE) else {
        return BTreeSet::new();
    };
    let body = table.code.split("const _: ()").next().unwrap_or_default();
    let declared = body.match_indices("pub const ").filter_map(|(at, start)| {
        let rest = &body[at + start.len()..];
        let end = rest.bytes().position(|byte| !is_word(byte))?;
        (!rest.starts_with("fn ")).then(|| &rest[..end])
    });
    let others = sources.iter().filter(|one| one.path != TABLE);
    let read: Vec<&str> = others
        .filter(|one| one.code.contains("limits"))
        .map(|one| one.code.as_str())
        .collect();
    declared
        .filter(|name| {
            let in_table = places(body, &[name]).len() > 1;
            !in_table && read.iter().all(|code| places(code, &[name]).is_empty())
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_limit_is_read_by_somebody() {
    let listed = RECKONED
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    assert_eq!(unread(&shipped()), listed, "sizes that nobody reads");
    let table = "pub const A: usize = 1;\npub const B: usize = A;\npub const C: usize = 2;\n\
                 const _: () = { assert!(B < C); };";
    let table = Source::new(TABLE, table);
    let user = Source::new(
        "services/a/src/lib.rs",
        "use tg_schemas::limits;\nfn f() { limits::C; }",
    );
    assert_eq!(unread(&[table, user]), BTreeSet::from(["B".to_owned()]));
}

/// Handlers in tests beside those of `tg-testkit` for the same questions and records, and why.
const FAKES: &[(&str, &str)] = &[
    (
        "crates/mesh/tests/mesh/config_reads.rs",
        "the kit's, which fails where the test says so",
    ),
    ("tests/architecture/", "the texts of this test"),
];

/// Services whose tests over the bus have a mesh of their own instead of the kit's flow, and what they do that it cannot.
const OWN_WORLDS: &[(&str, &str)] = &[
    (
        "agent",
        "the library is the test's: the kit's flow plays it",
    ),
    (
        "config",
        "it is the config service that the kit's flow plays",
    ),
    ("flow", "makes flows itself, and dies with its bus"),
    ("gateway", "flows of two workspaces, and none"),
    ("iam", "serves no flow, and starts again over the same rows"),
    ("librarian", "it is the librarian that the kit's flow plays"),
];

#[test]
fn whose_tests_have_a_mesh_of_their_own_is_listed() {
    let sources = all();
    let flow = |one: &&Source| one.text.contains("TestFlow::");
    let service = |one: &Source| {
        one.path
            .strip_prefix("services/")?
            .split('/')
            .next()
            .map(str::to_owned)
    };
    let every: BTreeSet<String> = sources.iter().filter_map(service).collect();
    let with: BTreeSet<String> = sources.iter().filter(flow).filter_map(service).collect();
    let without: BTreeSet<&str> = every.difference(&with).map(String::as_str).collect();
    let listed: BTreeSet<&str> = OWN_WORLDS.iter().map(|(service, _)| *service).collect();
    assert_eq!(without, listed);
}

/// Tests with a broker of their own, and why: all others have a virtual host of the node that they share, which starts once.
const OWN_NODES: &[(&str, &str)] = &[
    ("crates/bus/tests/conformance/cluster.rs", "kills nodes"),
    (
        "crates/bus/tests/conformance/held.rs",
        "another time for consumers",
    ),
    (
        "crates/bus/tests/conformance/rabbitmq.rs",
        "kills it; reads arguments and bindings",
    ),
    (
        "crates/mesh/tests/mesh/slow.rs",
        "another time for consumers",
    ),
    (
        "services/agent/src/run/tests/held.rs",
        "another time for consumers",
    ),
    (
        "tests/integration/tests/it/a_broker_node_is_lost.rs",
        "kills nodes",
    ),
    (
        "tests/integration/tests/it/each_process_reports.rs",
        "stops it",
    ),
    (
        "tests/integration/tests/it/ingestion_is_exact.rs",
        "kills it",
    ),
    (
        "tests/integration/tests/it/outage_is_survived.rs",
        "kills it",
    ),
    ("tests/integration/tests/it/stops_when_told.rs", "kills it"),
    (
        "tests/integration/tests/it/the_broker_refuses_forgeries.rs",
        "users of its own",
    ),
    (
        "tests/integration/tests/it/tls_to_the_broker.rs",
        "certificates of its own",
    ),
];

#[test]
fn whose_tests_have_a_broker_of_their_own_is_listed() {
    let kit = ["crates/testkit/", "tests/architecture/"];
    let sources = all();
    let of_tests = sources.iter().filter(|one| {
        !one.path.contains("/examples/") && !kit.iter().any(|kit| one.path.starts_with(kit))
    });
    let start =
        |text: &str| text.contains("RabbitNode::start") || text.contains("RabbitCluster::start");
    let found: BTreeSet<&str> = of_tests
        .filter(|one| start(&one.text))
        .map(|one| one.path.as_str())
        .collect();
    let listed: BTreeSet<&str> = OWN_NODES.iter().map(|(path, _)| *path).collect();
    assert_eq!(found, listed);
}

/// What handlers of a text take: the first type of `RequestHandler<…> for` and `RecordConsumer<…> for`.
fn taken(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for start in ["RequestHandler<", "RecordConsumer<"] {
        for (at, _) in text.match_indices(start) {
            let rest = &text[at + start.len()..];
            let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(0);
            let whole = rest.find('>').map_or("", |close| &rest[close..]);
            // One letter is whatever it is for.
            if end > 1 && whole.starts_with("> for ") {
                found.push((at, &rest[..end]));
            }
        }
    }
    found
}

/// Fakes of tests for what the kit has a fake for.
fn second_fakes(sources: &[Source]) -> Vec<String> {
    let of_kit = |one: &&Source| one.path.starts_with("crates/testkit/");
    let kit: BTreeSet<&str> = sources
        .iter()
        .filter(of_kit)
        .flat_map(|one| taken(&one.text))
        .map(|(_, kind)| kind)
        .collect();
    let mut found = Vec::new();
    for one in sources.iter().filter(|one| !of_kit(one)) {
        for (at, kind) in taken(&one.text) {
            let shipped = !one.test && one.code[at..].starts_with("Re");
            if kit.contains(kind) && !shipped {
                found.push(format!("{}:{}: {kind}", one.path, line_of(&one.text, at)));
            }
        }
    }
    found
}

#[test]
fn there_is_one_fake_each() {
    let excepted = |one: &String| FAKES.iter().any(|(path, _)| one.starts_with(path));
    let found: Vec<String> = second_fakes(&all())
        .into_iter()
        .filter(|one| !excepted(one))
        .collect();
    assert!(
        found.is_empty(),
        "fakes beside the kit's:\n  {}",
        found.join("\n  ")
    );
    let kit = "impl RequestHandler<LibrarianRequest, LibrarianResponse> for Library {}";
    let second = "#[cfg(test)]\nmod tests {\n    impl RequestHandler<LibrarianRequest, LibrarianResponse> for Other {}\n}";
    let shelf = |path: &str, text: &str| Source::new(path, text);
    let sources = [
        shelf("crates/testkit/src/fakes.rs", kit),
        shelf("services/a/src/b.rs", second),
    ];
    assert_eq!(
        second_fakes(&sources),
        ["services/a/src/b.rs:3: LibrarianRequest"]
    );
    let real = [
        shelf("crates/testkit/src/fakes.rs", kit),
        shelf("services/librarian/src/b.rs", kit),
    ];
    assert!(second_fakes(&real).is_empty());
}
