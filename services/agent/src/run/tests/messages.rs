//! Which parts of an answer go in one message: each message takes time of both processes, and of a broker.

use std::ops::Range;
use std::sync::Arc;

use tg_mesh::Ask;
use tg_schemas::msg::AgentResponse;
use tg_testkit::faults::FaultyBus;
use tg_testkit::place::Place;

use super::endings::ADD;
use super::world::{SOON, Say, World, question};
use crate::options::Options;

/// Said in pieces of seven characters, of which one ends behind the second label.
const KNOWN: &str = "Thought: I know it ok\nFinal Answer: 4";
/// On a machine that is slow the end of a thought may come with the last of its text, and is then sent at once.
const TRIES: usize = 20;

/// Plays one run. Returns how many of its two thoughts ended with a part without text: each must have gone with what follows it.
async fn ends_that_waited(place: &Place) -> usize {
    let bus = FaultyBus::new(place.connect().await, 1);
    let script = vec![Say::Text(ADD), Say::Text(KNOWN)];
    let world = World::over(Arc::new(bus.clone()), script, Options::default()).await;
    let ask = Ask {
        id: Some("q".into()),
        ..Ask::default()
    };
    let mut answer = world.ask_with(&question("2+2?", true), ask);
    let mut chunks: Vec<AgentResponse> = Vec::new();
    while let Some(part) = tokio::time::timeout(SOON, answer.next()).await.unwrap() {
        chunks.push(part.unwrap());
    }
    let messages = bus.answered("q");
    let mut waited = 0;
    for (thought, next) in [("/i1/thought", "action"), ("/i2/thought", "answer")] {
        let is_end =
            |chunk: &AgentResponse| chunk.message_id.ends_with(thought) && chunk.end_of_message;
        let end = chunks.iter().position(is_end).unwrap();
        assert_eq!(chunks[end + 1].message_type, next);
        if !chunks[end].content.is_empty() {
            continue;
        }
        waited += 1;
        let both = [end as u64, end as u64 + 1];
        let together = |parts: &Range<u64>| both.iter().all(|part| parts.contains(part));
        assert!(messages.iter().any(together), "{both:?}: {messages:?}");
    }
    waited
}

async fn the_end_of_a_thought_goes_with_what_follows_it(place: Place) {
    for _ in 0..TRIES {
        if ends_that_waited(&place.another().await).await > 0 {
            return;
        }
    }
    panic!("no thought ended apart from its text");
}

tg_testkit::on_both_buses!(the_end_of_a_thought_goes_with_what_follows_it);
