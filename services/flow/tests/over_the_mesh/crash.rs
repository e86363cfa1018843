//! A process that is killed at any step of a start or stop leaves what the next one finishes.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use tg_testkit::bus::until;
use tg_testkit::place::Place;

use crate::harness::{World, request};

const RECORDS: usize = 5;
const DIR: &str = "TG_TEST_CRASH_DIR";
const BROKER: &str = "TG_TEST_CRASH_BROKER";
const STEPS: &str = "TG_TEST_CRASH_STEPS";
const OPERATION: &str = "TG_TEST_CRASH_OPERATION";
const DRAIN: &str = "TG_TEST_CRASH_DRAIN";

/// Runs `operation` in a process of its own that dies after so many steps. `false` when it lived.
fn dies(world: &World, steps: i64, operation: &str, drain: &str) -> bool {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    if let Place::RabbitMq(url) = &world.place {
        command.env(BROKER, url);
    }
    let status = command
        .args(["--exact", "crash::victim", "--ignored"])
        .env(DIR, &world.dir)
        .env(STEPS, steps.to_string())
        .env(OPERATION, operation)
        .env(DRAIN, drain)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("a process");
    assert_ne!(
        status.code(),
        Some(101),
        "the victim failed otherwise, step {steps}"
    );
    !status.success()
}

#[tokio::test]
#[ignore = "run by the others, in a process of its own"]
async fn victim() {
    let variable = |name| std::env::var(name).expect("set by the parent");
    let (operation, steps) = (
        variable(OPERATION),
        variable(STEPS).parse().expect("a number"),
    );
    let place = std::env::var(BROKER).map_or_else(|_| Place::embedded(), Place::RabbitMq);
    let world = World::at(place, PathBuf::from(variable(DIR)));
    let process = world.fused(None).await;
    let mut asked = request(&operation, "f", &[]);
    asked.blueprint_name = "b".to_owned();
    asked.description = "a test".to_owned();
    if operation == "stop-flow" {
        process.start_flow("f").await.expect("a start");
        for n in 0..RECORDS {
            process.send("f", &n.to_string(), 0).await;
        }
        asked.parameters.insert("drain".to_owned(), variable(DRAIN));
    }
    world.fuse.light(steps);
    process.ask(asked).await.expect("an answer");
    world.fuse.light(i64::MAX);
}

async fn a_stop_is_finished_by_the_next_process(place: Place) {
    stops_are_finished(&place, "park", 1).await;
}

/// What is thrown away is neither kept by the next process nor handed out again.
async fn a_stop_that_discards_is_finished_by_the_next_process(place: Place) {
    stops_are_finished(&place, "discard", 3).await;
}

/// Nobody reads, so that what is waited for is still there in the end.
async fn a_stop_that_waits_is_finished_by_the_next_process(place: Place) {
    stops_are_finished(&place, "wait", 3).await;
}

/// Dies after no step of a stop, after `stride` of them, and so on until it lives.
async fn stops_are_finished(place: &Place, drain: &str, stride: i64) {
    let left = if drain == "discard" { 0 } else { RECORDS };
    let mut steps = 0;
    loop {
        let world = World::new(place.another().await);
        let died = dies(&world, steps, "stop-flow", drain);
        let world = world.again();
        let begun = world
            .config
            .get("w", "flow", "f")
            .is_none_or(|r| r.contains("stopping"));
        let process = world.process(None).await;
        if !begun {
            process.stop_flow("f", drain).await.expect("a stop");
        }
        // The store is asked: what the process knows of it may be older than the flow.
        until(async || world.config.get("w", "flow", "f").is_none()).await;
        assert_eq!(
            process.waiting("f").await,
            None,
            "the queue is gone, step {steps}"
        );
        assert_eq!(world.config.count("processor:"), 0, "step {steps}");
        let parked = process
            .dead_letter("list-put-aside", "f", &[("reason", "parked")])
            .await;
        assert_eq!(
            parked.as_array().map(Vec::len),
            Some(left),
            "{drain}: each once, step {steps}"
        );
        // The name is free again, and no stale message waits.
        process.start_flow("f").await.expect("a start");
        assert_eq!(process.waiting("f").await, Some(0), "step {steps}");
        process.stop().await;
        if !died {
            break;
        }
        steps += stride;
    }
    assert!(steps > 10, "only {steps} steps were tried");
}

async fn a_start_is_finished_by_the_next_process(place: Place) {
    let mut steps = 0;
    loop {
        let world = World::new(place.another().await);
        let died = dies(&world, steps, "start-flow", "park");
        let world = world.again();
        let process = world.process(None).await;
        if world.config.get("w", "flow", "f").is_some() {
            let runs = |record: &str| !record.contains("starting");
            process
                .until(|mesh| {
                    mesh.config()
                        .get("w", "flow", "f")
                        .is_some_and(|r| runs(&r))
                })
                .await;
        }
        // Whoever asked may ask again in any case.
        process.start_flow("f").await.expect("a start");
        assert_eq!(process.waiting("f").await, Some(0), "step {steps}");
        assert_eq!(world.config.count("processor:"), 2, "step {steps}");
        process.stop_flow("f", "park").await.expect("a stop");
        process.stop().await;
        if !died {
            break;
        }
        steps += 1;
    }
    assert!(steps > 3, "only {steps} steps were tried");
}

tg_testkit::on_both_buses!(
    a_stop_is_finished_by_the_next_process,
    a_stop_that_discards_is_finished_by_the_next_process,
    a_stop_that_waits_is_finished_by_the_next_process,
    a_start_is_finished_by_the_next_process,
);
