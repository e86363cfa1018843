//! The service as the gateway meets it: over a bus, with stand-ins for the config and flow services.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tg_iam::AuthMode;
use tg_mesh::{Answer, Ask, Deadline, Host, Processor};
use tg_schemas::msg::{
    ApiKeyInput, AuditEntry, AuditRequest, AuditResponse, ConfigRequest, FlowRequest, FlowResponse,
    IamRequest, IamResponse, UserInput, WorkspaceInput,
};
use tg_schemas::processors;
use tg_schemas::{Class, Error, ErrorCode, Topic};
use tg_testkit::bus::until;
use tg_testkit::config::Config;
use tg_testkit::fakes::{Play, Played};
use tg_testkit::place::Place;

const BOUND: Duration = Duration::from_secs(60);
/// Nothing that hangs ends by itself before a test does.
const LONG: Duration = Duration::from_secs(120);
/// Operations that take long, at once.
const PLACES: usize = 512;
/// More than these tests ask anybody at once.
const PLENTY: usize = 2 * PLACES;

/// What was asked of the others, in order.
#[derive(Default)]
struct World {
    flows: BTreeSet<String>,
    log: Vec<String>,
    /// The config service refuses to change anything.
    refuses: bool,
    /// The flow service does not answer.
    hangs: bool,
    /// Questions that it did not answer.
    hung: usize,
}

type Shared = Arc<Mutex<World>>;

/// What stands around the service, and the rows of the config service, which notes what it is asked and may refuse.
fn others() -> (Shared, Arc<Config>) {
    let world = Shared::default();
    let noting = world.clone();
    let rows = Config::default().watched(move |ask, done| match done {
        true => Ok(()),
        false => note(&noting, ask),
    });
    (world, Arc::new(rows))
}

/// What a request changes, in the words of the test.
fn note(world: &Shared, ask: &ConfigRequest) -> Result<(), Error> {
    let mut world = world.lock();
    if world.refuses {
        return Err(Error::new(ErrorCode::BadRequest, "refused"));
    }
    let lines: Vec<_> = match ask.operation.as_str() {
        "put" => {
            let keys = ask.values.iter().map(|row| &row.key);
            keys.map(|key| format!("register {key}")).collect()
        }
        "delete" => {
            let keys = ask.keys.iter().map(|row| &row.key);
            keys.map(|key| format!("delete {key}")).collect()
        }
        operation => vec![format!("{operation} {}", ask.workspace)],
    };
    world.log.extend(lines);
    Ok(())
}

struct System {
    mesh: Host,
    world: Shared,
    rows: Arc<Config>,
    dir: Arc<tempfile::TempDir>,
}

async fn start(place: &Place, auth_mode: AuthMode) -> System {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    start_in(place, dir, auth_mode, others()).await
}

async fn start_in(
    place: &Place,
    dir: Arc<tempfile::TempDir>,
    auth_mode: AuthMode,
    (world, rows): (Shared, Arc<Config>),
) -> System {
    let mesh = tg_testkit::place::host(place.connect().await).await;
    mesh.host(
        Processor::new(processors::config_svc::PROCESSOR)
            .serves(processors::config_svc::CONFIG, rows.clone())
            .concurrency(PLENTY),
    )
    .await
    .unwrap();
    let noting = world.clone();
    let flows = Played::new(move |_, ask: FlowRequest| {
        let mut reply = FlowResponse::default();
        let mut world = noting.lock();
        if ask.operation == "stop-flow" {
            world.flows.remove(&ask.flow_id);
            world.log.push(format!("stop-flow {}", ask.flow_id));
        } else {
            reply.flow_ids = world.flows.iter().cloned().collect();
        }
        if world.hangs {
            world.hung += 1;
            return Ok(Play::of(Vec::new()).hanging());
        }
        Ok(Play::from(reply))
    });
    mesh.host(
        Processor::new(processors::flow_svc::PROCESSOR)
            .serves(processors::flow_svc::FLOW, flows)
            .concurrency(PLENTY),
    )
    .await
    .unwrap();
    let options = tg_iam::Options {
        auth_mode,
        data_dir: dir.path().to_owned(),
        ..tg_iam::Options::default()
    };
    for processor in tg_iam::processors(&mesh, options) {
        mesh.host(processor).await.unwrap();
    }
    System {
        mesh,
        world,
        rows,
        dir,
    }
}

impl System {
    async fn ask(&self, ask: IamRequest) -> Result<IamResponse, Error> {
        self.asked(&ask, BOUND).last().await
    }

    fn asked(&self, ask: &IamRequest, patience: Duration) -> Answer<IamResponse> {
        let options = Ask {
            deadline: Some(Deadline::after(patience)),
            ..Ask::default()
        };
        let topic = Topic::system(Class::Request, "iam");
        self.mesh.ask(&topic, ask, options)
    }

    async fn audit(&self, ask: AuditRequest) -> Result<AuditResponse, Error> {
        let options = Ask {
            deadline: Some(Deadline::after(BOUND)),
            ..Ask::default()
        };
        let topic = Topic::system(Class::Request, "audit");
        self.mesh
            .ask::<_, AuditResponse>(&topic, &ask, options)
            .last()
            .await
    }

    async fn workspace(&self, operation: &str, id: &str) -> Result<IamResponse, Error> {
        self.ask(about(operation, id)).await
    }

    /// What was asked of others, but for the row that tells of a revocation.
    fn log(&self) -> Vec<String> {
        let log = self.world.lock().log.clone();
        log.into_iter()
            .filter(|line| line != "register epoch")
            .collect()
    }

    /// How often a revocation was told.
    fn revocations(&self) -> usize {
        let log = &self.world.lock().log;
        log.iter().filter(|line| *line == "register epoch").count()
    }
}

/// An operation on a workspace.
fn about(operation: &str, id: &str) -> IamRequest {
    IamRequest {
        workspace_record: Some(WorkspaceInput {
            id: id.into(),
            ..WorkspaceInput::default()
        }),
        ..op(operation)
    }
}

fn op(operation: &str) -> IamRequest {
    IamRequest {
        operation: operation.into(),
        ..IamRequest::default()
    }
}

async fn a_key_opens_its_workspace_until_that_is_deleted_with_all_that_runs_in_it(place: Place) {
    let up = start(&place, AuthMode::Iam).await;
    let stranger = up.ask(op("bootstrap")).await.unwrap_err();
    assert_eq!(stranger.kind, "auth-failed");
    let from_here = IamRequest {
        client_ip: "127.0.0.1".into(),
        ..op("bootstrap")
    };
    let admin = up.ask(from_here).await.unwrap();
    assert!(admin.bootstrap_admin_api_key.starts_with("tg_"));
    up.workspace("create-workspace", "acme").await.unwrap();
    let user = IamRequest {
        workspace: "acme".into(),
        user: Some(UserInput {
            username: "rita".into(),
            roles: vec!["reader".into()],
            ..UserInput::default()
        }),
        ..op("create-user")
    };
    let user = up.ask(user).await.unwrap().user.unwrap();
    let key = IamRequest {
        key: Some(ApiKeyInput {
            user_id: user.id.clone(),
            name: "laptop".into(),
            ..ApiKeyInput::default()
        }),
        ..op("create-api-key")
    };
    let key = up.ask(key).await.unwrap().api_key_plaintext;
    let resolve = || IamRequest {
        api_key: key.clone(),
        ..op("resolve-api-key")
    };
    let who = up.ask(resolve()).await.unwrap();
    assert_eq!(who.resolved_default_workspace, "acme");

    up.workspace("disable-workspace", "acme").await.unwrap();
    assert_eq!(up.ask(resolve()).await.unwrap_err().kind, "auth-failed");
    up.workspace("enable-workspace", "acme").await.unwrap();
    assert!(up.ask(resolve()).await.is_ok());
    assert_eq!(up.log(), ["register acme", "delete acme", "register acme"]);
    assert_eq!(up.revocations(), 2);

    // Deleted while disabled: what still runs there is stopped before anything is removed.
    up.workspace("disable-workspace", "acme").await.unwrap();
    for flow in ["one", "two"] {
        let mut world = up.world.lock();
        world.flows.insert(flow.to_owned());
        up.rows.set("acme", "flow", flow, "{}");
    }
    up.world.lock().log.clear();
    up.workspace("delete-workspace", "acme").await.unwrap();
    assert_eq!(
        up.log(),
        [
            "register acme",
            "stop-flow one",
            "stop-flow two",
            "delete-workspace acme"
        ]
    );
    assert!(up.ask(resolve()).await.is_err());
    let error = up.workspace("get-workspace", "acme").await.unwrap_err();
    assert_eq!(error.kind, "not-found");
    up.mesh.stop(Duration::from_secs(1)).await;
}

async fn a_revoked_signing_key_opens_nothing_and_a_named_request_makes_one_key(place: Place) {
    let up = start(&place, AuthMode::Iam).await;
    let from_here = IamRequest {
        client_ip: "127.0.0.1".into(),
        ..op("bootstrap")
    };
    let admin = up.ask(from_here).await.unwrap();
    let user_id = admin.bootstrap_admin_user_id;
    let mint = || IamRequest {
        actor: user_id.clone(),
        ..op("mint-token")
    };
    let jwt = up.ask(mint()).await.unwrap().jwt;
    let resolve = |jwt: &str| IamRequest {
        api_key: jwt.to_owned(),
        ..op("resolve-token")
    };
    up.ask(resolve(&jwt)).await.unwrap();
    up.ask(op("rotate-signing-key")).await.unwrap();
    up.ask(resolve(&jwt)).await.unwrap();
    let told = up.revocations();
    let unnamed = up.ask(op("revoke-signing-key")).await.unwrap_err();
    assert!(unnamed.message.contains("key_id"), "{unnamed}");
    up.ask(resolve(&jwt)).await.unwrap();
    let every = IamRequest {
        key_id: "*".to_owned(),
        ..op("revoke-signing-key")
    };
    up.ask(every).await.unwrap();
    assert_eq!(up.ask(resolve(&jwt)).await.unwrap_err().kind, "auth-failed");
    assert_eq!(up.revocations(), told + 1, "everybody looks again");
    let new = up.ask(mint()).await.unwrap().jwt;
    up.ask(resolve(&new)).await.unwrap();

    // A client that had no answer asks again, by another question.
    let key = |number: &str| IamRequest {
        request_id: number.into(),
        key: Some(ApiKeyInput {
            user_id: user_id.clone(),
            name: "laptop".into(),
            ..ApiKeyInput::default()
        }),
        ..op("create-api-key")
    };
    let named = async |number: &str, name: &str| {
        let options = Ask {
            deadline: Some(Deadline::after(BOUND)),
            request_id: Some(name.to_owned()),
            ..Ask::default()
        };
        let topic = Topic::system(Class::Request, "iam");
        let answer: Answer<IamResponse> = up.mesh.ask(&topic, &key(number), options);
        answer.last().await.unwrap().api_key_plaintext
    };
    let lost = named("1", "mine").await;
    let told = up.revocations();
    let seen = named("2", "mine").await;
    assert_eq!(up.revocations(), told + 1, "everybody forgets the first");
    let opens = async |key: &str| {
        let ask = IamRequest {
            api_key: key.to_owned(),
            ..op("resolve-api-key")
        };
        up.ask(ask).await.is_ok()
    };
    assert!(!opens(&lost).await && opens(&seen).await);
    // What the gateway calls a request says nothing of the client's.
    named("3", "3").await;
    named("4", "4").await;
    assert!(opens(&seen).await);
    let list = IamRequest {
        user_id: user_id.clone(),
        ..op("list-api-keys")
    };
    let laptops = up.ask(list).await.unwrap().api_keys.into_iter();
    assert_eq!(laptops.filter(|key| key.name == "laptop").count(), 3);
    up.mesh.stop(Duration::from_secs(1)).await;
}

async fn without_users_workspaces_still_come_and_go(place: Place) {
    let up = start(&place, AuthMode::None).await;
    assert_eq!(
        up.ask(op("authenticate-anonymous"))
            .await
            .unwrap()
            .resolved_user_id,
        "anonymous"
    );
    let error = up.ask(op("create-user")).await.unwrap_err();
    assert_eq!(error.kind, "operation-not-permitted");
    up.workspace("create-workspace", "acme").await.unwrap();
    let listed = up.ask(op("list-workspaces")).await.unwrap().workspaces;
    let ids: Vec<&str> = listed
        .iter()
        .map(|workspace| workspace.id.as_str())
        .collect();
    assert_eq!(ids, ["acme", "default"]);
    up.workspace("delete-workspace", "acme").await.unwrap();
    assert_eq!(up.log(), ["register acme", "delete-workspace acme"]);
    assert!(up.workspace("delete-workspace", "default").await.is_err());
    up.mesh.stop(Duration::from_secs(1)).await;
}

async fn a_revocation_that_was_not_told_is_told_by_the_next_process(place: Place) {
    let up = start(&place, AuthMode::None).await;
    up.workspace("create-workspace", "acme").await.unwrap();
    // It is committed, and nobody can be told; then the process ends.
    up.world.lock().refuses = true;
    let told = up.workspace("disable-workspace", "acme").await;
    assert!(told.is_err(), "its registration could not be removed");
    assert_eq!(up.revocations(), 0);
    let (dir, world, rows) = (up.dir.clone(), up.world.clone(), up.rows.clone());
    up.mesh.stop(Duration::from_secs(1)).await;
    drop(up);

    world.lock().refuses = false;
    let up = start_in(
        &place.another().await,
        dir.clone(),
        AuthMode::None,
        (world.clone(), rows.clone()),
    )
    .await;
    until(async || up.revocations() > 0).await;
    // Whoever revokes something hears of it when it is noted that it was told, and all before it.
    up.workspace("enable-workspace", "acme").await.unwrap();
    assert_eq!(up.revocations(), 2);
    up.mesh.stop(Duration::from_secs(1)).await;
    drop(up);

    // Once is enough.
    let up = start_in(&place.another().await, dir, AuthMode::None, (world, rows)).await;
    up.workspace("list-workspaces", "acme").await.unwrap();
    up.workspace("disable-workspace", "acme").await.unwrap();
    assert_eq!(up.revocations(), 3, "its own, and no older one");
    up.mesh.stop(Duration::from_secs(1)).await;
}

async fn a_restoration_that_fails_leaves_nothing_of_its_own_and_all_of_others(place: Place) {
    let up = start(&place, AuthMode::None).await;
    up.world.lock().refuses = true;
    up.workspace("restore-workspace", "gone").await.unwrap_err();
    let none = up.workspace("get-workspace", "gone").await.unwrap_err();
    assert_eq!(none.kind, "not-found");
    // One that is there is not taken away.
    up.world.lock().refuses = false;
    up.workspace("create-workspace", "acme").await.unwrap();
    up.world.lock().refuses = true;
    up.workspace("restore-workspace", "acme").await.unwrap_err();
    up.workspace("get-workspace", "acme").await.unwrap();
    up.world.lock().refuses = false;
    up.mesh.stop(Duration::from_secs(1)).await;
}

/// A deletion that ended in configuration and not here: users and keys of the old one are not those of the new.
async fn what_a_cut_deletion_left_is_not_of_the_next_workspace_of_the_name(place: Place) {
    let up = start(&place, AuthMode::Iam).await;
    let rows = up.rows.clone();
    let registry = "__workspaces__";
    let row = |generation: i64| format!(r#"{{"enabled":true,"generation":{generation}}}"#);
    let stone = |generation: i64| {
        format!(r#"{{"generation":{generation},"deleted-at":1,"purge-after":9000000000000}}"#)
    };
    let known = async |rows_of: &[(&str, &str, Option<&str>)]| {
        rows.apply_all(&up.mesh, registry, rows_of).await;
    };
    let from_here = IamRequest {
        client_ip: "127.0.0.1".into(),
        ..op("bootstrap")
    };
    up.ask(from_here).await.unwrap();
    let create_user = |name: &str| IamRequest {
        workspace: "acme".into(),
        user: Some(UserInput {
            username: name.into(),
            roles: vec!["reader".into()],
            ..UserInput::default()
        }),
        ..op("create-user")
    };
    // An older one of the name has ended; the stand-in for the config service gives no generations by itself.
    known(&[
        ("store", "identity", Some("x")),
        ("tombstone", "acme", Some(&stone(4))),
    ])
    .await;
    up.workspace("create-workspace", "acme").await.unwrap();
    known(&[("workspace", "acme", Some(&row(5)))]).await;
    up.ask(create_user("rita")).await.unwrap();
    let users = async || {
        let listed = up.ask(op("list-users")).await.unwrap().users;
        let of_acme = listed
            .into_iter()
            .filter(|one| one.default_workspace == "acme");
        of_acme.map(|one| one.username).collect::<Vec<_>>()
    };
    assert_eq!(users().await, ["rita"]);
    // It is seen in its generation by then, which the tombstone is not of.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    assert_eq!(users().await, ["rita"]);

    known(&[
        ("workspace", "acme", None),
        ("tombstone", "acme", Some(&stone(5))),
    ])
    .await;
    up.workspace("create-workspace", "acme").await.unwrap();
    known(&[("workspace", "acme", Some(&row(6)))]).await;
    assert_eq!(users().await, [""; 0]);
    up.ask(create_user("rita")).await.unwrap();
    assert_eq!(users().await, ["rita"]);

    // Nobody makes another: what is left goes all the same.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    known(&[
        ("workspace", "acme", None),
        ("tombstone", "acme", Some(&stone(6))),
    ])
    .await;
    until(async || users().await.is_empty()).await;
    let error = up.workspace("get-workspace", "acme").await.unwrap_err();
    assert_eq!(error.kind, "not-found");
    up.mesh.stop(Duration::from_secs(1)).await;
}

/// What waits for others, or for the disk, takes nothing from what every request of every workspace needs.
async fn a_key_is_checked_while_all_that_takes_long_is_in_progress(place: Place) {
    let up = start(&place, AuthMode::Iam).await;
    let from_here = IamRequest {
        client_ip: "127.0.0.1".into(),
        ..op("bootstrap")
    };
    let admin = up.ask(from_here).await.unwrap();
    up.workspace("create-workspace", "acme").await.unwrap();
    up.rows.set("acme", "flow", "one", "{}");
    up.world.lock().hangs = true;
    let deletion = about("delete-workspace", "acme");
    let asked = (0..PLACES).map(|_| up.asked(&deletion, LONG));
    let long: Vec<_> = asked.map(|one| tokio::spawn(one.last())).collect();
    until(async || up.world.lock().hung == PLACES).await;

    let resolve = IamRequest {
        api_key: admin.bootstrap_admin_api_key.clone(),
        ..op("resolve-api-key")
    };
    for _ in 0..100 {
        let who = up.ask(resolve.clone()).await.unwrap();
        assert_eq!(who.resolved_user_id, admin.bootstrap_admin_user_id);
    }
    let more = up.ask(op("list-users")).await.unwrap_err();
    assert_eq!(more.code(), ErrorCode::Busy, "{more}");

    // Who does not wait any more takes no place.
    up.world.lock().hangs = false;
    long.iter().for_each(tokio::task::JoinHandle::abort);
    until(async || up.ask(op("list-users")).await.is_ok()).await;
    up.mesh.stop(Duration::from_secs(1)).await;
}

/// What is said to have happened in a workspace that cannot be is counted as lost, and takes nothing with it; in one that is
/// not there any more, it takes the room of the system.
async fn what_happened_in_no_workspace_is_lost_or_has_one_room(place: Place) {
    let up = start(&place, AuthMode::None).await;
    let keep = async |workspace: &str, sequence: i64| {
        let entry = AuditEntry {
            kind: "read".into(),
            workspace: workspace.into(),
            time: 1_800_000_000_000,
            until: 1_800_000_000_000,
            count: 1,
            ..AuditEntry::default()
        };
        up.audit(AuditRequest {
            operation: "keep-events".into(),
            source: "gateway-x".into(),
            sequence,
            entries: vec![
                AuditEntry {
                    workspace: String::new(),
                    ..entry.clone()
                },
                entry,
            ],
            ..AuditRequest::default()
        })
        .await
    };
    let wrong = ["a b", "x\u{0}", "__iam__", &"x".repeat(300)];
    for (at, wrong) in wrong.into_iter().enumerate() {
        keep(wrong, at as i64).await.unwrap();
    }
    keep("gone", 9).await.unwrap();
    let listed = AuditRequest {
        operation: "list-events".into(),
        kind: "read".into(),
        ..AuditRequest::default()
    };
    let found = up.audit(listed).await.unwrap().entries;
    let named: Vec<&str> = found.iter().map(|one| one.workspace.as_str()).collect();
    assert_eq!(named, ["", "gone"]);
    assert_eq!(found[0].count, 5, "what came with the wrong ones is kept");
    let listed = AuditRequest {
        operation: "list-events".into(),
        kind: "lost".into(),
        ..AuditRequest::default()
    };
    let lost = up.audit(listed).await.unwrap().entries;
    let lost: Vec<_> = lost
        .iter()
        .map(|one| (one.operation.as_str(), one.reason.as_str(), one.count))
        .collect();
    assert_eq!(lost, [("read", "refused", 4)]);
    up.mesh.stop(Duration::from_secs(1)).await;
}

tg_testkit::on_both_buses!(
    what_happened_in_no_workspace_is_lost_or_has_one_room,
    a_key_is_checked_while_all_that_takes_long_is_in_progress,
    what_a_cut_deletion_left_is_not_of_the_next_workspace_of_the_name,
    a_key_opens_its_workspace_until_that_is_deleted_with_all_that_runs_in_it,
    a_revoked_signing_key_opens_nothing_and_a_named_request_makes_one_key,
    without_users_workspaces_still_come_and_go,
    a_revocation_that_was_not_told_is_told_by_the_next_process,
    a_restoration_that_fails_leaves_nothing_of_its_own_and_all_of_others,
);
