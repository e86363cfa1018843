//! What costs much: to check, and to keep.

use serde_json::{Value, json};
use tg_threads::{BadListener, Delivery, Directory, Kind, Listener, Outcome, Turn};

use crate::world::{Mesh, agent, caller, delivery, object, tool};

fn takes(name: &str, schema: Value) -> Result<Listener, BadListener> {
    Listener::new(name, "Takes it.", Kind::Tool)?.takes("textinput", object(schema))
}

/// A listener each of whose numbers is checked many times.
fn heavy() -> Listener {
    let all = vec![json!({"type": "number"}); 900];
    let schema = json!({"properties": {"a": {"items": {"allOf": all}}}});
    takes("heavy", schema).unwrap()
}

fn numbers(count: usize) -> Value {
    json!({"a": vec![1; count]})
}

/// A message that a listener has.
fn given(mesh: &mut Mesh, name: &str) -> Delivery {
    let (_, effects) = mesh.enter(caller(None), name, "textinput", b"{}");
    delivery(&effects)
}

/// Each value of a body may be looked at by each value of its schema: a small body can cost as much as a large one.
#[test]
fn a_check_costs_the_bytes_of_the_body_times_the_values_of_the_schema() {
    let strict = takes(
        "strict",
        json!({"properties": {"text": {"pattern": "^(a|b)+$"}}}),
    );
    let mut mesh = Mesh::of([heavy(), strict.unwrap(), tool("light")]);
    let got = given(&mut mesh, "light");
    let directory = &mesh.directory;
    let is_costly = |turn: Turn| Outcome::Turn(turn).is_costly(directory, &got);
    let sent = |to: &str, count| is_costly(Turn::forward(to, "textinput", numbers(count)));
    assert!(sent("heavy", 1000) && !sent("heavy", 10) && !sent("light", 1000));
    // Those of one return count together.
    assert!(!sent("heavy", 100));
    let several = (0..10).fold(Turn::none(), |turn, _| {
        turn.and_forward("heavy", "textinput", numbers(100))
    });
    assert!(is_costly(several));
    // So does what is only read and written again.
    let said = |length| Turn::respond("textinput", json!({"text": "x".repeat(length)}));
    assert!(is_costly(said(70_000)) && !is_costly(said(1000)));
    let from_outside = |to: &str| directory.is_costly(to, "textinput", 1000);
    assert!(from_outside("heavy") && from_outside("strict"));
    assert!(!from_outside("light") && !from_outside("nobody"));
}

/// What an agent may not reach weighs as much as what is not there: nobody learns by the time of an answer what there is.
#[test]
fn a_check_costs_nothing_of_a_listener_that_may_not_be_reached() {
    let listeners = [agent("friend", &["heavy"]), agent("other", &[]), heavy()];
    let mut mesh = Mesh::of(listeners);
    let [friend, other] = ["friend", "other"].map(|name| given(&mut mesh, name));
    let is_costly = |by: &Delivery, to: &str| {
        let sent = Turn::forward(to, "textinput", numbers(1000));
        Outcome::Turn(sent).is_costly(&mesh.directory, by)
    };
    assert!(is_costly(&friend, "heavy"));
    assert!(!is_costly(&other, "heavy") && !is_costly(&other, "nosuch"));
}

/// The patterns of a workspace have one bound for their compiled size, however many schemas they are in.
#[test]
fn the_patterns_of_all_listeners_have_a_bounded_size_together() {
    let with = |name: &str, pattern: &str| {
        takes(name, json!({"properties": {"text": {"pattern": pattern}}}))
    };
    let long = |count: usize| format!("^.{{{count}}}$");
    // The longest that one schema may have: it takes half of that schema's bound or more.
    let counts = (0..20).map(|power| 1_usize << power);
    let fitting = counts.take_while(|count| with("one", &long(*count)).is_ok());
    let longest = long(fitting.last().unwrap());
    let names: Vec<_> = (0..40).map(|number| format!("one-{number}")).collect();
    let all = |pattern: &str| {
        let listeners = names.iter().map(|name| with(name, pattern).unwrap());
        Directory::new(listeners).1
    };
    let refused = all(&longest);
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|(_, why)| *why == BadListener::Patterns));
    assert!(all("^a[b-z]+$").is_empty());
}
