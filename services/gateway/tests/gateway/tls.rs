//! The endpoints with a certificate: everything as without, newcomers see what the files hold, and who speaks no TLS, or
//! never ends its handshake, is in nobody's way.

use std::time::Duration;

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tg_gateway::{AuthMode, GatewayOptions};
use tg_testkit::certificates::{Authority, Certified};
use tg_testkit::place::Place;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::world::{BOUND, World};

/// Pause between two looks at what newcomers are shown.
const LOOK: Duration = Duration::from_millis(50);
const AGENT: &str = "api/v1/flow/default/service/agent";

type Wss = WebSocketStream<TlsStream<TcpStream>>;

async fn start(place: &Place, certified: &Certified) -> World {
    World::with(place, AuthMode::None, |options| {
        options.heartbeat = Duration::from_millis(200);
        with(options, certified);
    })
    .await
}

fn with(options: &mut GatewayOptions, certified: &Certified) {
    options.settings.tls_cert = certified.cert();
    options.settings.tls_key = certified.key();
}

fn port(world: &World) -> u16 {
    world.handle.local_addr().port()
}

/// A socket whose caller is known.
async fn socket(world: &World, certified: &Certified) -> Wss {
    let stream = certified.connect(port(world)).await.unwrap();
    let url = format!("ws://localhost:{}/api/v1/socket", port(world));
    let (mut socket, _) = client_async(url, stream).await.unwrap();
    say(&mut socket, json!({"type": "auth", "token": ""})).await;
    assert_eq!(hear(&mut socket).await["type"], "auth-ok");
    socket
}

async fn say(socket: &mut Wss, frame: Value) {
    let text = Message::text(frame.to_string());
    socket.send(text).await.unwrap();
}

async fn hear(socket: &mut Wss) -> Value {
    let next = timeout(BOUND, socket.next()).await.unwrap();
    serde_json::from_str(next.unwrap().unwrap().to_text().unwrap()).unwrap()
}

async fn ask(socket: &mut Wss, id: &str, question: &str) {
    let request = json!({"question": question, "streaming": true});
    let frame = json!({"id": id, "service": "agent", "flow": "default", "request": request});
    say(socket, frame).await;
}

async fn requests_events_and_sockets_are_served_over_tls(place: Place) {
    let certified = Certified::new().unwrap();
    let world = start(&place, &certified).await;
    let url = world.handle.url();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let http = certified.client().unwrap();
    let request = json!({"operation": "list", "type": "prompt"});
    let request = http.post(format!("{url}api/v1/config")).json(&request);
    let answer = request.send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.version()),
        (200, axum::http::Version::HTTP_11)
    );

    let request = http.post(format!("{url}{AGENT}"));
    let request = request.header("accept", "text/event-stream");
    let events = request
        .json(&json!({"question": "q"}))
        .send()
        .await
        .unwrap();
    let events = events.text().await.unwrap();
    assert!(
        events.trim_end().ends_with("event: end\ndata: {}"),
        "{events}"
    );

    let mut socket = socket(&world, &certified).await;
    // More than a record of the protocol holds.
    let long = "x".repeat(100_000);
    ask(&mut socket, "long", &long).await;
    loop {
        let frame = hear(&mut socket).await;
        assert_eq!((&frame["id"], frame.get("error")), (&json!("long"), None));
        if frame["complete"] == true {
            break;
        }
    }
    let stranger = world.http.get(&url).send().await;
    assert!(stranger.is_err(), "an authority that nobody knows");
}

/// Waits until newcomers are shown a certificate.
async fn shows(world: &World, certified: &Certified, der: &[u8]) {
    let end = Instant::now() + BOUND;
    while certified.shown(port(world)).await.unwrap() != der {
        assert!(Instant::now() < end, "newcomers are shown the one before");
        tokio::time::sleep(LOOK).await;
    }
}

async fn a_new_certificate_is_for_newcomers_and_what_is_under_way_goes_on(place: Place) {
    let mut certified = Certified::new().unwrap();
    let world = start(&place, &certified).await;
    let first = certified.issued.clone();
    shows(&world, &certified, &first.der).await;
    let mut socket = socket(&world, &certified).await;
    ask(&mut socket, "runs", "hang").await;
    assert_eq!(hear(&mut socket).await["id"], "runs");
    let request = certified.client().unwrap();
    let request = request.post(format!("{}{AGENT}", world.handle.url()));
    let request = request.header("accept", "text/event-stream");
    let request = request.json(&json!({"question": "hang"}));
    let mut events = request.send().await.unwrap().bytes_stream();
    timeout(BOUND, events.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();

    let second = certified.authority.issue().unwrap();
    certified.put(second.clone()).unwrap();
    shows(&world, &certified, &second.der).await;
    // What cannot be used changes nothing: half a pair, a broken file, one that has ended.
    certified.spoil().unwrap();
    stays(&world, &certified, &second.der).await;
    let other = Authority::new("another").unwrap().issue().unwrap();
    let ended = certified.authority.issue_until(2020).unwrap();
    for unfit in [(other.cert, second.key.clone()), (ended.cert, ended.key)] {
        let (cert, key) = unfit;
        let der = Vec::new();
        let unfit = tg_testkit::certificates::Issued { cert, key, der };
        certified.put(unfit).unwrap();
        stays(&world, &certified, &second.der).await;
    }
    let third = certified.authority.issue().unwrap();
    certified.put(third.clone()).unwrap();
    shows(&world, &certified, &third.der).await;

    timeout(BOUND, events.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    say(&mut socket, json!({"type": "cancel", "id": "runs"})).await;
    let frame = hear(&mut socket).await;
    assert_eq!(
        (&frame["id"], &frame["complete"]),
        (&json!("runs"), &json!(true))
    );
    ask(&mut socket, "more", "q").await;
    assert_eq!(hear(&mut socket).await["id"], "more");
}

/// As long as the files are looked at more than once, newcomers are shown a certificate.
async fn stays(world: &World, certified: &Certified, der: &[u8]) {
    // Two looks at the files, and some.
    let end = Instant::now() + Duration::from_secs(7);
    while Instant::now() < end {
        assert_eq!(certified.shown(port(world)).await.unwrap(), der);
        tokio::time::sleep(LOOK).await;
    }
}

async fn plain_http_is_told_at_once_and_half_a_handshake_is_in_nobodys_way(place: Place) {
    let certified = Certified::new().unwrap();
    let world = start(&place, &certified).await;
    let address = world.handle.local_addr();
    let mut half = Vec::new();
    for n in 0..200 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // Nothing, or the begin of a record of the handshake.
        if n % 2 == 0 {
            stream.write_all(&[0x16, 3, 1, 2]).await.unwrap();
        }
        half.push(stream);
    }
    let live = format!("{}health/live", world.handle.url());
    let answer = certified.client().unwrap().get(live).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    // The body is more than is read of it.
    let head =
        format!("POST /{AGENT} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999999\r\n\r\n");
    for request in ["GET / HTTP/1.1\r\nhost: localhost\r\n\r\n", &head, "?\n"] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut told = String::new();
        timeout(BOUND, stream.read_to_string(&mut told))
            .await
            .unwrap()
            .unwrap();
        assert!(told.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{told}");
        assert!(
            told.ends_with(r#"{"error":"this port speaks https, not http"}"#),
            "{told}"
        );
    }
    // All were answered while every handshake that was begun still waits.
    let mut rest = [0; 64];
    for stream in &half {
        let waits = stream.try_read(&mut rest).unwrap_err();
        assert_eq!(waits.kind(), std::io::ErrorKind::WouldBlock);
    }
    for stream in &mut half {
        // The end, or an alert before it.
        let ended = timeout(BOUND, async {
            while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        });
        ended.await.unwrap();
    }
}

tg_testkit::on_both_buses!(
    requests_events_and_sockets_are_served_over_tls,
    a_new_certificate_is_for_newcomers_and_what_is_under_way_goes_on,
    plain_http_is_told_at_once_and_half_a_handshake_is_in_nobodys_way,
);

#[tokio::test]
async fn files_that_cannot_serve_are_refused_by_the_name_of_the_setting() {
    let certified = Certified::new().unwrap();
    let world = World::start(&Place::embedded(), AuthMode::None).await;
    let refused = async |change: &dyn Fn(&mut GatewayOptions)| {
        let mut options = GatewayOptions::new("127.0.0.1:0".parse().unwrap(), AuthMode::None);
        with(&mut options, &certified);
        change(&mut options);
        let served = tg_gateway::serve(world.mesh.mesh().clone(), options).await;
        served.err().map(|error| error.to_string())
    };
    assert_eq!(refused(&|_| {}).await, None);
    let told = refused(&|options| options.settings.tls_key = "/nowhere".into()).await;
    assert_eq!(
        told.as_deref(),
        Some("gateway.tls_key: the file cannot be read (entity not found)")
    );
    let told = refused(&|options| options.settings.tls_cert = certified.key()).await;
    assert_eq!(
        told.as_deref(),
        Some("gateway.tls_cert: the file must hold certificates in PEM form")
    );
}
