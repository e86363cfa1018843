//! Types and workspaces read page by page.

use std::collections::BTreeMap;
use std::sync::Arc;

use tg_schemas::{Error, ErrorCode};

use super::*;

/// Reads a type page by page; how many pages it took, and the keys by workspace.
fn paged(rows: &Rows, operation: &str, workspace: &str) -> (usize, Vec<(String, String)>) {
    let mut ask = ConfigRequest {
        r#type: "tool".into(),
        limit: i64::MAX,
        ..request(operation, workspace)
    };
    let (mut pages, mut keys) = (0, Vec::new());
    loop {
        let reply = answer(rows, ReadScope::System(workspace), &ask).unwrap();
        pages += 1;
        let bytes: usize = reply.values.iter().map(|row| row.key.len()).sum();
        assert!(bytes <= tg_schemas::limits::PAGE_BYTES + tg_schemas::limits::CONFIG_VALUE);
        let values = reply.values.iter();
        keys.extend(values.map(|row| (row.workspace.to_string(), row.key.to_string())));
        if reply.next.is_empty() {
            return (pages, keys);
        }
        ask.after = reply.next;
    }
}

#[test]
fn a_type_of_any_size_is_read_page_by_page() {
    let mut rows = Rows::new(10, []);
    let large = "x".repeat(400_000);
    for workspace in ["a", "b", "c"] {
        for n in 0..7 {
            let name = format!("k{n}");
            put(&mut rows, workspace, vec![value("tool", &name, &large)]);
        }
        put(&mut rows, workspace, vec![value("other", "k", "{}")]);
    }
    let all: Vec<_> = ["a", "b", "c"]
        .iter()
        .flat_map(|ws| (0..7).map(move |n| ((*ws).to_owned(), format!("k{n}"))))
        .collect();
    assert_eq!(paged(&rows, "getvalues-all-ws", ""), (7, all.clone()));
    let (pages, own) = paged(&rows, "getvalues", "b");
    let keys: Vec<_> = own.into_iter().map(|(_, key)| key).collect();
    let expected: Vec<_> = (0..7).map(|n| format!("k{n}")).collect();
    assert_eq!((pages, keys), (3, expected));
    // Keys alone need no pages, and who asks for none gets everything.
    assert_eq!(paged(&rows, "getkeys-all-ws", ""), (1, all));
    let ask = ConfigRequest {
        r#type: "tool".into(),
        ..request("getvalues-all-ws", "")
    };
    let reply = answer(&rows, ReadScope::System(""), &ask).unwrap();
    assert_eq!((reply.values.len(), reply.next.as_str()), (21, ""));
}

/// Asks one workspace's queue, and says what the answer holds and where the next page begins.
fn a_page(rows: &Rows, ask: &ConfigRequest) -> Result<(Vec<String>, String), Error> {
    let reply = answer(rows, ReadScope::Workspace("acme"), ask)?;
    let config = reply.config.iter();
    let of_type = |(kind, values): (&Arc<str>, &BTreeMap<Arc<str>, Arc<str>>)| {
        let names = values.keys().map(|key| format!("{kind}/{key}"));
        names.collect::<Vec<_>>()
    };
    let named = reply.directory.iter().map(|key| key.to_string());
    let valued = reply.values.iter().map(|row| row.key.to_string());
    let shown = config.flat_map(of_type).chain(named).chain(valued);
    Ok((shown.collect(), reply.next))
}

#[test]
fn pages_go_on_where_the_last_ended_whatever_came_or_went() {
    let filled = || {
        let mut rows = Rows::new(10, []);
        let of = |kind: &str| ["a", "b", "c"].map(|key| value(kind, key, "{}")).to_vec();
        put(&mut rows, "acme", of("prompt"));
        put(&mut rows, "acme", of("tool"));
        put(&mut rows, "other", of("tool"));
        rows
    };
    for (operation, first, second) in [
        ("list", vec!["a", "b"], vec!["bb", "c"]),
        ("getvalues", vec!["a", "b"], vec!["bb", "c"]),
        (
            "config",
            vec!["prompt/a", "prompt/b", "prompt/c", "tool/a", "tool/b"],
            vec!["tool/bb", "tool/c"],
        ),
    ] {
        let mut rows = filled();
        let ask = ConfigRequest {
            r#type: "tool".into(),
            limit: first.len() as i64,
            ..request(operation, "")
        };
        let (found, next) = a_page(&rows, &ask).unwrap();
        assert_eq!(found, first, "{operation}");
        // The last row seen goes, one comes before it and one after.
        run(
            &mut rows,
            ConfigRequest {
                keys: vec![key("tool", "b")],
                ..request("delete", "acme")
            },
        );
        let come = ["0", "bb"].map(|key| value("tool", key, "{}")).to_vec();
        put(&mut rows, "acme", come);
        let ask = ConfigRequest { after: next, ..ask };
        let (found, end) = a_page(&rows, &ask).unwrap();
        assert_eq!(
            (found, end.as_str()),
            (second.iter().map(|one| (*one).to_owned()).collect(), ""),
            "{operation}"
        );
        let wrong = |limit, after: &str| {
            let ask = ConfigRequest {
                limit,
                after: after.to_owned(),
                ..ask.clone()
            };
            a_page(&rows, &ask).unwrap_err().message
        };
        assert_eq!(
            wrong(1, "nonsense"),
            "after: is not the 'next' of an earlier page"
        );
        assert_eq!(wrong(-1, ""), "limit: must not be negative");
        // With a cursor and no limit a page is as large as usual; with neither everything comes at once.
        let (all, end) = a_page(
            &rows,
            &ConfigRequest {
                limit: 0,
                after: String::new(),
                ..ask.clone()
            },
        )
        .unwrap();
        assert!(all.len() >= 4 && end.is_empty(), "{all:?}");
    }
}

#[test]
fn a_whole_configuration_ends_its_pages_where_they_are_large() {
    let mut rows = Rows::new(10, []);
    let large = "x".repeat(700_000);
    for n in 0..27 {
        put(
            &mut rows,
            "acme",
            vec![value(&format!("type-{}", n % 3), &format!("k{n}"), &large)],
        );
    }
    let mut ask = ConfigRequest {
        limit: 1000,
        ..request("config", "")
    };
    let (mut seen, mut pages) = (Vec::new(), 0);
    loop {
        let (found, next) = a_page(&rows, &ask).unwrap();
        assert!(found.len() <= 2, "{found:?}");
        seen.extend(found);
        pages += 1;
        if next.is_empty() {
            break;
        }
        ask.after = next;
    }
    assert_eq!((seen.len(), pages), (27, 14));
    // As a whole it fits into no answer, which is said at once.
    let error = a_page(&rows, &request("config", "")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::TooLarge);
    assert!(error.message.contains("(limit, after)"), "{error}");
}
