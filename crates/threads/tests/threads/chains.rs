//! Forwards, responds, what they end, and what nobody learns of chains.

use std::collections::HashMap;

use serde_json::json;
use tg_threads::{Effect, Limits, Name, Outcome, Refused, Registry, Room, ThreadId, Turn};

use crate::world::{Counted, Mesh, agent, caller, delivery, place, says, tool};

fn text(delivery: &tg_threads::Delivery) -> String {
    delivery.envelope().content().text("text").to_owned()
}

/// 134: a given id is kept where it may be; everything else gets a new one.
#[test]
fn line_134_a_given_thread_is_kept() {
    let mut mesh = Mesh::of([tool("greeter")]);
    mesh.handles("greeter", |_| Turn::respond("textinput", says("hi")));
    let own = ThreadId::parse("6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70").unwrap();
    assert_eq!(mesh.send_on(Some(own), "greeter", "a"), own);
    assert_eq!(mesh.send_on(Some(own), "greeter", "b"), own);
    for bad in [
        "abc",
        "",
        "6F1F6A52-6F0C-4D3E-9A53-3A1C4B1E2D70",
        "6f1f6a52-6f0c-1d3e-9a53-3a1c4b1e2d70",
    ] {
        assert!(ThreadId::parse(bad).is_err(), "{bad}");
    }
    let new = mesh.send_on(ThreadId::parse("abc").ok(), "greeter", "c");
    assert!(ThreadId::parse(&new.to_string()).is_ok());
    // Of another user, another workspace, or ended: silently another one.
    let mut other = caller(Some(own));
    other.principal = "bob".to_owned();
    assert_ne!(mesh.external(other, "greeter", "textinput", b"{}"), own);
    let mut other = caller(Some(own));
    other.place = place("other");
    assert_ne!(mesh.external(other, "greeter", "textinput", b"{}"), own);
    assert!(mesh.pump.close(own, &caller(None)).contains(&own));
    assert_ne!(mesh.send_on(Some(own), "greeter", "d"), own);
}

/// 134: an id that another workspace has or had is silently another one, also for what cannot be processed. Whoever has it keeps it.
#[test]
fn line_134_an_id_of_another_workspace_is_taken() {
    let room = Room::default();
    let workspace = || {
        let mut mesh = Mesh::within([tool("echo")], Limits::default(), room.clone());
        mesh.handles("echo", |_| Turn::respond("textinput", says("hi")));
        mesh
    };
    let [mut one, mut other] = [workspace(), workspace()];
    let live = ThreadId::parse("6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70").unwrap();
    let ended = ThreadId::parse("6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d71").unwrap();
    for id in [live, ended] {
        assert_eq!(one.send_on(Some(id), "echo", "a"), id);
    }
    assert!(one.pump.close(ended, &caller(None)).contains(&ended));
    for id in [live, ended] {
        assert_ne!(other.send_on(Some(id), "echo", "a"), id);
        assert_ne!(other.send_on(Some(id), "ghost", "a"), id);
    }
    assert_eq!(one.send_on(Some(live), "echo", "b"), live);
    // Of a workspace that is gone, all have ended.
    drop(one);
    for id in [live, ended] {
        assert_ne!(other.send_on(Some(id), "echo", "b"), id);
    }
}

/// A thread has one beginning. One of a later start under the same id has another: what is kept of the earlier one is not its own.
#[test]
fn a_thread_of_a_later_start_began_later() {
    let id = ThreadId::parse("6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70").ok();
    let begun = [5, 10].map(|start| {
        let mut mesh = Mesh::of([tool("a"), tool("b")]);
        mesh.handles("a", |got| match got.metadata().from_id.as_str() {
            "b" => Turn::respond("textinput", says("done")),
            _ => Turn::forward("b", "textinput", says("x")),
        });
        mesh.handles("b", |_| Turn::respond("textinput", says("hi")));
        for now in [start, start + 1] {
            mesh.world.now = now;
            assert_eq!(mesh.send_on(id, "a", "x"), id.unwrap());
        }
        let got = mesh.got.iter().map(|got| got.metadata().since);
        got.collect::<Vec<_>>()
    });
    // What `a` called ended with its respond: the second time it is another thread.
    assert_eq!(begun, [[5, 5, 5, 5, 6, 5], [10, 10, 10, 10, 11, 10]]);
}

/// Ids of ended threads are remembered up to a bound of each workspace and one of all: at both the oldest are forgotten.
#[test]
fn the_oldest_ended_ids_are_forgotten() {
    let id = |number: u8| ThreadId::from_random([number; 16]);
    let name = Name::any("a").unwrap();
    let limits = Limits {
        ended: 6,
        ..Limits::default()
    };
    // Eight of all workspaces.
    let room = Room::of(2);
    let [mut flood, mut quiet] = [room.clone(), room].map(|room| Registry::new(limits, room));
    let ends = |registry: &mut Registry, number| {
        let by = caller(Some(id(number)));
        let registered = registry.register(&by, &name, &mut Counted::default());
        assert_eq!(registered, Ok(id(number)));
        assert_eq!(registry.terminate(id(number)), [id(number)]);
    };
    let is_free = |registry: &Registry, number| {
        let by = caller(Some(id(number)));
        registry.id_for(&by, &mut Counted::default()) == id(number)
    };
    ends(&mut quiet, 1);
    (10..17).for_each(|number| ends(&mut flood, number));
    // The seventh of its own pushed out its first, and nothing of the other workspace.
    assert!(is_free(&quiet, 10) && !is_free(&quiet, 11) && !is_free(&flood, 1));
    ends(&mut quiet, 2);
    assert!(!is_free(&flood, 1));
    ends(&mut quiet, 3);
    assert!(is_free(&flood, 1) && !is_free(&flood, 2) && !is_free(&flood, 11));
    ends(&mut quiet, 4);
    assert!(is_free(&flood, 11) && !is_free(&flood, 12) && !is_free(&flood, 2));
}

/// 135: two messages from outside never share a thread.
#[test]
fn line_135_messages_from_outside_are_apart() {
    let mut mesh = Mesh::of([tool("counter")]);
    let mut counts: HashMap<ThreadId, u32> = HashMap::new();
    mesh.handles("counter", move |delivery| {
        let count = counts.entry(delivery.metadata().thread_id).or_default();
        *count += 1;
        Turn::respond("textinput", says(&count.to_string()))
    });
    let (one, two) = (mesh.send("counter", "a"), mesh.send("counter", "a"));
    assert_ne!(one, two);
    let said: Vec<_> = mesh
        .out
        .iter()
        .map(|out| out.content().text("text").to_owned())
        .collect();
    assert_eq!(said, ["1", "1"]);
}

/// 136, 137: each sees the hop before it alone; a respond comes on the caller's own thread.
#[test]
fn line_136_137_each_sees_the_hop_before_it() {
    let mut mesh = Mesh::of([tool("a"), tool("b"), tool("c")]);
    mesh.handles("a", |got| match got.metadata().from_id.as_str() {
        "b" => Turn::respond("textinput", says("done")),
        _ => Turn::forward("b", "textinput", says("x")),
    });
    mesh.handles("b", |got| match got.metadata().from_id.as_str() {
        "c" => Turn::respond("textinput", says("done")),
        _ => Turn::forward("c", "textinput", says("x")),
    });
    mesh.handles("c", |_| Turn::respond("textinput", says("found")));
    let first = mesh.send("a", "x");
    let hops: Vec<_> = mesh
        .got
        .iter()
        .map(|got| format!("{}<{}", got.envelope().to, got.metadata().from_id))
        .collect();
    assert_eq!(hops, ["a<console", "b<a", "c<b", "b<c", "a<b"]);
    let threads: Vec<_> = mesh
        .got
        .iter()
        .map(|got| got.metadata().thread_id)
        .collect();
    assert_eq!(threads[0], first);
    assert_ne!(threads[0], threads[1]);
    assert_ne!(threads[1], threads[2]);
    assert_eq!((threads[3], threads[4]), (threads[1], threads[0]));
    // All that a handler is told, and no name but its own hop's.
    let told = serde_json::to_string(mesh.got[2].metadata()).unwrap();
    assert!(
        !told.contains("console") && !told.contains("\"a\""),
        "{told}"
    );
    assert_eq!(mesh.out.len(), 1);
    assert_eq!(mesh.out[0].to.as_str(), "console");
}

/// The trace of a run names the thread of whoever called; a first message from outside has none, and handlers do not get it.
#[test]
fn a_message_has_the_thread_of_its_caller() {
    let mut mesh = Mesh::of([tool("a"), tool("b")]);
    mesh.handles("a", |got| match got.metadata().from_id.as_str() {
        "b" => Turn::respond("textinput", says("done")),
        _ => Turn::forward("b", "textinput", says("x")),
    });
    mesh.handles("b", |_| Turn::respond("textinput", says("found")));
    let first = mesh.send("a", "x");
    let got = mesh.got.iter();
    let parents: Vec<_> = got.map(tg_threads::Delivery::parent_thread).collect();
    assert_eq!(parents, [None, Some(first), None]);
    let read = serde_json::to_string(mesh.got[1].metadata()).unwrap();
    assert!(!read.contains(&first.to_string()), "{read}");
    // By now whoever is outside has a thread: the answer came on it.
    mesh.send_on(Some(first), "a", "y");
    assert_eq!(mesh.got[3].parent_thread(), Some(mesh.out[0].thread));
}

/// 138: what a sub-listener keeps lives as long as its caller's turn.
#[test]
fn line_138_state_dies_when_the_caller_responds() {
    let mut mesh = Mesh::of([tool("researcher"), tool("calculator")]);
    let mut kept: HashMap<ThreadId, String> = HashMap::new();
    mesh.handles("calculator", move |got| {
        let thread = got.metadata().thread_id;
        match text(got).strip_prefix("store ") {
            Some(value) => {
                kept.insert(thread, value.to_owned());
                Turn::respond("textinput", says("stored"))
            }
            None => {
                let value = kept
                    .get(&thread)
                    .cloned()
                    .unwrap_or_else(|| "nothing".to_owned());
                Turn::respond("textinput", says(&value))
            }
        }
    });
    mesh.handles("researcher", |got| match text(got).as_str() {
        "first" => Turn::forward("calculator", "textinput", says("store 5")),
        "stored" | "second" => Turn::forward("calculator", "textinput", says("recall")),
        answer => Turn::respond("textinput", says(answer)),
    });
    let first = mesh.send("researcher", "first");
    assert_eq!(mesh.out[0].content().text("text"), "5");
    let used: Vec<_> = mesh.got_by("calculator");
    let (t2, again) = (used[0].metadata().thread_id, used[1].metadata().thread_id);
    assert_eq!(t2, again);
    assert!(mesh.ended.contains(&t2) && !mesh.ended.contains(&first));
    assert_eq!(mesh.send_on(Some(first), "researcher", "second"), first);
    assert_eq!(mesh.out[1].content().text("text"), "nothing");
    assert_ne!(mesh.got_by("calculator")[2].metadata().thread_id, t2);
}

/// 139: a late answer is dropped; the caller sees one.
#[test]
fn line_139_a_late_answer_is_dropped() {
    let mut mesh = Mesh::of([tool("boss"), tool("a"), tool("b")]);
    let raw = says("x").to_string();
    let (_, effects) = mesh.enter(caller(None), "boss", "textinput", raw.as_bytes());
    let boss = delivery(&effects);
    let both = Turn::forward("a", "textinput", says("x")).and_forward("b", "textinput", says("x"));
    let effects = mesh.back(&boss, Outcome::Turn(both));
    let [Effect::Deliver(a), Effect::Deliver(b)] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    let effects = mesh.back(a, Outcome::Turn(Turn::respond("textinput", says("a"))));
    let boss = delivery(&effects);
    let effects = mesh.back(
        &boss,
        Outcome::Turn(Turn::respond("textinput", says("all"))),
    );
    mesh.run(effects);
    let late = mesh.back(b, Outcome::Turn(Turn::respond("textinput", says("b"))));
    assert!(matches!(late.as_slice(), [Effect::Note(_)]), "{late:?}");
    assert_eq!(mesh.out.len(), 1);
    assert!(mesh.ended.contains(&b.metadata().thread_id));
}

/// 140: none sends nothing, and ends the tree if nothing else is in progress.
#[test]
fn line_140_none_cleans_up() {
    let mut mesh = Mesh::of([tool("sink"), tool("fan")]);
    mesh.handles("sink", |_| Turn::none());
    mesh.handles("fan", |_| {
        Turn::forward("sink", "textinput", says("x")).and_forward("fan", "textinput", says("x"))
    });
    let thread = mesh.send("sink", "x");
    assert!(mesh.out.is_empty() && mesh.got.len() == 1);
    assert!(mesh.ended.contains(&thread));
    assert_eq!(mesh.pump.registry().live(), 0);
    // While another message is in progress, the tree stays.
    let (first, effects) = mesh.enter(caller(None), "fan", "textinput", b"{}");
    let fan = delivery(&effects);
    let both =
        Turn::forward("sink", "textinput", says("x")).and_forward("fan", "textinput", says("y"));
    let effects = mesh.back(&fan, Outcome::Turn(both));
    let [Effect::Deliver(sink), Effect::Deliver(fan)] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert!(mesh.back(sink, Outcome::Turn(Turn::none())).is_empty());
    assert!(mesh.pump.registry().is_live(first));
    let effects = mesh.back(fan, Outcome::Turn(Turn::none()));
    assert!(
        matches!(effects.as_slice(), [Effect::Ended(all)] if all.contains(&first)),
        "{effects:?}"
    );
    assert_eq!(mesh.pump.registry().live(), 0);
}

/// 141: a respond above everybody sends nothing, and is no error.
#[test]
fn line_141_an_exhausted_chain_sends_nothing() {
    let mut mesh = Mesh::of([]);
    let boot = mesh.boot.clone();
    let respond = Turn::respond("textinput", says("x"));
    assert!(mesh.back(&boot, Outcome::Turn(respond)).is_empty());
    assert!(mesh.pump.registry().is_live(boot.metadata().thread_id));
    // Nor is there anybody above whoever came in from outside.
    let mut world = Counted::default();
    let mut registry = Registry::new(Limits::default(), Room::default());
    let name = Name::any("a").unwrap();
    let first = registry.register(&caller(None), &name, &mut world).unwrap();
    let above = registry.prune(first, &mut world).unwrap();
    let (target, thread) = above.expect("whoever sent it");
    assert_eq!(target, Name::console());
    assert_eq!(registry.prune(thread, &mut world), Ok(None));
    // A thread that has ended is an error, which is another thing.
    registry.terminate(first);
    assert_eq!(registry.prune(first, &mut world), Err(Refused::Ended));
}

/// 142: names have dots; one name goes at a time.
#[test]
fn line_142_dots_split_nothing() {
    let mut mesh = Mesh::of([tool("team.lead"), tool("team.lead.math.add")]);
    let raw = says("x").to_string();
    let (first, effects) = mesh.enter(caller(None), "team.lead", "textinput", raw.as_bytes());
    let lead = delivery(&effects);
    let turn = Turn::forward("team.lead.math.add", "textinput", says("x"));
    let add = delivery(&mesh.back(&lead, Outcome::Turn(turn)));
    let thread = add.metadata().thread_id;
    let chain = "system mesh console team.lead team.lead.math.add";
    assert_eq!(mesh.chain(thread).unwrap(), chain);
    let up = delivery(&mesh.back(&add, Outcome::Turn(Turn::respond("textinput", says("3")))));
    assert_eq!(
        (up.envelope().to.as_str(), up.envelope().thread),
        ("team.lead", first)
    );
}

/// 144: an agent without peers has itself and its caller.
#[test]
fn line_144_an_agent_without_peers() {
    let mut mesh = Mesh::of([agent("thinker", &[]), tool("greeter")]);
    mesh.handles("thinker", |got| {
        match (got.envelope().kind.as_str(), text(got).as_str()) {
            ("systemerror", _) => Turn::forward("thinker", "textinput", says("think")),
            (_, "think") => Turn::respond("textinput", says("thought")),
            _ => Turn::forward("greeter", "textinput", says("hi")),
        }
    });
    let first = mesh.send("thinker", "x");
    let got = mesh.got_by("thinker");
    let [asked, refused, itself] = got.as_slice() else {
        panic!("{got:?}");
    };
    assert!(!asked.metadata().is_self_call && !refused.metadata().is_self_call);
    assert!(itself.metadata().is_self_call);
    assert_eq!(itself.metadata().from_id.as_str(), "thinker");
    assert_eq!(
        itself.metadata().own_name.as_ref().unwrap().as_str(),
        "thinker"
    );
    assert!(got.iter().all(|one| one.metadata().thread_id == first));
    assert_eq!(mesh.out[0].content().text("text"), "thought");
}

/// A loop of an agent over itself ends, and says that another try makes no sense.
#[test]
fn a_loop_over_oneself_ends() {
    let mut mesh = Mesh::of([agent("thinker", &[])]);
    mesh.handles("thinker", |_| {
        Turn::forward("thinker", "textinput", says("think"))
    });
    mesh.send("thinker", "x");
    assert_eq!(mesh.got.len(), 51);
    let said = json!({"code": "timeout", "message": "No reply was received in time. You may try again.",
        "retry_allowed": false});
    assert_eq!(serde_json::to_value(&mesh.out[0].payload).unwrap(), said);
}

/// Chains and trees have bounds; what is beyond is a fault of routing.
#[test]
fn chains_and_trees_are_bounded() {
    let limits = Limits {
        chain: 4,
        ..Limits::default()
    };
    let mut mesh = Mesh::with([tool("a"), tool("b")], limits);
    for (name, other) in [("a", "b"), ("b", "a")] {
        mesh.handles(name, move |got| match text(got).as_str() {
            "x" => Turn::forward(other, "textinput", says("x")),
            _ => Turn::respond("textinput", says("enough")),
        });
    }
    mesh.send("a", "x");
    assert_eq!(mesh.notes.len(), 1);
    assert_eq!(mesh.notes[0].why, "the chain is too long");
    // Idle trees end.
    assert!(mesh.pump.registry().live() > 0);
    assert!(mesh.pump.cleanup(24 * 3600 * 1000 - 1).is_empty());
    assert!(!mesh.pump.cleanup(24 * 3600 * 1000).is_empty());
    assert_eq!(mesh.pump.registry().live(), 0);
}

/// Where there is no more room, what was untouched for longest makes it, and is told of; what is in progress stays.
#[test]
fn whoever_floods_pushes_out_their_own() {
    let limits = Limits {
        trees: 4,
        ..Limits::default()
    };
    let mut mesh = Mesh::with([tool("echo")], limits);
    mesh.handles("echo", |_| Turn::respond("textinput", says("x")));
    let flood: Vec<_> = (0..20)
        .map(|round| {
            mesh.world.now = round;
            mesh.send("echo", "x")
        })
        .collect();
    let registry = mesh.pump.registry();
    let live: Vec<_> = flood.iter().filter(|id| registry.is_live(**id)).collect();
    assert_eq!(live, flood[16..].iter().collect::<Vec<_>>());
    let told = flood[..16].iter().all(|id| mesh.ended.contains(id));
    assert!(told, "{:?}", mesh.ended);
    // All are busy: nobody is let in.
    let mut mesh = Mesh::with([tool("echo")], limits);
    for _ in 0..4 {
        let (_, effects) = mesh.enter(caller(None), "echo", "textinput", b"{}");
        assert!(matches!(effects.as_slice(), [Effect::Deliver(_)]));
    }
    let (_, effects) = mesh.enter(caller(None), "echo", "textinput", b"{}");
    let [Effect::Door(refused)] = effects.as_slice() else {
        panic!("{effects:?}");
    };
    assert_eq!(refused.content().text("code"), "routing");
}

/// Two workspaces share the room. One that has half of it goes on with its own; the other keeps what it has.
#[test]
fn a_workspace_pushes_out_nobody_else() {
    let room = Room::of(8);
    let limits = Limits {
        live: 4,
        ..Limits::default()
    };
    let mut both = ["greedy", "quiet"].map(|_| {
        let mut mesh = Mesh::within([tool("echo"), tool("deep")], limits, room.clone());
        mesh.handles("echo", |_| Turn::respond("textinput", says("x")));
        mesh.handles("deep", |_| Turn::forward("echo", "textinput", says("x")));
        mesh
    });
    let kept = both[1].send("echo", "x");
    let flood: Vec<_> = (0..20).map(|_| both[0].send("echo", "x")).collect();
    assert!(both[1].pump.registry().is_live(kept));
    assert_eq!(both[0].pump.registry().live(), 4);
    assert!(both[0].pump.registry().is_live(flood[19]));
    // What there is room for is had: nobody is refused for what the other holds.
    for mesh in &mut both {
        assert!(mesh.out.iter().all(|out| out.kind.as_str() == "textinput"));
    }
    let more = both[1].send("echo", "x");
    assert!(both[1].pump.registry().is_live(more) && both[1].pump.registry().is_live(kept));
    // Where all is taken, and nothing of its own can go, a workspace is refused.
    let mut third = Mesh::within([tool("echo")], limits, room.clone());
    assert_eq!(room.free(), 0);
    let (_, effects) = third.enter(caller(None), "echo", "textinput", b"{}");
    assert!(
        matches!(effects.as_slice(), [Effect::Door(_)]),
        "{effects:?}"
    );
    // What is gone gives its room back.
    drop(both);
    let (_, effects) = third.enter(caller(None), "echo", "textinput", b"{}");
    assert!(
        matches!(effects.as_slice(), [Effect::Deliver(_)]),
        "{effects:?}"
    );
}

/// What a workspace gives up for another is the tree that was untouched for longest, and none that something is in progress of.
#[test]
fn a_workspace_gives_up_what_is_quiet() {
    let room = Room::of(100);
    let mut mesh = Mesh::within([tool("echo")], Limits::default(), room.clone());
    mesh.handles("echo", |_| Turn::respond("textinput", says("x")));
    let (busy, effects) = mesh.enter(caller(None), "echo", "textinput", b"{}");
    assert!(matches!(effects.as_slice(), [Effect::Deliver(_)]));
    mesh.world.now = 1;
    let older = mesh.send("echo", "x");
    mesh.world.now = 2;
    let newer = mesh.send("echo", "x");
    let before = room.free();
    assert_eq!(mesh.pump.registry().quiet(Some(older)), [newer]);
    assert_eq!(mesh.pump.registry().quiet(None), [newer, older]);
    let gone = mesh.pump.give_up(older);
    assert!(gone.contains(&older) && !gone.contains(&newer), "{gone:?}");
    assert_eq!(room.free(), before + gone.len());
    assert!(mesh.pump.give_up(newer).contains(&newer));
    assert!(mesh.pump.registry().quiet(None).is_empty());
    assert!(mesh.pump.registry().is_live(busy));
}

/// A few workspaces whose trees are all busy do not take the last tenth: it is for those that have little.
#[test]
fn the_last_tenth_is_for_workspaces_that_have_little() {
    let room = Room::of(100);
    let mut busy = Mesh::within([tool("echo")], Limits::default(), room.clone());
    let enter = |mesh: &mut Mesh| {
        let (_, effects) = mesh.enter(caller(None), "echo", "textinput", b"{}");
        matches!(effects.as_slice(), [Effect::Deliver(_)])
    };
    let entered = (0..100).filter(|_| enter(&mut busy)).count();
    assert_eq!((entered, room.free()), (90, 10));
    let mut others = Vec::new();
    for _ in 0..5 {
        let mut other = Mesh::within([tool("echo")], Limits::default(), room.clone());
        let entered = (0..3).filter(|_| enter(&mut other)).count();
        assert_eq!(entered, 2);
        others.push(other);
    }
    assert_eq!(room.free(), 0);
}

/// A respond is never lost at a limit: whoever came in from outside gets it, though the tree has all threads that it may.
#[test]
fn a_respond_has_no_limit() {
    let limits = Limits {
        threads: 1,
        ..Limits::default()
    };
    let mut mesh = Mesh::within([tool("echo")], limits, Room::of(1));
    mesh.handles("echo", |got| Turn::respond("textinput", says(&text(got))));
    for _ in 0..3 {
        mesh.send("echo", "hi");
    }
    assert_eq!(mesh.out.len(), 3);
    assert!(
        mesh.out
            .iter()
            .all(|out| out.content().text("text") == "hi")
    );
}

/// A caller goes on with whom it called itself: a thread further down is none that it may name.
#[test]
fn a_caller_goes_on_at_its_own_thread_only() {
    let mut mesh = Mesh::of([tool("a"), tool("b")]);
    let (first, effects) = mesh.enter(caller(None), "a", "textinput", b"{}");
    let forward = Turn::forward("b", "textinput", says("x"));
    let below = delivery(&mesh.back(&delivery(&effects), Outcome::Turn(forward)));
    let below = below.metadata().thread_id;
    let (thread, _) = mesh.enter(caller(Some(below)), "b", "textinput", b"{}");
    assert_ne!(thread, below);
    assert_eq!(mesh.chain(thread).unwrap(), "system mesh console b");
    let (thread, _) = mesh.enter(caller(Some(first)), "a", "textinput", b"{}");
    assert_eq!(thread, first);
}
