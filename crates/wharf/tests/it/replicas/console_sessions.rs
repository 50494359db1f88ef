//! Tests that tickets and sessions of the console work at every gateway, and end everywhere.

use super::{Cluster, OTHER_TOKEN, PROPAGATION_TIMEOUT, until};
use crate::kills::gateway::{Gateway, TOKEN};
use serde_json::Value;
use std::fs;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

async fn send(gateway: &str, method: &str, path: &str, credential: &str) -> (u16, Value) {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {gateway}\r\nAuthorization: Bearer {credential}\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let mut stream = TcpStream::connect(gateway).await.expect("somebody listens");
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
    (status, serde_json::from_str(body).unwrap_or_default())
}

async fn ticket(gateway: &str, token: &str) -> String {
    let (status, ticket) = send(gateway, "POST", "/api/v1/tickets", token).await;
    assert_eq!(status, 201, "{ticket}");
    ticket["ticket"].as_str().expect("a ticket").to_owned()
}

async fn session(gateway: &str, credential: &str) -> String {
    let (status, session) = send(gateway, "POST", "/api/v1/session", credential).await;
    assert_eq!(status, 201, "{session}");
    session["session"].as_str().expect("a session").to_owned()
}

async fn status(gateway: &str, session: &str) -> u16 {
    send(gateway, "GET", "/api/v1/session", session).await.0
}

#[tokio::test]
async fn console_session_works_and_ends_at_every_replica() {
    let cluster = Cluster::new().await;
    let (first, second) = tokio::join!(cluster.gateway(0), cluster.gateway(1));
    let (here, there) = (first.address.as_str(), second.address.as_str());

    // A ticket of one replica works at the other, and then at none.
    let once = ticket(here, TOKEN).await;
    let operator = session(there, &once).await;
    for gateway in [here, there] {
        assert_eq!(send(gateway, "POST", "/api/v1/session", &once).await.0, 401);
        assert_eq!(status(gateway, &operator).await, 200);
    }
    let (_, shown) = send(here, "GET", "/api/v1/session", &operator).await;
    assert_eq!(shown["features"]["database"], "postgres");

    // A ticket that is 6 minutes old is worth nothing.
    let old = ticket(here, TOKEN).await;
    let aged = "UPDATE console_credentials SET expires_at = expires_at - 360000000 WHERE kind = 'ticket'";
    cluster.execute(aged).await;
    assert_eq!(send(here, "POST", "/api/v1/session", &old).await.0, 401);

    // A session that is ended here is soon over there too, although it is cached there.
    assert_eq!(send(here, "DELETE", "/api/v1/session", &operator).await.0, 204);
    assert_eq!(status(here, &operator).await, 401);
    until("the session is over there", PROPAGATION_TIMEOUT, async || status(there, &operator).await == 401)
        .await;

    let (guest, kept) = (session(here, OTHER_TOKEN).await, session(here, TOKEN).await);
    assert_eq!(status(there, &guest).await, 200);

    // A gateway that no longer knows the token does not know its session either.
    first.kill().await;
    let home = cluster.homes[0].path();
    let settings = "[grants]\ninsecure_hosts = [\"127.0.0.1\"]\n";
    fs::write(home.join("without-token.toml"), settings).expect("settings");
    let without =
        Gateway::start_with(home, &cluster.postgres.address(), &["--settings", "without-token.toml"], &[])
            .await;
    assert_eq!(status(&without.address, &guest).await, 401);
    assert_eq!(status(&without.address, &kept).await, 200);
}

/// Posts until the database answers in time.
async fn post(gateway: String, path: &'static str) -> u16 {
    loop {
        match send(&gateway, "POST", path, TOKEN).await.0 {
            503 => tokio::task::yield_now().await,
            status => return status,
        }
    }
}

/// Both replicas issue tickets and open sessions at the same time, close to the limit.
#[tokio::test]
async fn replicas_keep_the_limits_of_credentials_together() {
    let cluster = Cluster::new().await;
    let (first, second) = tokio::join!(cluster.gateway(0), cluster.gateway(1));
    for (path, kind, limit) in [("/api/v1/tickets", "ticket", 16), ("/api/v1/session", "session", 64)] {
        for _ in 0..limit - 4 {
            assert_eq!(post(first.address.clone(), path).await, 201);
        }
        let mut racing = JoinSet::new();
        for _ in 0..8 {
            racing.spawn(post(first.address.clone(), path));
            racing.spawn(post(second.address.clone(), path));
        }
        racing.join_all().await;
        assert_eq!(cluster.count_credentials(kind).await, limit, "{kind}");
    }
}
