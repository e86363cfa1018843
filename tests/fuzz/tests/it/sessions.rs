//! What clients say of sessions and operators of agents: cursors, and files of agents.

use tg_sessions::engine::{agent_file, cursor};
use tg_testkit::fuzz::run;

#[test]
fn cursors_of_listings() {
    let key = cursor::Key {
        created: 7,
        id: "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70".to_owned(),
    };
    let seeds = [
        cursor::of_session(&key),
        cursor::of_agent(&key),
        cursor::of_message(7),
    ];
    let seeds: Vec<&[u8]> = seeds.iter().map(|text| text.as_bytes()).collect();
    run("cursors of listings", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Some(key) = cursor::session(&text) {
            assert_eq!(cursor::session(&cursor::of_session(&key)), Some(key));
        }
        if let Some(key) = cursor::agent(&text) {
            assert_eq!(cursor::agent(&cursor::of_agent(&key)), Some(key));
        }
        if let Some(seq) = cursor::message(&text) {
            assert_eq!(cursor::message(&cursor::of_message(seq)), Some(seq));
        }
    });
}

#[test]
fn files_of_agents() {
    let seeds: [&[u8]; 2] = [
        b"name: a\nmodel: m\ntools: [x, y]\nrag_top_k: 3\ntemperature: 0.5\n",
        b"name: &a a\nmodel: *a\ncapabilities: [{name: c, tags: [t], strength: 0.5}]\n",
    ];
    run("files of agents", &seeds, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Err(errors) = agent_file::read(&text) {
            assert!(!errors.is_empty());
        }
    });
}
