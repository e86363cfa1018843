//! Who says nothing takes no place for long: a request's head has ten seconds, and so has a socket to say who is
//! there. Meanwhile everybody else is served.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tg_testkit::process::client;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::edge::{closed_within, raw_socket, with_keys};

#[tokio::test]
async fn heads_and_strangers_have_their_time() -> Result<()> {
    let server = with_keys().ready().await?;
    let mut sockets = Vec::new();
    for _ in 0..200 {
        sockets.push(raw_socket(&server).await?);
    }
    let mut heads = Vec::new();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await?;
        stream.write_all(b"POST / HTTP/1.1\r\nHost: x\r\n").await?;
        heads.push(stream);
    }
    let live = client()?.get(format!("{}health/live", server.url()));
    ensure!(live.send().await?.status().is_success(), "not served");
    let all = sockets.iter_mut().chain(heads.iter_mut());
    let ends = all.map(|stream| closed_within(stream, Duration::from_secs(60)));
    for end in futures::future::join_all(ends).await {
        end?;
    }
    Ok(())
}

#[tokio::test]
async fn a_head_byte_by_byte_gains_no_time() -> Result<()> {
    let server = with_keys().ready().await?;
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nX: ").await?;
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if stream.write_all(b"x").await.is_err() {
            return Ok(());
        }
    }
    bail!("a byte a second keeps it open")
}
