//! Cores of what policies judge: nobody judges a core, so it is handed out to nobody, and not loaded to where it would be.

use tg_mesh::Ask;
use tg_schemas::msg::{KnowledgeRequest, Metadata, Triples};
use tg_schemas::{Error, Term, Triple};
use tg_testkit::place::Place;

use crate::world::{World, about, facts, into, metadata, put};

fn refused<T>(told: Result<T, Error>) -> String {
    let error = told.err().expect("refused");
    assert_eq!(error.kind, "policy-enforcement-error", "{error}");
    error.message
}

/// A policy, or what says of itself that it is one.
fn policy(collection: &str) -> Triples {
    let of = Metadata {
        id: "urn:policies".into(),
        collection: collection.into(),
        ..Metadata::default()
    };
    let triple = Triple::new(
        Term::iri("urn:policy"),
        Term::iri("urn:p"),
        Term::iri("urn:shape"),
    );
    Triples {
        metadata: Some(of),
        triples: vec![triple.in_graph("urn:graph:policy")],
    }
}

async fn what_has_policies_is_in_no_core_that_is_read(place: Place) {
    let world = World::start(&place).await;
    let of_flow = |id: &str, collection: &str| {
        let mut of = metadata(id, "");
        if let Some(of) = &mut of {
            of.collection = collection.into();
        }
        Triples {
            metadata: of,
            triples: facts("urn:e:tower"),
        }
    };
    for (id, collection) in [("urn:secret", "default"), ("urn:open", "facts")] {
        let record = of_flow(id, collection);
        world.flow.write("triples-store", &record).await;
    }
    world.one(put("urn:put", facts("urn:a"))).await;
    // Who may write no policies wrote none.
    world.flow.write("triples-store", &policy("facts")).await;
    let ask = |id: &str| about("get-kg-core", id);
    for id in ["urn:secret", "urn:open", "urn:put"] {
        let kept = async || world.triples(id).await.len() == 3;
        world.flow.until(kept).await;
    }
    let may = Ask {
        policies: true,
        ..Ask::default()
    };
    let policies = policy("default");
    world
        .flow
        .write_as("triples-store", &policies, may.clone())
        .await;
    let judged = async || world.ask(ask("urn:secret")).await.is_err();
    world.flow.until(judged).await;
    let told = refused(world.ask(ask("urn:secret")).await);
    assert!(told.contains("ask the graph"), "{told}");
    for id in ["urn:open", "urn:put"] {
        assert_eq!(world.triples(id).await.len(), 3, "{id}");
    }

    // Nor by way of a collection that has none.
    let told = refused(world.ask(into("load-kg-core", "urn:secret", "facts")).await);
    assert!(told.contains("'facts' has none"), "{told}");
    let back: KnowledgeRequest = into("load-kg-core", "urn:secret", "default");
    assert!(world.ask(back).await.is_ok());
    // What was put, and is loaded to where policies are, is theirs while it is there.
    assert!(world.ask(into("load-kg-core", "urn:put", "")).await.is_ok());
    refused(world.ask(ask("urn:put")).await);
    assert!(
        world
            .ask(into("unload-kg-core", "urn:put", ""))
            .await
            .is_ok()
    );
    assert_eq!(world.triples("urn:put").await.len(), 3);
    world
        .flow
        .write_as("triples-store", &policy("facts"), may)
        .await;
    let judged = async || world.ask(ask("urn:open")).await.is_err();
    world.flow.until(judged).await;
    refused(world.ask(ask("urn:open")).await);
    assert!(
        world
            .ask(into("load-kg-core", "urn:secret", "facts"))
            .await
            .is_ok()
    );
}

tg_testkit::on_both_buses!(what_has_policies_is_in_no_core_that_is_read);
