//! Runs whose prompts the agent renders itself, as the flow says which model its prompt service asks.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::json;
use tg_mesh::Processor;
use tg_schemas::Class;
use tg_schemas::msg::{AgentRequest, AgentResponse, TextCompletionRequest, TextCompletionResponse};
use tg_schemas::processors;
use tg_testkit::config::Config;
use tg_testkit::fakes::Played;
use tg_testkit::place::Place;

use super::world::{Say, World, question, rows, topic};

const ADD: &str = "Thought: add\nAction: calculator\nArgs: {\"expression\": \"2+2\"}";
const ASK: &str = "Thought: ask\nAction: llm\nArgs: {\"question\": \"how\"}";
const END: &str = "Thought: known\nFinal Answer: four";

type Model = Played<TextCompletionRequest, TextCompletionResponse>;

/// The rows of a flow whose prompt service asks a model, with a prompt of such a kind.
fn with_prompt(kind: &str) -> Config {
    let config = rows();
    let request = |base: &str| topic(Class::Request, base).to_string();
    let flow = |processor: &str, topics: serde_json::Value| {
        let row = json!({"topics": topics, "parameters": {}, "epoch": 1});
        config.put(
            &format!("processor:{processor}"),
            "default",
            &row.to_string(),
        );
    };
    let asks = request("text-completion");
    flow(
        "prompt",
        json!({"request": request("prompt"), "text-completion-request": asks}),
    );
    flow("text-completion", json!({"request": asks}));
    let template = json!({"prompt": "Answer {{ question }}", "response-type": kind});
    config.put("prompt", "template.agent-react", &template.to_string());
    config.put("prompt", "system", "\"Be kind.\"");
    config
}

/// A model that says this, in two pieces where it streams.
fn model(says: [&'static str; 2]) -> Arc<Model> {
    let says = Mutex::new(says.into_iter());
    Played::new(move |_, ask: TextCompletionRequest| {
        let text = says.lock().next().unwrap_or(END);
        let (first, rest) = match ask.streaming {
            true => text.split_at(text.len() / 2),
            false => ("", text),
        };
        let mut parts = Vec::new();
        if !first.is_empty() {
            parts.push(TextCompletionResponse {
                response: first.to_owned(),
                ..TextCompletionResponse::default()
            });
        }
        parts.push(TextCompletionResponse {
            response: rest.to_owned(),
            end_of_stream: true,
            in_token: Some(100),
            out_token: Some(10),
            model: Some("scripted".to_owned()),
            ..TextCompletionResponse::default()
        });
        Ok(parts)
    })
}

async fn world(place: &Place, config: Config, model: Arc<Model>) -> World {
    let hosted = Processor::new(processors::text_completion::PROCESSOR)
        .serves(processors::text_completion::REQUEST, model);
    let script = [Say::Text(ADD), Say::Text(END)];
    let world = World::among(place, script, config, vec![hosted]).await;
    world.attached(&["text-completion"]).await;
    world
}

fn answer(chunks: &[AgentResponse]) -> String {
    let answer = chunks.iter().filter(|one| one.message_type == "answer");
    answer.map(|one| one.content.as_str()).collect()
}

async fn a_prompt_for_text_is_rendered_where_it_is_asked_for(place: Place) {
    for streaming in [false, true] {
        let model = model([ADD, END]);
        let world = world(&place.another().await, with_prompt("text"), model.clone()).await;
        let asked = AgentRequest {
            temperature: Some(0.5),
            ..question("why", streaming)
        };
        let chunks = world.run(&asked).await;
        assert_eq!(answer(&chunks), "four");
        let last = chunks.last().unwrap();
        assert_eq!((last.in_token, last.out_token), (Some(200), Some(20)));
        assert_eq!(world.calls(), 0, "the prompt service is not asked");
        let heard = model.asked.lock();
        assert_eq!(heard.len(), 2);
        for one in heard.iter() {
            let told = (one.system.as_str(), one.prompt.as_str(), one.streaming);
            assert_eq!(told, ("Be kind.", "Answer why", streaming));
            assert_eq!(one.settings, asked.settings());
            assert!(one.thinking && one.schema.is_none());
        }
    }
}

async fn a_tool_asks_the_model_in_the_same_way(place: Place) {
    let config = with_prompt("text");
    let template = json!({"prompt": "Plainly: {{ question }}"});
    config.put("prompt", "template.question", &template.to_string());
    let model = model([ASK, "so"]);
    let world = world(&place, config, model.clone()).await;
    let chunks = world.run(&question("why", false)).await;
    assert_eq!(answer(&chunks), "four");
    let observed = chunks.iter().find(|one| one.message_type == "observation");
    assert_eq!(observed.map(|one| one.content.as_str()), Some("so"));
    let heard = model.asked.lock();
    let heard: Vec<&str> = heard.iter().map(|one| one.prompt.as_str()).collect();
    assert_eq!(heard, ["Answer why", "Plainly: how", "Answer why"]);
}

/// It reads the reply in the shape that the prompt promises, and says what is wrong with a prompt.
async fn any_other_prompt_is_for_the_prompt_service(place: Place) {
    let broken = with_prompt("text");
    broken.put(
        "prompt",
        "template.agent-react",
        "{\"prompt\": \"{% if %}\"}",
    );
    for config in [with_prompt("json"), broken] {
        let model = model([ADD, END]);
        let world = world(&place.another().await, config, model.clone()).await;
        let chunks = world.run(&question("why", false)).await;
        assert_eq!(answer(&chunks), "four");
        assert_eq!((world.calls(), model.asked.lock().len()), (2, 0));
    }
}

/// Which model it asks, the agent cannot know.
async fn a_prompt_service_that_names_no_model_is_asked(place: Place) {
    let config = with_prompt("text");
    let topics = json!({"request": topic(Class::Request, "prompt").to_string()});
    let row = json!({"topics": topics, "parameters": {}, "epoch": 1});
    config.put("processor:prompt", "default", &row.to_string());
    let model = model([ADD, END]);
    let world = world(&place, config, model.clone()).await;
    let chunks = world.run(&question("why", false)).await;
    assert_eq!(answer(&chunks), "four");
    assert_eq!((world.calls(), model.asked.lock().len()), (2, 0));
}

tg_testkit::on_both_buses!(
    a_prompt_for_text_is_rendered_where_it_is_asked_for,
    a_tool_asks_the_model_in_the_same_way,
    any_other_prompt_is_for_the_prompt_service,
    a_prompt_service_that_names_no_model_is_asked,
);
