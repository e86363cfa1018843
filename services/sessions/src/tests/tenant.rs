//! What a workspace says of its sessions.

use std::fs;

use tg_schemas::operations::{
    Chat, CreateAgent, Empty, GetNamedAgent, GetSession, GetTenantConfig, NamedAgent, NewAgent,
    PutTenantConfig, Question, TenantChange,
};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, code, one, said};

fn keep(most: Option<i64>) -> TenantChange {
    TenantChange {
        compact_keep_last_n: Some(most),
        ..TenantChange::default()
    }
}

async fn line_010_a_new_setting_is_for_new_sessions(place: Place) {
    let world = World::start(&place).await;
    let older = world.session("ann", "bob").await;
    let told = world.call::<PutTenantConfig>(&keep(Some(3))).await.unwrap();
    assert_eq!(told.effective.compact_keep_last_n, Some(3));
    assert_eq!(told.levels.db.compact_keep_last_n, Some(3));
    assert_eq!(told.tenant, "default");
    assert_eq!(world.session("ann", "bob").await.compact_keep_last_n, 3);
    let older = world.call::<GetSession>(&one(&older)).await.unwrap();
    assert_eq!(older.compact_keep_last_n, 10);
    // 11: taken back, the level below counts.
    world.call::<PutTenantConfig>(&keep(None)).await.unwrap();
    assert_eq!(world.session("ann", "bob").await.compact_keep_last_n, 10);
    let told = world.call::<GetTenantConfig>(&Empty {}).await.unwrap();
    assert_eq!(told.levels.db.compact_keep_last_n, None);
    // 12: its bounds.
    for bad in [-1, 201] {
        let refused = world.call::<PutTenantConfig>(&keep(Some(bad))).await;
        assert_eq!(code(refused), "validation_error");
    }
}

async fn line_011_the_file_of_workspaces_counts_until_the_workspace_says_something(place: Place) {
    let text = "tenants: [{id: default, defaults: {compact_keep_last_n: 7}}]";
    let world = World::start_with(&place, |dir| {
        fs::write(dir.join("tenants.yaml"), text).unwrap();
    })
    .await;
    assert_eq!(world.session("ann", "bob").await.compact_keep_last_n, 7);
    world.call::<PutTenantConfig>(&keep(Some(4))).await.unwrap();
    assert_eq!(world.session("ann", "bob").await.compact_keep_last_n, 4);
    world.call::<PutTenantConfig>(&keep(None)).await.unwrap();
    assert_eq!(world.session("ann", "bob").await.compact_keep_last_n, 7);
}

async fn line_127_without_its_flow_a_session_waits_and_keeps_what_it_has(place: Place) {
    let world = World::start(&place).await;
    let session = world.session("ann", "bob").await;
    world.send(&session, "one").await.unwrap();
    let flow = |name: Option<&str>| TenantChange {
        agent_flow: Some(name.map(str::to_owned)),
        ..TenantChange::default()
    };
    world
        .call::<PutTenantConfig>(&flow(Some("none")))
        .await
        .unwrap();
    assert_eq!(code(world.send(&session, "two").await), "agent_unavailable");
    assert_eq!(said(&world, &session).await.len(), 2);
    let named = NamedAgent {
        name: "ann".to_owned(),
    };
    world.call::<GetNamedAgent>(&named).await.unwrap();
    let question = Question {
        name: "ann".to_owned(),
        message: Some("x".to_owned()),
        ..Question::default()
    };
    assert_eq!(
        code(world.call::<Chat>(&question).await),
        "agent_unavailable"
    );
    world.call::<PutTenantConfig>(&flow(None)).await.unwrap();
    world.send(&session, "two").await.unwrap();
    assert_eq!(said(&world, &session).await.len(), 4);
    // Agents of the workspace can be made all the while.
    let agent = NewAgent {
        name: "r".to_owned(),
        ..NewAgent::default()
    };
    world.call::<CreateAgent>(&agent).await.unwrap();
}

on_both_buses!(
    line_010_a_new_setting_is_for_new_sessions,
    line_011_the_file_of_workspaces_counts_until_the_workspace_says_something,
    line_127_without_its_flow_a_session_waits_and_keeps_what_it_has,
);
