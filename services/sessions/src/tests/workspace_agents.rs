//! Agents that a workspace makes itself, and the templates of them.

use serde_json::{Value, json};
use tg_schemas::operations::{
    AgentChange, AgentTemplates, CreateAgent, CreateFromTemplate, DeleteAgent, Empty, FromTemplate,
    GetAgent, ListAgents, ListTemplates, NewAgent, Object, OneAgent, UpdateAgent, WhichAgents,
    WorkspaceAgent, WorkspaceAgents, read, write,
};
use tg_testkit::on_both_buses;
use tg_testkit::place::Place;

use super::world::{World, code};

const ID: &str = "6f1f6a52-6f0c-4d3e-9a53-3a1c4b1e2d70";

fn named(name: &str) -> NewAgent {
    NewAgent {
        name: name.to_owned(),
        ..NewAgent::default()
    }
}

fn one(id: &str) -> OneAgent {
    OneAgent {
        agent_id: id.to_owned(),
    }
}

async fn line_047_a_new_workspace_has_two_agents(place: Place) {
    let world = World::start(&place).await;
    let which = WhichAgents::default();
    // One that nobody made has none.
    let none = world.call::<ListAgents>(&which).await.unwrap();
    assert!(none.items.is_empty());
    let seed = [("agent-seed", "templates", Some(r#"["bobby", "maven"]"#))];
    let config = &world.flow.config;
    config.apply_all(&world.flow.mesh, "other", &seed).await;
    let list = async || -> Vec<WorkspaceAgent> {
        let told = world.told("other", None, "list-agents", Object::new());
        let (_, found) = told.await.unwrap().pop().unwrap();
        read::<WorkspaceAgents>(&found).unwrap().items
    };
    let all = list().await;
    let names: Vec<_> = all.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["Bobby", "Maven"]);
    for one in &all {
        assert!(
            one.system_prompt
                .as_ref()
                .is_some_and(|text| !text.is_empty())
        );
        assert_eq!(one.llm_service_id, None);
    }
    assert!(all[0].created_at < all[1].created_at);
    // One that was deleted stays deleted.
    let gone = write(&one(&all[0].agent_id)).unwrap();
    world
        .told("other", None, "delete-agent", gone)
        .await
        .unwrap();
    let left: Vec<_> = list().await.into_iter().map(|one| one.name).collect();
    assert_eq!(left, ["Maven"]);
}

async fn line_048_every_workspace_has_the_same_templates(place: Place) {
    let world = World::start(&place).await;
    let list = async |workspace: &str| -> AgentTemplates {
        let told = world.told(workspace, None, "list-templates", Object::new());
        let (_, found) = told.await.unwrap().pop().unwrap();
        read(&found).unwrap()
    };
    let here = list("default").await;
    let ids: Vec<_> = here
        .items
        .iter()
        .map(|one| (one.template_id.as_str(), one.default_on_new_workspace))
        .collect();
    let expected = [
        ("bobby", true),
        ("maven", true),
        ("quill", false),
        ("sage", false),
    ];
    assert_eq!(ids, expected);
    assert_eq!(here.next_cursor, None);
    assert_eq!(list("other").await, here);
}

async fn line_049_an_agent_is_made_from_a_template(place: Place) {
    let world = World::start(&place).await;
    let templates = world.call::<ListTemplates>(&Empty {}).await.unwrap().items;
    let quill = templates
        .iter()
        .find(|one| one.template_id == "quill")
        .unwrap();
    let from = |id: &str| FromTemplate {
        template_id: id.to_owned(),
    };
    let made = world
        .call::<CreateFromTemplate>(&from("quill"))
        .await
        .unwrap();
    assert_eq!(made.name, quill.name);
    assert_eq!(made.description.as_ref(), Some(&quill.description));
    assert_eq!(made.system_prompt.as_ref(), Some(&quill.system_prompt));
    // All else is as usual.
    let usual = WorkspaceAgent {
        workspace_id: "default".to_owned(),
        agent_id: made.agent_id.clone(),
        name: made.name.clone(),
        description: made.description.clone(),
        system_prompt: made.system_prompt.clone(),
        created_at: made.created_at.clone(),
        updated_at: made.created_at.clone(),
        ..WorkspaceAgent::default()
    };
    assert_eq!(made, usual);
    let again = world
        .call::<CreateFromTemplate>(&from("quill"))
        .await
        .unwrap();
    assert_ne!(made.agent_id, again.agent_id);
    let unknown = world.call::<CreateFromTemplate>(&from("none")).await;
    assert_eq!(code(unknown), "agent_template_not_found");
    let none = world.call::<CreateFromTemplate>(&from("")).await;
    assert_eq!(code(none), "validation_error");
}

async fn line_050_an_agent_has_its_defaults(place: Place) {
    let world = World::start(&place).await;
    let made = world.call::<CreateAgent>(&named("r")).await.unwrap();
    assert_eq!(made.agent_id.len(), 36);
    let all = Value::Object(write(&made).unwrap());
    let expected = json!({
        "workspaceId": "default",
        "agentId": made.agent_id,
        "name": "r",
        "description": null,
        "systemPrompt": null,
        "userPrompt": null,
        "toolIds": [],
        "llmServiceId": null,
        "knowledgeBaseIds": [],
        "ragEnabled": false,
        "ragMaxResults": null,
        "ragMinScore": null,
        "rerankEnabled": false,
        "rerankingServiceId": null,
        "rerankMaxResults": null,
        "createdAt": made.created_at,
        "updatedAt": made.created_at,
    });
    assert_eq!(all, expected);
}

async fn line_051_an_id_is_taken_once(place: Place) {
    let world = World::start(&place).await;
    let new = NewAgent {
        agent_id: Some(ID.to_owned()),
        ..named("r")
    };
    let made = world.call::<CreateAgent>(&new).await.unwrap();
    assert_eq!(made.agent_id, ID);
    assert_eq!(code(world.call::<CreateAgent>(&new).await), "conflict");
    let new = write(&new).unwrap();
    let told = world.told("other", None, "create-agent", new).await;
    let (_, elsewhere) = told.unwrap().pop().unwrap();
    assert_eq!(elsewhere["agentId"], ID);
    assert_eq!(elsewhere["workspaceId"], "other");
}

async fn line_052_a_change_leaves_the_rest(place: Place) {
    let world = World::start(&place).await;
    let new = NewAgent {
        agent_id: Some(ID.to_owned()),
        description: Some("d".to_owned()),
        ..named("r")
    };
    let before = world.call::<CreateAgent>(&new).await.unwrap();
    let change = AgentChange {
        agent_id: ID.to_owned(),
        name: Some("q".to_owned()),
        ..AgentChange::default()
    };
    let after = world.call::<UpdateAgent>(&change).await.unwrap();
    assert_eq!(
        (after.name.as_str(), after.description.as_deref()),
        ("q", Some("d"))
    );
    assert!(after.updated_at > before.updated_at);
    let clear = AgentChange {
        name: None,
        description: Some(None),
        ..change
    };
    let cleared = world.call::<UpdateAgent>(&clear).await.unwrap();
    assert_eq!((cleared.name.as_str(), cleared.description), ("q", None));
    for (field, value) in [
        ("agentId", json!(ID)),
        ("createdAt", json!(cleared.created_at)),
        ("odd", json!(1)),
    ] {
        let wrong = json!({"agent_id": ID, "name": "z", field: value});
        let wrong = wrong.as_object().cloned().unwrap();
        let refused = world.told("default", None, "update-agent", wrong).await;
        assert_eq!(code(refused), "validation_error", "{field}");
    }
    let kept = world.call::<GetAgent>(&one(ID)).await.unwrap();
    assert_eq!(kept.name, "q");
    world.call::<DeleteAgent>(&one(ID)).await.unwrap();
    assert_eq!(
        code(world.call::<GetAgent>(&one(ID)).await),
        "agent_not_found"
    );
    assert_eq!(
        code(world.call::<DeleteAgent>(&one(ID)).await),
        "agent_not_found"
    );
}

/// `list-agents`
async fn line_055_pages_have_no_gaps_while_an_agent_is_added(place: Place) {
    let world = World::start(&place).await;
    // The two that a new workspace has are the oldest.
    let seed = [("agent-seed", "templates", Some(r#"["bobby", "maven"]"#))];
    let config = &world.flow.config;
    config.apply_all(&world.flow.mesh, "default", &seed).await;
    let made = (0..119).map(|at| format!("a{at}"));
    let seeds = ["Bobby", "Maven"].map(str::to_owned);
    let mut expected: Vec<String> = seeds.into_iter().chain(made).collect();
    for name in &expected[2..] {
        world.call::<CreateAgent>(&named(name)).await.unwrap();
    }
    let mut asked = WhichAgents {
        limit: Some(50),
        cursor: None,
    };
    let (mut names, mut sizes) = (Vec::new(), Vec::new());
    let mut added = false;
    loop {
        let page = world.call::<ListAgents>(&asked).await.unwrap();
        sizes.push(page.items.len());
        names.extend(page.items.into_iter().map(|one| one.name));
        if !std::mem::replace(&mut added, true) {
            world.call::<CreateAgent>(&named("late")).await.unwrap();
        }
        match page.next_cursor {
            Some(next) => asked.cursor = Some(next),
            None => break,
        }
    }
    expected.push("late".to_owned());
    assert_eq!((names, sizes), (expected, vec![50, 50, 22]));
}

async fn line_056_pages_and_cursors_have_their_bounds(place: Place) {
    let world = World::start(&place).await;
    let mut asked = WhichAgents::default();
    for limit in [0, 201] {
        asked.limit = Some(limit);
        assert_eq!(
            code(world.call::<ListAgents>(&asked).await),
            "validation_error"
        );
    }
    asked.limit = None;
    asked.cursor = Some("zzz".to_owned());
    assert_eq!(
        code(world.call::<ListAgents>(&asked).await),
        "invalid_cursor"
    );
}

async fn line_058_an_id_that_is_not_a_uuid_is_refused(place: Place) {
    let world = World::start(&place).await;
    assert_eq!(
        code(world.call::<GetAgent>(&one("x")).await),
        "validation_error"
    );
    let new = NewAgent {
        agent_id: Some("x".to_owned()),
        ..named("r")
    };
    assert_eq!(
        code(world.call::<CreateAgent>(&new).await),
        "validation_error"
    );
}

on_both_buses!(
    line_047_a_new_workspace_has_two_agents,
    line_048_every_workspace_has_the_same_templates,
    line_049_an_agent_is_made_from_a_template,
    line_050_an_agent_has_its_defaults,
    line_051_an_id_is_taken_once,
    line_052_a_change_leaves_the_rest,
    line_055_pages_have_no_gaps_while_an_agent_is_added,
    line_056_pages_and_cursors_have_their_bounds,
    line_058_an_id_that_is_not_a_uuid_is_refused,
);
