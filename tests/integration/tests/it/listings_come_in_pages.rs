//! Every listing comes in pages for who asks so, over REST and on a socket, and whole for who does not: each entry once,
//! whatever comes or goes between two pages, and a last page that says so.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tg_testkit::model::{Reply, Rule, ScriptedModel};
use tg_testkit::process::{Server, client};
use tg_testkit::socket::Socket;

use crate::edge::first_key;
use crate::world::{Bus, launch};

/// Names of what is made of each kind.
const NAMES: [&str; 3] = ["na", "nb", "nc"];
/// What is made is listed by then.
const SOON: Duration = Duration::from_secs(60);

/// A listing: its service, its question, and where the names of its entries are in a reply.
struct Listing {
    service: &'static str,
    ask: Value,
    names: fn(&Value) -> Vec<String>,
}

impl Listing {
    fn new(service: &'static str, ask: Value, names: fn(&Value) -> Vec<String>) -> Self {
        Self {
            service,
            ask,
            names,
        }
    }

    fn page(&self, limit: i64, after: &str) -> Value {
        let mut ask = self.ask.clone();
        ask["limit"] = json!(limit);
        ask["after"] = json!(after);
        ask
    }
}

fn texts(list: &Value) -> Vec<String> {
    let texts = list
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

fn field(list: &Value, name: &str) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    texts(&all.map(|one| one[name].clone()).collect())
}

fn rows(config: &Value) -> Vec<String> {
    let types = config.as_object().into_iter().flatten();
    let of_type = |(kind, rows): (&String, &Value)| {
        let rows = rows.as_object().into_iter().flatten();
        rows.map(|(key, _)| format!("{kind}/{key}"))
            .collect::<Vec<_>>()
    };
    types.flat_map(of_type).collect()
}

/// Listings that are looked at page by page in another file, which names them: what they list takes more to make.
const ELSEWHERE: [(&str, &str, &str); 14] = [
    (
        "requests",
        "list-runs",
        include_str!("../../../../services/gateway/tests/gateway/runs.rs"),
    ),
    (
        "requests",
        "list-tasks",
        include_str!("../../../../services/gateway/tests/gateway/runs.rs"),
    ),
    (
        "traces",
        "list-ended-runs",
        include_str!("traces_tell_of_tampering.rs"),
    ),
    ("usage", "list-usage", include_str!("budgets_bind.rs")),
    (
        "violations",
        "list-violations",
        include_str!("../../../../services/extract/tests/over_the_bus/ontology.rs"),
    ),
    (
        "sessions",
        "list-sessions",
        include_str!("../../../../services/sessions/src/tests/sessions.rs"),
    ),
    (
        "sessions",
        "list-messages",
        include_str!("../../../../services/sessions/src/tests/turns.rs"),
    ),
    (
        "sessions",
        "list-memories",
        include_str!("../../../../services/sessions/src/tests/memory.rs"),
    ),
    (
        "sessions",
        "list-agents",
        include_str!("../../../../services/sessions/src/tests/workspace_agents.rs"),
    ),
    (
        "sessions",
        "list-llm-services",
        include_str!("../../../../services/sessions/src/tests/llm_services.rs"),
    ),
    (
        "sessions",
        "list-reranking-services",
        include_str!("../../../../services/sessions/src/tests/reranking_services.rs"),
    ),
    (
        "sessions",
        "list-conversations",
        include_str!("../../../../services/sessions/src/tests/conversations.rs"),
    ),
    (
        "sessions",
        "list-conversation-messages",
        include_str!("../../../../services/sessions/src/tests/conversations.rs"),
    ),
    (
        "sessions",
        "list-conversation-summaries",
        include_str!("../../../../services/sessions/src/tests/in_place.rs"),
    ),
];
/// Listings that are always one answer: of files that the operator wrote, and of what comes with the program.
const WHOLE: [(&str, &str); 2] = [
    ("sessions", "list-named-agents"),
    ("sessions", "list-templates"),
];
/// Listings of configuration, which keep the reference's names. Of all workspaces nobody outside lists anything.
const OF_CONFIG: [&str; 3] = ["list", "getvalues", "config"];

/// The listings that the gateway's registry has: its description says the operations of each service, and is held against it.
fn described() -> BTreeSet<(String, String)> {
    let openapi = include_str!("../../../../specs/api/openapi.yaml");
    let (mut service, mut within, mut found) = ("", false, BTreeSet::new());
    for line in openapi.lines() {
        if let Some(path) = line.strip_prefix("  /") {
            service = path.strip_prefix("api/v1/").unwrap_or_default();
            service = service.trim_end_matches(':');
        }
        // The block ends with the next key beside it.
        let beside = line.starts_with("      ") && !line.starts_with("       ");
        within = (within && !beside) || line.trim() == "x-operations:";
        let words = line.split(|c: char| !c.is_ascii_lowercase() && c != '-');
        for word in words.filter(|_| within) {
            if word.starts_with("list-") || service == "config" && OF_CONFIG.contains(&word) {
                found.insert((service.to_owned(), word.to_owned()));
            }
        }
    }
    found
}

#[test]
fn every_listing_there_is_has_a_test() {
    let here = listings(&Made::default()).into_iter().map(|listing| {
        let operation = listing.ask["operation"].as_str().unwrap_or_default();
        (listing.service.to_owned(), operation.to_owned())
    });
    let elsewhere = ELSEWHERE.iter().map(|(service, operation, text)| {
        let paged = text.contains(operation) && text.contains("limit");
        assert!(paged, "{operation} is not looked at page by page");
        ((*service).to_owned(), (*operation).to_owned())
    });
    let whole = WHOLE.map(|(service, operation)| (service.to_owned(), operation.to_owned()));
    let tested: BTreeSet<_> = here.chain(elsewhere).chain(whole).collect();
    assert_eq!(tested, described());
}

/// Whose keys, members and grants are listed.
#[derive(Default)]
struct Made {
    user: String,
    group: String,
}

/// The list that is a text in JSON.
fn embedded(reply: &Value, list: &str, name: &str) -> Vec<String> {
    let text = reply[list].as_str().unwrap_or_default();
    field(&serde_json::from_str(text).unwrap_or_default(), name)
}

/// What happened, each with what it was done to.
fn events(list: &Value) -> Vec<String> {
    let all = list.as_array().into_iter().flatten();
    let target = |one: &Value| one["target"].as_str().unwrap_or_default().to_owned();
    all.map(|one| format!("{}/{}", one["id"], target(one)))
        .collect()
}

/// What iam and its audit list. Grants are told by their workspaces, changes by what was changed.
fn of_access(made: &Made) -> Vec<Listing> {
    let system = |operation: &str| json!({"operation": operation});
    let of_user = |operation: &str| json!({"operation": operation, "user_id": made.user});
    let of_group = |operation: &str| json!({"operation": operation, "group_id": made.group});
    let grants: fn(&Value) -> Vec<String> = |reply| embedded(reply, "grants_json", "workspace");
    let changes = json!({"operation": "list-events", "kind": "change"});
    vec![
        Listing::new("iam", system("list-users"), |reply| {
            field(&reply["users"], "username")
        }),
        Listing::new("iam", system("list-workspaces"), |reply| {
            field(&reply["workspaces"], "id")
        }),
        Listing::new("iam", system("list-my-workspaces"), |reply| {
            field(&reply["workspaces"], "id")
        }),
        Listing::new("iam", of_user("list-api-keys"), |reply| {
            field(&reply["api_keys"], "name")
        }),
        Listing::new("iam", system("list-groups"), |reply| {
            embedded(reply, "groups_json", "name")
        }),
        Listing::new("iam", of_group("list-group-members"), |reply| {
            embedded(reply, "members_json", "username")
        }),
        Listing::new("iam", of_group("list-group-grants"), grants),
        Listing::new("iam", of_user("list-user-grants"), grants),
        Listing::new("audit", changes, |reply| events(&reply["entries"])),
    ]
}

/// What the library lists: documents, the parts of one, processings and uploads.
fn of_the_library() -> Vec<Listing> {
    let of = |operation: &str| about(operation, json!({}));
    let parts = about("list-children", json!({"document-id": document("na")}));
    let documents: fn(&Value) -> Vec<String> = |reply| field(&reply["document-metadatas"], "id");
    vec![
        Listing::new("librarian", of("list-documents"), documents),
        Listing::new("librarian", parts, documents),
        Listing::new("librarian", of("list-processing"), |reply| {
            field(&reply["processing-metadatas"], "id")
        }),
        Listing::new("librarian", of("list-uploads"), |reply| {
            field(&reply["upload-sessions"], "document-id")
        }),
    ]
}

/// Id of the document of a name.
fn document(name: &str) -> String {
    format!("urn:d/{name}")
}

/// All listings that are looked at here.
fn listings(made: &Made) -> Vec<Listing> {
    let of = |operation: &str| about(operation, json!({}));
    let typed = |operation: &str| about(operation, json!({"type": "paged"}));
    let services = vec![
        Listing::new("config", typed("list"), |reply| texts(&reply["directory"])),
        Listing::new("config", typed("getvalues"), |reply| {
            field(&reply["values"], "key")
        }),
        Listing::new("config", of("config"), |reply| rows(&reply["config"])),
        Listing::new("flow", of("list-flows"), |reply| texts(&reply["flow-ids"])),
        Listing::new("flow", of("list-blueprints"), |reply| {
            texts(&reply["blueprint-names"])
        }),
        dead_letters(),
        requests(),
        Listing::new("collection-management", of("list-collections"), |reply| {
            field(&reply["collections"], "collection")
        }),
        Listing::new("threads", of("list-listeners"), |reply| {
            field(&reply["listeners"], "name")
        }),
        Listing::new("threads", of("list-refused-listeners"), |reply| {
            field(&reply["refused"], "name")
        }),
        Listing::new("knowledge", of("list-kg-cores"), |reply| {
            texts(&reply["ids"])
        }),
        Listing::new("knowledge", of("list-de-cores"), |reply| {
            texts(&reply["ids"])
        }),
    ];
    let more = of_access(made).into_iter().chain(of_the_library());
    services.into_iter().chain(more).collect()
}

/// Dead letters by the flows they are of.
fn dead_letters() -> Listing {
    let ask = about("list-put-aside", json!({"reason": "dead"}));
    Listing::new("flow", ask, |reply| field(&reply["put-aside"], "flow-id"))
}

/// What goes on without its caller, by the ids that it came with.
fn requests() -> Listing {
    let ask = json!({"operation": "list-requests"});
    Listing::new("requests", ask, |reply| {
        field(&reply["requests"], "request-id")
    })
}

/// A question about the workspace that all of this is in.
fn about(operation: &str, more: Value) -> Value {
    let mut ask = more;
    ask["operation"] = json!(operation);
    ask["workspace"] = json!("default");
    ask
}

/// Puts a core of one triple.
fn core(name: &str) -> Value {
    let iri = |text: &str| json!({"t": "i", "i": text});
    let triple = json!({"s": iri("urn:a"), "p": iri("urn:b"), "o": iri("urn:c")});
    let triples = json!({"metadata": {"id": name, "collection": "default"}, "triples": [triple]});
    about("put-kg-core", json!({"id": name, "triples": triples}))
}

/// A client with a key.
struct Client {
    url: String,
    key: String,
    socket: Socket,
}

impl Client {
    async fn connect(server: &Server, key: String) -> Result<Self> {
        Ok(Self {
            url: server.url(),
            socket: Socket::connect(&server.url(), &key).await?,
            key,
        })
    }

    async fn rest(&self, service: &str, ask: &Value) -> Result<Value> {
        let url = format!("{}api/v1/{service}", self.url);
        let sent = client()?.post(url).bearer_auth(&self.key).json(ask);
        Ok(sent.send().await?.json().await?)
    }

    async fn good(&self, service: &str, ask: Value) -> Result<Value> {
        let reply = self.rest(service, &ask).await?;
        ensure!(reply.get("error").is_none(), "{ask}: {reply}");
        Ok(reply)
    }

    async fn framed(&self, service: &str, ask: &Value) -> Result<Value> {
        let mut envelope = json!({"service": service, "request": ask});
        if let Some(workspace) = ask.get("workspace") {
            envelope["workspace"] = workspace.clone();
        }
        let frames = self.socket.send(envelope).await?;
        let frames = frames.all(SOON).await?;
        let last = frames.last().context("no frame")?;
        Ok(last.get("response").unwrap_or(last).clone())
    }

    /// Makes some of everything that is listed.
    async fn fill(&self) -> Result<Made> {
        let of = about("get-blueprint", json!({"blueprint-name": "everything"}));
        let definition = self.good("flow", of).await?["blueprint-definition"].clone();
        for name in NAMES {
            let row = json!({"type": "paged", "key": name, "value": "{}"});
            let listener = json!({"description": "d", "types": {"textinput": {}}});
            let listener = json!({"type": "listener", "key": name, "value": listener.to_string()});
            let key = format!("refused/{name}");
            let refused = json!({"type": "listener", "key": key, "value": "{}"});
            let rows = json!({"values": [row, listener, refused]});
            self.good("config", about("put", rows)).await?;
            let flow = json!({"flow-id": name, "blueprint-name": "everything", "description": "d"});
            self.good("flow", about("start-flow", flow)).await?;
            self.poison(name).await?;
            self.detach(name).await?;
            let blueprint = json!({"blueprint-name": name, "blueprint-definition": definition});
            self.good("flow", about("put-blueprint", blueprint)).await?;
            let collection = about("update-collection", json!({"collection": name}));
            self.good("collection-management", collection).await?;
            self.good("knowledge", core(name)).await?;
            let chunks = json!([{"chunk_id": "c", "vector": [0.5]}]);
            let chunks =
                json!({"metadata": {"id": name, "collection": "default"}, "chunks": chunks});
            let put = json!({"id": name, "document-embeddings": chunks});
            self.good("knowledge", about("put-de-core", put)).await?;

            self.shelve(name).await?;
        }
        self.let_in().await
    }

    /// A document with a part, an upload that is not complete, and a processing that finds no text.
    async fn shelve(&self, name: &str) -> Result<()> {
        let of = |id: String| json!({"id": id, "kind": "text/plain", "title": name});
        let add = json!({"content": STANDARD.encode(" "), "document-metadata": of(document(name))});
        self.good("librarian", about("add-document", add)).await?;
        let mut part = of(format!("urn:part/{name}"));
        part["parent-id"] = json!(document("na"));
        let part = json!({"content": STANDARD.encode("x"), "document-metadata": part});
        self.good("librarian", about("add-child-document", part))
            .await?;
        let upload = of(format!("urn:upload/{name}"));
        let upload = json!({"total-size": 10, "chunk-size": 5, "document-metadata": upload});
        self.good("librarian", about("begin-upload", upload))
            .await?;
        let processing = json!({"id": format!("p/{name}"), "document-id": document(name),
            "flow": "default", "collection": "default"});
        let processing = json!({"processing-metadata": processing});
        self.good("librarian", about("add-processing", processing))
            .await?;
        Ok(())
    }

    /// Workspaces, users and groups; the last of each has keys, members and grants. The user is told and the group.
    async fn let_in(&self) -> Result<Made> {
        let (mut users, mut made) = (Vec::new(), Made::default());
        for name in NAMES {
            let workspace = json!({"id": name});
            let workspace = json!({"operation": "create-workspace", "workspace_record": workspace});
            self.good("iam", workspace).await?;
            let user = json!({"user": {"username": name, "roles": ["reader"]}});
            let user = self.good("iam", about("create-user", user)).await?;
            made.user = user["user"]["id"].as_str().context("no user")?.to_owned();
            users.push(made.user.clone());
            let group = json!({"operation": "create-group", "group": {"name": name}});
            let group = self.good("iam", group).await?;
            let group = group["group_json"].as_str().context("no group")?;
            let group: Value = serde_json::from_str(group)?;
            made.group = group["id"].as_str().context("no id")?.to_owned();
        }
        for (name, user) in NAMES.into_iter().zip(users) {
            let key = json!({"key": {"user_id": made.user, "name": name, "expires": ""}});
            self.good("iam", about("create-api-key", key)).await?;
            let member = json!({"operation": "add-group-member", "group_id": made.group,
                "member_type": "user", "member_id": user});
            self.good("iam", member).await?;
            let grant = json!({"capability": "rows:read", "workspace": name});
            let to_user =
                json!({"operation": "add-user-grant", "user_id": made.user, "grant": grant});
            self.good("iam", to_user).await?;
            let to_group =
                json!({"operation": "add-group-grant", "group_id": made.group, "grant": grant});
            self.good("iam", to_group).await?;
        }
        Ok(made)
    }

    /// Brings a record into a flow that nothing in it can take.
    async fn poison(&self, flow: &str) -> Result<()> {
        let iri = |text: &str| json!({"t": "i", "i": text});
        let triple = json!({"s": iri("urn:s"), "p": iri("not an iri"), "o": iri("urn:o")});
        // Without an id no core is made of it.
        let metadata = json!({"id": "", "collection": "default"});
        let record = json!({"metadata": metadata, "triples": [triple]});
        let url = format!("{}api/v1/flow/{flow}/import/triples", self.url);
        let sent = client()?.post(url).bearer_auth(&self.key);
        let sent = sent.body(format!("{record}\n")).send().await?;
        ensure!(sent.status().is_success(), "{}", sent.text().await?);
        self.until_listed(&dead_letters(), flow).await
    }

    /// Asks an agent something that goes on without its caller.
    async fn detach(&self, id: &str) -> Result<()> {
        let url = format!("{}api/v1/flow/default/service/agent", self.url);
        let asked = client()?.post(url).bearer_auth(&self.key);
        let asked = asked.header("X-Detach", "true").header("X-Request-Id", id);
        // Its model does not answer.
        tokio::spawn(asked.json(&json!({"question": "q"})).send());
        self.until_listed(&requests(), id).await
    }

    async fn until_listed(&self, listing: &Listing, name: &str) -> Result<()> {
        let end = Instant::now() + SOON;
        loop {
            let listed = self.good(listing.service, listing.ask.clone()).await?;
            if (listing.names)(&listed).iter().any(|one| one == name) {
                return Ok(());
            }
            ensure!(Instant::now() < end, "{name} is not in {listed}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A listing page by page: over REST, or on the socket.
    async fn walk(&self, listing: &Listing, limit: i64, framed: bool) -> Result<Vec<Vec<String>>> {
        let (mut pages, mut after) = (Vec::new(), String::new());
        loop {
            let ask = listing.page(limit, &after);
            let reply = match framed {
                true => self.framed(listing.service, &ask).await?,
                false => self.rest(listing.service, &ask).await?,
            };
            ensure!(reply.get("error").is_none(), "{ask}: {reply}");
            pages.push((listing.names)(&reply));
            match reply.get("next") {
                Some(next) => after = next.as_str().context("a cursor is text")?.to_owned(),
                None => return Ok(pages),
            }
            ensure!(pages.len() < 5000, "{ask}: has no end");
        }
    }

    async fn is_paged(&self, listing: &Listing) -> Result<()> {
        let ask = &listing.ask;
        let whole = self.good(listing.service, ask.clone()).await?;
        ensure!(whole.get("next").is_none(), "{ask}: {whole}");
        let whole = (listing.names)(&whole);
        for name in NAMES {
            let found = whole.iter().any(|one| one.rsplit('/').next() == Some(name));
            ensure!(found, "{ask}: {name} in {whole:?}");
        }
        for (limit, framed) in [(1, true), (2, false), (i64::MAX, false)] {
            let pages = self.walk(listing, limit, framed).await?;
            ensure!(
                pages.concat() == whole,
                "{ask}: {pages:?}, and not {whole:?}"
            );
            let (last, full) = pages.split_last().context("no page")?;
            ensure!(!last.is_empty(), "{ask}: the last page is empty: {pages:?}");
            let most = usize::try_from(limit)?.min(whole.len());
            ensure!(
                full.iter().all(|page| page.len() == most),
                "{ask}: {pages:?}"
            );
        }
        for (limit, after, names) in [(-1, "", "limit: "), (1, "nonsense", "after: ")] {
            let wrong = listing.page(limit, after);
            let refused = self.rest(listing.service, &wrong).await?;
            let message = refused["error"]["message"].as_str().unwrap_or_default();
            ensure!(message.starts_with(names), "{wrong}: {refused}");
        }
        Ok(())
    }

    /// What comes and goes between two pages moves nobody else.
    async fn changes_meanwhile(&self) -> Result<()> {
        let listing = Listing::new("knowledge", about("list-kg-cores", json!({})), |reply| {
            texts(&reply["ids"])
        });
        let first = self.good("knowledge", listing.page(2, "")).await?;
        ensure!((listing.names)(&first) == ["na", "nb"], "{first}");
        let gone = about("delete-kg-core", json!({"id": "nb"}));
        self.good("knowledge", gone).await?;
        for name in ["a", "nbb"] {
            self.good("knowledge", core(name)).await?;
        }
        let next = first["next"].as_str().context("no next")?;
        let second = self.good("knowledge", listing.page(9, next)).await?;
        let names = (listing.names)(&second);
        ensure!(
            names.starts_with(&["nbb".to_owned(), "nc".to_owned()]),
            "{second}"
        );
        // A cursor is good for its own listing.
        let other = about("list-de-cores", json!({"after": next}));
        let refused = self.rest("knowledge", &other).await?;
        ensure!(
            refused["error"]["message"]
                .as_str()
                .is_some_and(|text| text.starts_with("after: ")),
            "{refused}"
        );
        Ok(())
    }
}

async fn in_pages(bus: Bus) -> Result<()> {
    let silent = Rule::always(Reply::text("late")).delayed(Duration::from_secs(300));
    let model = ScriptedModel::start(vec![silent]).await?;
    let node = bus.broker().await?;
    let launch = launch(&model, node.as_ref()).arg("--auth").arg("iam");
    let server = launch.ready().await?;
    let admin = first_key(&server).await?;
    let client = Client::connect(&server, admin).await?;
    let made = client.fill().await?;
    for listing in listings(&made) {
        client.is_paged(&listing).await?;
    }
    client.changes_meanwhile().await
}

#[tokio::test]
async fn on_the_embedded_bus() -> Result<()> {
    in_pages(Bus::Embedded).await
}

#[tokio::test]
async fn over_a_broker() -> Result<()> {
    in_pages(Bus::Rabbit).await
}
