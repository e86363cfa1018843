//! Tasks that runs gave.

use super::*;
use crate::store::tasks::{KEEP_TASKS_MS, MOST_OPEN, MOST_TASKS};

fn task(workspace: &str, id: &str, created_ms: i64) -> TaskRow {
    TaskRow {
        workspace: workspace.into(),
        id: id.into(),
        kind: "delegate".into(),
        agent: "bee".into(),
        tree: "talk".into(),
        user: "ann".into(),
        created_ms,
        ..TaskRow::default()
    }
}

async fn open(store: &Store, task: &TaskRow) -> Opened {
    let is_over = IsOver::when(|| false);
    store.open_task(task, "p", &is_over).await.unwrap()
}

async fn all(store: &Store, owner: &str, now_ms: i64) -> Vec<TaskRow> {
    let of = TasksOf::Whose(Whose::User("ann".into()));
    store.tasks(&of, owner, ("", 5000), now_ms).await.unwrap()
}

fn ended(status: TaskStatus) -> TaskEnd {
    TaskEnd {
        status,
        ..TaskEnd::default()
    }
}

/// Line 118.
pub(super) async fn a_task_that_is_over_stays_as_it_is(store: Store) {
    let own = task("ws", "a", 1);
    assert_eq!(open(&store, &own).await, Opened::New);
    assert_eq!(open(&store, &own).await, Opened::Known);
    let over = IsOver::when(|| true);
    let refused = store.open_task(&task("ws", "b", 1), "p", &over).await;
    assert_eq!(refused.unwrap(), Opened::NoWorkspace);
    assert!(store.start_task("ws", "a", "r", 2).await.unwrap());
    assert!(!store.start_task("ws", "a", "r2", 3).await.unwrap());
    let cancelled = ended(TaskStatus::Cancelled);
    assert!(store.end_task("ws", "a", &cancelled, 4).await.unwrap());
    let late = ended(TaskStatus::Success);
    assert!(!store.end_task("ws", "a", &late, 5).await.unwrap());
    let expected = TaskRow {
        run: "r".into(),
        status: TaskStatus::Cancelled,
        started_ms: 2,
        completed_ms: 4,
        ..own
    };
    assert_eq!(all(&store, "other", 9).await, [expected]);
}

/// Line 118.
pub(super) async fn tasks_of_a_process_that_is_gone_have_failed(store: Store) {
    for (at, id) in ["a", "b", "c"].into_iter().enumerate() {
        open(&store, &task("ws", id, at as i64 + 1)).await;
    }
    store.start_task("ws", "b", "r", 2).await.unwrap();
    let done = ended(TaskStatus::Success);
    store.end_task("ws", "c", &done, 3).await.unwrap();
    let told = |all: Vec<TaskRow>| -> Vec<_> {
        let all = all.into_iter();
        all.map(|task| (task.status.as_str(), task.error)).collect()
    };
    let own = all(&store, "p", 9).await;
    assert_eq!(own[0].status, TaskStatus::Pending);
    let failed = || ("failed", "interrupted by restart".to_owned());
    assert_eq!(
        told(all(&store, "next", 9).await),
        [failed(), failed(), ("success", String::new())]
    );
    assert!(!store.end_task("ws", "b", &done, 10).await.unwrap());
}

pub(super) async fn runs_of_a_graph_end_with_its_process(store: Store) {
    let graph = TaskRow {
        kind: "dispatch".into(),
        ..task("ws#3", "g", 1)
    };
    open(&store, &graph).await;
    store.start_task("ws#3", "g", "", 2).await.unwrap();
    for (run, question) in [("a", "g/0"), ("b", "g/1"), ("c", "g"), ("d", "h/0")] {
        let asked = detached("ann", question, i64::MAX);
        store.begin(asked, began(run), 2).await.unwrap();
    }
    let are_cancelled = async || {
        let mut all = Vec::new();
        for run in ["a", "b", "c", "d"] {
            all.push(store.asker(run).await.unwrap().unwrap().cancelled);
        }
        all
    };
    all(&store, "p", 9).await;
    assert_eq!(are_cancelled().await, [false; 4]);
    all(&store, "next", 9).await;
    assert_eq!(are_cancelled().await, [true, true, false, false]);
}

pub(super) async fn tasks_of_a_workspace_are_bounded_and_go_with_it(store: Store) {
    for at in 0..MOST_OPEN {
        let own = task("ws", &format!("{at:04}"), at);
        assert_eq!(open(&store, &own).await, Opened::New);
    }
    assert_eq!(open(&store, &task("ws", "x", 1)).await, Opened::TooMany);
    assert_eq!(open(&store, &task("other", "x", 1)).await, Opened::New);
    let done = ended(TaskStatus::Success);
    for at in 0..MOST_TASKS + 5 {
        let id = format!("{at:04}");
        open(&store, &task("ws", &id, at)).await;
        assert!(store.end_task("ws", &id, &done, at + 1).await.unwrap());
    }
    let kept = all(&store, "p", 9).await;
    let kept: Vec<_> = kept.iter().filter(|task| task.workspace == "ws").collect();
    assert_eq!(kept.len() as i64, MOST_TASKS);
    assert_eq!(kept[0].id, "0005", "the oldest went");
    store.purge_some("ws").await.unwrap();
    assert_eq!(all(&store, "p", 9).await.len(), 1);
}

pub(super) async fn tasks_that_are_over_are_kept_for_an_hour(store: Store) {
    open(&store, &task("ws", "a", 1)).await;
    open(&store, &task("ws", "b", 2)).await;
    let done = ended(TaskStatus::Failed);
    store.end_task("ws", "a", &done, 10).await.unwrap();
    assert_eq!(KEEP_TASKS_MS, 3_600_000);
    let count = async |now_ms| {
        store.prune_tasks("p", now_ms).await.unwrap();
        all(&store, "p", now_ms).await.len()
    };
    assert_eq!(count(10 + KEEP_TASKS_MS - 1).await, 2);
    assert_eq!(count(10 + KEEP_TASKS_MS).await, 1);
    let of = |user: &str, tree: &str| TasksOf::Tree {
        workspace: "ws".into(),
        user: user.into(),
        tree: tree.into(),
    };
    for (of, found) in [
        (of("ann", "talk"), 1),
        (of("bob", "talk"), 0),
        (of("ann", "x"), 0),
    ] {
        let tasks = store.tasks(&of, "p", ("", 9), 1).await.unwrap();
        assert_eq!(tasks.len(), found, "{of:?}");
    }
    // A page begins behind the one before.
    let of = TasksOf::Whose(Whose::Workspace("ws".into()));
    let place = task("ws", "b", 2).place();
    assert!(
        store
            .tasks(&of, "p", (&place, 9), 1)
            .await
            .unwrap()
            .is_empty()
    );
}
