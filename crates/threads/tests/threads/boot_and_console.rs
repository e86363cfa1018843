//! The start, and a console that is scripted.

use serde_json::json;
use tg_threads::console::{BANNER, Console, HINT, Prompt, Step, UNKNOWN, route};
use tg_threads::{Effect, Limits, Name, Outcome, Registry, Room, Turn};

use crate::world::{Counted, Mesh, caller, says, tool};

/// 133: one boot on the root thread, before anything; the root is made once.
#[test]
fn line_133_one_boot_on_the_root_thread() {
    let mesh = Mesh::of([tool("greeter")]);
    let boot = mesh.boot.envelope();
    assert_eq!(Some(boot.thread), mesh.pump.registry().root());
    assert_eq!(
        (boot.from.as_str(), boot.to.as_str()),
        ("system", "system.boot")
    );
    let said =
        json!({"organism_name": "mesh", "timestamp": "2026-01-01T00:00:00Z", "listener_count": 4});
    assert_eq!(serde_json::to_value(&boot.payload).unwrap(), said);
    let mut world = Counted::default();
    let mut registry = Registry::new(Limits::default(), Room::default());
    let name = Name::any("mesh").unwrap();
    let root = registry.initialize_root(&name, &mut world);
    assert_eq!(registry.initialize_root(&name, &mut world), root);
    assert_eq!(mesh.chain(boot.thread).unwrap(), "system mesh");
    // A boot from anywhere else is refused, also by the listener that takes the one of the system.
    let mut mesh = mesh;
    for to in ["greeter", "system.boot"] {
        mesh.external(caller(None), to, "boot", b"{}");
        assert_eq!(mesh.out.last().unwrap().kind.as_str(), "huh");
    }
    assert!(mesh.got.is_empty());
}

/// The console's line as a message, and what of it comes back as prompts.
fn say(mesh: &mut Mesh, console: &mut Console, text: &str, target: &str) -> Vec<String> {
    let raw = json!({"text": text, "target": target}).to_string();
    let thread = console
        .thread()
        .and_then(|thread| tg_threads::ThreadId::parse(thread).ok());
    let by = caller(thread);
    let (thread, effects) = mesh.enter(by, "console-router", "consoleinput", raw.as_bytes());
    console.on_thread(&thread.to_string());
    let before = mesh.out.len();
    let mut waiting = std::collections::VecDeque::from(effects);
    while let Some(effect) = waiting.pop_front() {
        match effect {
            Effect::Deliver(got) if got.envelope().to == Name::console_router() => {
                let turn = route(&mesh.directory, &got);
                waiting.extend(mesh.back(&got, Outcome::Turn(turn)));
            }
            Effect::Deliver(got) => {
                let turn = Turn::respond("textinput", says("hello\nyou"));
                waiting.extend(mesh.back(&got, Outcome::Turn(turn)));
            }
            Effect::Door(envelope) => mesh.out.push(envelope),
            Effect::Ended(_) | Effect::Note(_) => {}
        }
    }
    let prompts = mesh.out[before..]
        .iter()
        .map(|out| Prompt::read(&out.payload));
    prompts.flat_map(|prompt| console.shows(&prompt)).collect()
}

/// 150: the script of a person, line by line.
#[test]
fn line_150_a_console_is_scripted() {
    let mut mesh = Mesh::of([tool("greeter")]);
    let mut console = Console::default();
    let banner = Prompt {
        show_banner: true,
        ..Prompt::default()
    };
    assert_eq!(console.shows(&banner), [BANNER]);
    assert_eq!(console.line(Some("")), Step::Again(Vec::new()));
    assert_eq!(console.line(Some("/listeners")), Step::Listeners);
    assert_eq!(
        console.line(Some("/dance")),
        Step::Again(vec![UNKNOWN.to_owned()])
    );
    assert_eq!(console.line(Some("hi")), Step::Again(vec![HINT.to_owned()]));
    let Step::Send { text, target } = console.line(Some("@greeter hi")) else {
        panic!("nothing is sent");
    };
    let shown = say(&mut mesh, &mut console, &text, &target);
    assert_eq!(shown, ["[greeter] hello", "[greeter] you"]);
    let first = console.thread().map(str::to_owned);
    let id = first.as_ref().unwrap();
    let status = [
        format!("running, thread {}", &id[..8]),
        format!("its whole id: {id}"),
    ];
    assert_eq!(console.line(Some("/status")), Step::Again(status.to_vec()));
    // The conversation goes on under its thread, however long it is.
    for _ in 0..100 {
        assert_eq!(
            say(&mut mesh, &mut console, "again", "greeter"),
            ["[greeter] hello", "[greeter] you"]
        );
    }
    assert_eq!(console.thread().map(str::to_owned), first);
    let shown = say(&mut mesh, &mut console, "x", "nobody");
    let routing =
        "[system] Message could not be delivered. Please verify your target and try again.";
    assert_eq!(shown, [routing]);
    let Step::Again(history) = console.line(Some("/history")) else {
        panic!("no history");
    };
    assert_eq!(history[0], "> @greeter hi");
    assert_eq!(console.line(Some("/quit")), Step::Quit);
    assert_eq!(console.line(None), Step::Quit);
}
