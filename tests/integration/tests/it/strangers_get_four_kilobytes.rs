//! Who is not known gets no memory: a frame of 50 MB before authentication is refused at its head. Who is known
//! gets a bound of it: a frame that would need more than a gigabyte as a tree of values is refused before it is one.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tg_testkit::process::client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::edge::{closed_within, peak, raw_socket, text_frame, with_keys};

/// Much less than the trees would take (5 GB), enough for the process.
const ADDRESS_SPACE: u64 = 6 << 30;

fn bomb(before: &str, after: &str) -> Vec<u8> {
    let mut bytes = before.as_bytes().to_vec();
    bytes.extend(b"[0],".repeat(12_400_000));
    bytes.extend(after.as_bytes());
    bytes
}

#[tokio::test]
async fn before_authentication() -> Result<()> {
    let mut server = with_keys().address_space(ADDRESS_SPACE).ready().await?;
    let before = peak(&server)?;
    let frame = text_frame(&bomb(r#"{"type":"auth","token":"x","x":["#, "0]}"));
    let attacks = (0..4).map(|_| async {
        let mut socket = raw_socket(&server).await?;
        // It is cut off while it sends.
        let _ = socket.write_all(&frame).await;
        closed_within(&mut socket, Duration::from_secs(5)).await
    });
    for closed in futures::future::join_all(attacks).await {
        closed?;
    }
    let url = format!("{}api/v1/iam", server.url());
    let body = json!({"operation": "bootstrap-status", "x": "x".repeat(5000)});
    let response = client()?.post(&url).json(&body).send().await?;
    assert_eq!(response.status().as_u16(), 413);
    // Of a key that is wrong that is said, wherever it is shown, and not how little strangers may send.
    for endpoint in ["iam", "config", "flow/default/service/agent"] {
        let url = format!("{}api/v1/{endpoint}", server.url());
        for (key, status) in [(None, 413), (Some("tg_wrong"), 401)] {
            let mut request = client()?.post(&url).json(&body);
            if let Some(key) = key {
                request = request.bearer_auth(key);
            }
            let answered = request.send().await?.status().as_u16();
            let strangers = key.is_none() && matches!(answered, 401 | 413);
            assert!(
                answered == status || strangers,
                "{endpoint} {key:?}: {answered}"
            );
        }
    }
    let taken = peak(&server)? - before;
    assert!(taken < 100, "{taken} MiB");
    assert!(server.alive());
    Ok(())
}

#[tokio::test]
async fn after_authentication() -> Result<()> {
    let launch = tg_testkit::process::Launch::up();
    let mut server = launch.address_space(ADDRESS_SPACE).ready().await?;
    let before = peak(&server)?;
    let request = r#"{"id":"1","service":"agent","flow":"default","request":{"x":["#;
    let mut socket = raw_socket(&server).await?;
    socket
        .write_all(&text_frame(&bomb(request, "0]}}")))
        .await?;
    let mut head = [0; 2];
    socket.read_exact(&mut head).await?;
    let mut length = usize::from(head[1] & 0x7f);
    if length == 126 {
        length = usize::from(socket.read_u16().await?);
    }
    let mut answer = vec![0; length];
    socket.read_exact(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.contains("too-large"), "{answer}");
    let taken = peak(&server)? - before;
    assert!(taken < 400, "{taken} MiB");
    assert!(server.alive());
    Ok(())
}
