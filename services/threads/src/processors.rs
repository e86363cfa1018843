//! The processor `threads`.

use std::sync::Arc;
use std::time::Duration;

use tg_mesh::{Mesh, Processor, clock};
use tg_schemas::flow_record;
use tg_schemas::processors::threads::{PROCESSOR, THREADS};

use crate::engine::rows::CONFIG;
use crate::handlers::Threads;
use crate::options::Options;

/// Messages from outside in progress at once per workspace: they mostly wait for listeners.
const CONCURRENCY: usize = 1024;
/// Between two looks for idle threads.
const LOOK: Duration = Duration::from_secs(300);

/// The processors of this service, to be hosted.
pub fn processors(mesh: &Mesh, options: Options) -> Vec<Processor> {
    let threads = Arc::new(Threads::new(options));
    threads.end_idle(mesh, LOOK, clock::header_millis);
    vec![serving(threads)]
}

fn serving(threads: Arc<Threads>) -> Processor {
    Processor::new(PROCESSOR)
        .watches(&[CONFIG, flow_record::KIND])
        .serves(THREADS, threads)
        .concurrency(CONCURRENCY)
        .exclusive()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tg_mesh::{Ask, Deadline};
    use tg_schemas::msg::{ThreadsEnded, ThreadsRequest, ThreadsResponse};
    use tg_schemas::{Class, ErrorCode, Topic, WorkspaceId};
    use tg_testkit::config::Config;
    use tg_testkit::flow::{SOON, TestFlow};
    use tg_testkit::place::Place;

    use super::*;

    const OFTEN: Duration = Duration::from_millis(20);

    /// Nothing more is sent in the workspace, and whoever keeps something for its threads hears that they ended.
    async fn idle_threads_end_without_another_message(place: Place) {
        let config = Config::new();
        config.put("flow", "default", "{}");
        let later = Arc::new(AtomicU64::new(0));
        let passed = later.clone();
        let host = |mesh: &Mesh| {
            let threads = Arc::new(Threads::new(Options::default()));
            let now = move || clock::header_millis() + passed.load(Ordering::Acquire);
            threads.end_idle(mesh, OFTEN, now);
            vec![serving(threads)]
        };
        let flow = TestFlow::start(&place, config, &[], host).await;
        let workspace = WorkspaceId::new("default").unwrap();
        let notices = Topic::workspace(Class::Notify, "thread", &workspace);
        let mut notices = flow.mesh.tap::<ThreadsEnded>(&notices).await.unwrap();
        let topic = Topic::workspace(Class::Request, "threads", &workspace);
        let ask = |request: &ThreadsRequest| {
            let ask = Ask {
                deadline: Some(Deadline::after(SOON)),
                user_id: Some("ann".to_owned()),
                ..Ask::default()
            };
            let answer = flow.mesh.ask::<_, ThreadsResponse>(&topic, request, ask);
            answer.last()
        };
        // A message to nobody leaves its thread open.
        let open = ThreadsRequest {
            operation: "send-message".to_owned(),
            flow: "default".to_owned(),
            to: "console-router".to_owned(),
            r#type: "consoleinput".to_owned(),
            payload: r#"{"text": "hi", "target": "nobody"}"#.to_owned(),
            console: true,
            ..ThreadsRequest::default()
        };
        let thread = ask(&open).await.unwrap().thread;
        let show = ThreadsRequest {
            operation: "show-thread".to_owned(),
            flow: "default".to_owned(),
            thread: thread.clone(),
            ..ThreadsRequest::default()
        };
        let chain = ask(&show).await.unwrap().chain;
        assert_eq!(chain, ["system", "mesh", "console", "console-router"]);
        let idle = Options::default().limits().idle;
        later.store(idle, Ordering::Release);
        let notice = tokio::time::timeout(SOON, notices.next()).await;
        let notice = notice.expect("in time").expect("open").expect("a notice");
        assert!(notice.thread_ids.contains(&thread), "{notice:?}");
        let gone = ask(&show).await.unwrap_err();
        assert_eq!(gone.code(), ErrorCode::NotFound);
    }

    tg_testkit::on_both_buses!(idle_threads_end_without_another_message);
}
