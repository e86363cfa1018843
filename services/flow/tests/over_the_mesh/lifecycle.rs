//! Flows start, repeat, conflict and stop.

use std::time::Duration;

use serde_json::{Value, json};
use tg_mesh::bus::{Envelope, PublishMode, Routed, Target};
use tg_schemas::ErrorCode;
use tg_schemas::msg::FlowRequest;
use tg_testkit::place::Place;

use crate::harness::{Process, Reader, WAIT, World, blueprint, request, store};

fn epoch(world: &World, flow: &str) -> u64 {
    let record = world.config.get("w", "flow", flow).expect("a record");
    let record: Value = serde_json::from_str(&record).expect("JSON");
    record["epoch"].as_u64().expect("an epoch")
}

async fn a_flow_starts_once_and_its_processors_attach(place: Place) {
    let world = World::new(place);
    let reader = Reader::open();
    let process = world.process(Some(reader.clone())).await;
    let said = process
        .start_with("f", "b", &[("style", "plain"), ("styel", "x")])
        .await
        .unwrap();
    assert_eq!(
        said["waiting-for"],
        json!(["prompt"]),
        "nobody hosts it here"
    );
    assert_eq!(said["unused-parameters"], json!(["styel"]));
    let processors = said["processors"].as_u64().expect("a count");
    assert!(processors >= 2, "{said}");
    assert!(said.get("already-running").is_none(), "{said}");
    let row: Value =
        serde_json::from_str(&world.config.get("w", "processor:prompt", "f").unwrap()).unwrap();
    assert_eq!(row["parameters"], json!({"style": "plain"}));
    assert_eq!(row["epoch"].as_u64().unwrap(), epoch(&world, "f"));

    process.send("f", "one", epoch(&world, "f")).await;
    reader.until(1).await;

    let same = [("style", "plain"), ("styel", "x")];
    let again = process.start_with("f", "b", &same).await.unwrap();
    assert_eq!(again["already-running"], true, "{again}");
    assert_eq!(again["processors"], processors, "{again}");
    let error = process
        .start_with("f", "b", &[("style", "bold")])
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind.as_str(), error.message.as_str()),
        ("flow-error", "Flow already exists")
    );

    put_blueprint(&process, "another").await;
    let error = process.start_with("f", "another", &same).await.unwrap_err();
    assert_eq!(
        (error.kind.as_str(), error.message.as_str()),
        ("flow-error", "Flow already exists"),
        "under another blueprint, however alike"
    );

    let mut renamed = request("start-flow", "f", &same);
    renamed.blueprint_name = "b".to_owned();
    renamed.description = "another".to_owned();
    let error = process.ask(renamed).await.unwrap_err();
    assert_eq!(error.message, "Flow already exists");

    let flow = process.ask(request("get-flow", "f", &[])).await.unwrap();
    let shown: Value = serde_json::from_str(&flow.flow).unwrap();
    assert_eq!(
        shown["interfaces"]["triples-store"]["flow"],
        "flow:tg:triples-store:w:f"
    );
    assert!(shown.get("plan").is_none() && shown.get("status").is_none());
    assert_eq!(
        (flow.description.as_str(), flow.parameters["style"].as_str()),
        ("a test", "plain")
    );
    let flows = process.ask(request("list-flows", "", &[])).await.unwrap();
    assert_eq!(flows.flow_ids, ["f"]);
    process.stop().await;
}

async fn names_are_listed_in_pages(place: Place) {
    let world = World::new(place);
    let process = world.process(None).await;
    process.start_flow("f").await.unwrap();
    let page = async |operation: &str, limit: i64, after: &str| {
        let asked = FlowRequest {
            limit,
            after: after.to_owned(),
            ..request(operation, "", &[])
        };
        process.ask(asked).await
    };
    let before = page("list-blueprints", 0, "").await.unwrap();
    for name in ["x1", "x2", "x3"] {
        put_blueprint(&process, name).await;
    }
    let all = before.blueprint_names.len() as i64 + 3;
    let first = page("list-blueprints", all - 2, "").await.unwrap();
    assert_eq!(first.blueprint_names.last().unwrap(), "x1");
    // The last one seen goes; what comes before it is not shown, what comes after it is.
    let mut gone = request("delete-blueprint", "", &[]);
    gone.blueprint_name = "x1".to_owned();
    process.ask(gone).await.unwrap();
    for name in ["x0", "x11"] {
        put_blueprint(&process, name).await;
    }
    let rest = page("list-blueprints", 9, &first.next).await.unwrap();
    assert_eq!(rest.blueprint_names, ["x11", "x2", "x3"]);
    assert_eq!(rest.next, "");
    let flows = page("list-flows", 1, "").await.unwrap();
    assert_eq!(
        (flows.flow_ids, flows.next.as_str()),
        (vec!["f".to_owned()], "")
    );
    for (limit, after, field) in [(-1, "", "limit: "), (1, first.next.as_str(), "after: ")] {
        let error = page("list-flows", limit, after).await.unwrap_err();
        assert!(error.message.starts_with(field), "{error}");
    }
    process.stop().await;
}

async fn put_blueprint(process: &Process, name: &str) {
    let put = FlowRequest {
        blueprint_name: name.to_owned(),
        blueprint_definition: blueprint().to_string(),
        ..request("put-blueprint", "", &[])
    };
    process.ask(put).await.unwrap();
}

async fn what_cannot_be_started_is_refused_in_words(place: Place) {
    let world = World::new(place);
    let process = world.process(None).await;
    for (flow, blueprint, parameters, text) in [
        ("", "b", vec![], "No flow ID"),
        ("f", "", vec![], "No blueprint name"),
        ("f", "nobody", vec![], "Blueprint does not exist"),
        ("a--b", "b", vec![], "flow-id: "),
        (
            "f",
            "b",
            vec![("style", "request:tg:agent:victim:f")],
            "parameters/style: ",
        ),
    ] {
        let error = process
            .start_with(flow, blueprint, &parameters)
            .await
            .unwrap_err();
        assert!(error.message.starts_with(text), "{error:?}");
    }
    let mut bad = blueprint();
    bad["flow"]["triples-write:{id}"]["topics"]["input"] = json!("flow:tg:triples-store:victim:f");
    let mut put = request("put-blueprint", "", &[]);
    put.blueprint_name = "bad".to_owned();
    put.blueprint_definition = bad.to_string();
    let error = process.ask(put.clone()).await.unwrap_err();
    assert!(
        error
            .message
            .contains("/flow/triples-write:{id}/topics/input: "),
        "{error:?}"
    );
    put.operation = "check-blueprint".to_owned();
    let faults = crate::harness::json(&process.ask(put).await.unwrap());
    assert_eq!(
        faults["faults"][0]["path"],
        "/flow/triples-write:{id}/topics/input"
    );
    // Also one that was written past the flow service.
    world
        .config
        .set("w", "flow-blueprint", "bad", &bad.to_string());
    let error = process.start_with("f", "bad", &[]).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::BadRequest);
    let error = process.stop_flow("f", "wait").await.unwrap_err();
    assert_eq!(error.message, "Flow ID invalid");
    let error = process.ask(request("dance", "", &[])).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::BadOperation);
    assert_eq!(world.config.count("processor:"), 0);
    process.stop().await;
}

async fn a_stop_that_waits_lets_the_processors_finish(place: Place) {
    let world = World::new(place);
    let reader = Reader::with(0);
    let process = world.process(Some(reader.clone())).await;
    process.start_flow("f").await.unwrap();
    process.start_flow("other").await.unwrap();
    for n in 0..5 {
        process.send("f", &n.to_string(), epoch(&world, "f")).await;
    }
    let opened = async {
        // The stop is under way when the processors know.
        let known = |view: &tg_mesh::PresenceView| view.stopping("w", "f");
        assert!(process.mesh.presence().until(WAIT, known).await);
        reader.gate.add_permits(1000);
    };
    let (receipt, ()) = tokio::join!(process.stop_flow("f", "wait"), opened);
    let receipt = receipt.unwrap();
    assert_eq!(reader.seen.lock().len(), 5);
    let queue = &receipt["queues"][0];
    assert_eq!(queue["subscription"], "triples-write--w--f--input");
    assert_eq!(
        (queue["finished"].as_u64(), queue["parked"].as_u64()),
        (Some(5), Some(0)),
        "{receipt}"
    );
    assert_eq!(
        (queue["sent"].as_u64(), queue["answered"].as_u64()),
        (Some(5), Some(0)),
        "{receipt}"
    );
    // The queues of records and of what is to be forgotten; the topics of triples, prompt, how long prompts are, usage, of
    // what is to be forgotten, and of steps, with their two relays.
    assert_eq!(receipt["queues-removed"], 2, "{receipt}");
    assert_eq!(receipt["exchanges-removed"], 8, "{receipt}");

    assert!(world.config.get("w", "flow", "f").is_none());
    assert!(world.config.get("w", "processor:prompt", "f").is_none());
    assert_eq!(process.waiting("f").await, None);
    let target = Target::Topic(store("f"));
    let routed = process
        .mesh
        .bus()
        .publish(&target, Envelope::default(), PublishMode::Confirmed)
        .await;
    assert_eq!(routed, Ok(Routed::Unroutable));
    // The other flow of the blueprint goes on.
    process.send("other", "still", epoch(&world, "other")).await;
    reader.until(6).await;
    process.stop().await;
}

/// What was handled before the stop is on the receipt, too.
async fn what_was_answered_before_a_stop_is_on_its_receipt(place: Place) {
    let world = World::new(place);
    let reader = Reader::with(3);
    let process = world.process(Some(reader.clone())).await;
    process.start_flow("f").await.unwrap();
    for n in 0..3 {
        process.send("f", &n.to_string(), epoch(&world, "f")).await;
    }
    reader.until(3).await;
    let receipt = process.stop_flow("f", "park").await.unwrap();
    let line = json!({"subscription": "triples-write--w--f--input", "sent": 3, "answered": 3,
        "finished": 0, "parked": 0, "discarded": 0});
    assert_eq!(receipt["queues"], json!([line]), "{receipt}");
    // Another start begins at nothing.
    process.start_flow("f").await.unwrap();
    let receipt = process.stop_flow("f", "park").await.unwrap();
    assert_eq!(receipt["queues"], json!([]), "{receipt}");
    process.stop().await;
}

/// Somebody writes all the time: each record that was accepted is finished or parked, and counted once.
async fn a_receipt_adds_up_while_somebody_writes(place: Place) {
    for (drain, most) in [("wait", 500), ("park", 100_000), ("discard", 100_000)] {
        let world = World::new(place.another().await);
        let reader = Reader::with(0);
        let process = world.process(Some(reader.clone())).await;
        process.start_flow("f").await.unwrap();
        // Nobody knows of a stop, and so everybody, while nobody is attached.
        let attached = |view: &tg_mesh::PresenceView| view.attached("triples-write", "w", "f", 0);
        assert!(process.mesh.presence().until(WAIT, attached).await);
        let bus = process.mesh.bus().clone();
        let writing = tokio::spawn(async move {
            let mut accepted = 0;
            let mut pace = tokio::time::interval(Duration::from_micros(500));
            // Ends with the queue, if it may write that long.
            while accepted < most {
                pace.tick().await;
                let target = Target::Topic(store("f"));
                let record = Envelope {
                    body: b"{}".to_vec().into(),
                    ..Envelope::default()
                };
                match bus.publish(&target, record, PublishMode::Confirmed).await {
                    Ok(Routed::Queued) => accepted += 1,
                    _ => break,
                }
            }
            accepted
        });
        let opened = async {
            let known = |view: &tg_mesh::PresenceView| view.stopping("w", "f");
            assert!(process.mesh.presence().until(WAIT, known).await);
            reader.gate.add_permits(1_000_000);
        };
        let (receipt, ()) = tokio::join!(process.stop_flow("f", drain), opened);
        let receipt = receipt.unwrap_or_else(|error| {
            panic!(
                "{drain}: {error:?} {:?}",
                process.mesh.presence().snapshot()
            )
        });
        let accepted: u64 = writing.await.unwrap();
        let queue = &receipt["queues"][0];
        let column = |name: &str| queue[name].as_u64().unwrap();
        let ended = column("finished") + column("parked") + column("discarded");
        assert_eq!(column("answered") + ended, accepted, "{drain}: {receipt}");
        assert_eq!(column("sent"), accepted, "{drain}: {receipt}");
        let seen = reader.seen.lock().len() as u64;
        assert_eq!(column("finished"), seen, "{drain}: {receipt}");
        let other = if drain == "discard" {
            "parked"
        } else {
            "discarded"
        };
        assert_eq!(column(other), 0, "{drain}: {receipt}");
        process.stop().await;
    }
}

async fn a_second_asker_hears_of_the_same_stop(place: Place) {
    let world = World::new(place);
    let process = world.process(Some(Reader::open())).await;
    process.start_flow("f").await.unwrap();
    let (one, two) = tokio::join!(
        process.stop_flow("f", "wait"),
        process.stop_flow("f", "wait")
    );
    assert_eq!(one.unwrap(), two.unwrap());
    process.stop().await;
}

async fn a_blueprint_in_use_stays_and_a_flow_without_one_stops(place: Place) {
    let world = World::new(place);
    let process = world.process(None).await;
    process.start_flow("f").await.unwrap();
    let mut delete = request("delete-blueprint", "", &[]);
    delete.blueprint_name = "b".to_owned();
    let error = process.ask(delete.clone()).await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    assert!(error.message.contains("flow f"), "{error:?}");
    world.config.set("w", "flow-blueprint", "b", "{}");
    process.stop_flow("f", "wait").await.unwrap();
    process.ask(delete).await.unwrap();
    assert!(world.config.get("w", "flow-blueprint", "b").is_none());
    process.stop().await;
}

async fn a_dry_run_changes_nothing(place: Place) {
    let world = World::new(place);
    let process = world.process(None).await;
    process.start_flow("f").await.unwrap();
    process.send("f", "one", 0).await;
    let before = world.config.get("w", "flow", "f");
    let stop = request("stop-flow", "f", &[("drain", "park"), ("dry-run", "true")]);
    let receipt = crate::harness::json(&process.ask(stop).await.unwrap())["receipt"].take();
    assert_eq!(receipt["dry-run"], true);
    assert_eq!(receipt["queues"][0]["parked"], 1);
    assert_eq!(
        (
            receipt["queues-removed"].as_u64(),
            process.waiting("f").await
        ),
        (Some(2), Some(1))
    );
    assert_eq!(world.config.get("w", "flow", "f"), before);
    process.stop().await;
}

async fn operators_are_told_what_is_missing(place: Place) {
    let world = World::new(place);
    let process = world.process(Some(Reader::open())).await;
    process.start_flow("f").await.unwrap();
    let reasons = crate::harness::json(&process.ask(request("why", "f", &[])).await.unwrap());
    let reasons = reasons["why"].as_array().unwrap();
    let state = |subject: &str| {
        let found = reasons.iter().find(|reason| reason["subject"] == subject);
        found.map(|reason| reason["state"].as_str().unwrap().to_owned())
    };
    assert_eq!(state("triples-write").as_deref(), Some("attached"));
    assert_eq!(state("prompt").as_deref(), Some("missing"));
    // A queue that is there: what waits, who reads it, and one that is not.
    let told = |reply| crate::harness::json(&reply)["why"].clone();
    let queue = crate::harness::queue("f").name;
    let ask = |name: &str| request("why", "f", &[("queue", name)]);
    let lines = told(process.ask(ask(&queue)).await.unwrap());
    let states: Vec<&str> = lines
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["running", "empty", "attached"], "{lines}");
    assert_eq!(lines[1]["subject"], queue);
    let refused = process.ask(ask("another")).await.unwrap_err();
    assert!(
        refused.message.starts_with("queue: the flow 'f'"),
        "{refused}"
    );
    let doctor = crate::harness::json(&process.ask(request("doctor", "", &[])).await.unwrap());
    let checks = doctor["doctor"]["checks"].as_array().unwrap();
    let flow = checks
        .iter()
        .find(|check| check["name"] == "flow f")
        .unwrap();
    assert_eq!(flow["ok"], false);
    assert!(
        flow["detail"].as_str().unwrap().contains("prompt missing"),
        "{flow}"
    );
    // A full disk is a failed check, and the reason why records wait.
    let disk = async |full| {
        tg_mesh::tell_disk(&process.mesh, full).await;
        let doctor = crate::harness::json(&process.ask(request("doctor", "", &[])).await.unwrap());
        let checks = doctor["doctor"]["checks"].as_array().unwrap().clone();
        let check = checks.iter().find(|check| check["name"] == "disk").unwrap();
        let why = told(process.ask(request("why", "f", &[])).await.unwrap());
        let why = why.as_array().unwrap().clone();
        let is_disk = |line: &Value| line["subject"] == "disk" && line["command"] == "tg doctor";
        let line = why.iter().any(is_disk);
        (check["ok"].as_bool().unwrap(), line)
    };
    assert_eq!(disk(true).await, (false, true));
    assert_eq!(disk(false).await, (true, false));
    process.stop().await;
}

async fn a_queue_that_nobody_reads_names_the_command_that_helps(place: Place) {
    let world = World::new(place);
    let process = world.process(None).await;
    process.start_flow("f").await.unwrap();
    process.send("f", "one", 0).await;
    let queue = crate::harness::queue("f").name;
    let of_queue = [("queue", queue.as_str())];
    for asked in [request("why", "f", &[]), request("why", "f", &of_queue)] {
        let said = crate::harness::json(&process.ask(asked).await.unwrap());
        let line = |subject: &str| {
            let lines = said["why"].as_array().unwrap();
            let found = lines.iter().find(|line| line["subject"] == subject);
            found.map(|line| json!([line["state"], line["command"]]))
        };
        let serve = "threadgraph serve graph";
        assert_eq!(line(&queue), Some(json!(["stuck", serve])), "{said}");
        let reader = line("triples-write");
        assert_eq!(reader, Some(json!(["missing", serve])), "{said}");
    }
    process.stop().await;
}

async fn a_workspace_has_so_many_flows_at_most(place: Place) {
    let mut world = World::new(place);
    world.options.flows_per_workspace = 3;
    let process = world.process(None).await;
    let starts = ["f1", "f2", "f3", "f4", "f5"].map(|flow| process.start_flow(flow));
    let started = futures::future::join_all(starts).await;
    let refused: Vec<_> = started
        .iter()
        .filter_map(|said| said.as_ref().err())
        .collect();
    assert_eq!(
        refused.len(),
        2,
        "also where all begin at once: {started:?}"
    );
    for error in refused {
        assert_eq!(error.code(), ErrorCode::TooLarge);
        assert!(
            error
                .message
                .contains("at most 3 (`flow.flows_per_workspace`)"),
            "{error}"
        );
    }
    let flows = process
        .ask(request("list-flows", "", &[]))
        .await
        .unwrap()
        .flow_ids;
    assert_eq!(flows.len(), 3);
    // Those that it has are started again, and one that is stopped makes room.
    let again = process.start_flow(&flows[0]).await.unwrap();
    assert_eq!(again["already-running"], true, "{again}");
    assert!(process.start_flow("f6").await.is_err());
    process.stop_flow(&flows[0], "park").await.unwrap();
    process.start_flow("f6").await.unwrap();
    process.stop().await;
}

tg_testkit::on_both_buses!(
    a_workspace_has_so_many_flows_at_most,
    a_queue_that_nobody_reads_names_the_command_that_helps,
    a_flow_starts_once_and_its_processors_attach,
    names_are_listed_in_pages,
    what_cannot_be_started_is_refused_in_words,
    a_stop_that_waits_lets_the_processors_finish,
    what_was_answered_before_a_stop_is_on_its_receipt,
    a_receipt_adds_up_while_somebody_writes,
    a_second_asker_hears_of_the_same_stop,
    a_blueprint_in_use_stays_and_a_flow_without_one_stops,
    a_dry_run_changes_nothing,
    operators_are_told_what_is_missing,
);
