//! Tests our wire format against the SDK (rmcp), each as client and as server: over a pipe to a child process and
//! over streamable HTTP, in both eras.
//!
//! Both servers serve the same [`facts`], and both clients check them.

#![expect(deprecated, reason = "the protocol deprecates sampling, but servers still use it")]

mod facts;
mod our_client;
mod our_server;
mod server_process;
mod their_client;
mod their_server;

use server_process::Implementation;
use std::time::Duration;
use wharf_mcp::session::Era;

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// Fails a check that hangs.
async fn in_time(what: &str, check: impl Future<Output = ()>) {
    let ended = tokio::time::timeout(Duration::from_secs(30), check).await;
    assert!(ended.is_ok(), "{what} hangs");
}

#[tokio::test]
async fn our_client_and_their_server_over_a_pipe() {
    for era in ERAS {
        in_time(
            &format!("{era:?}"),
            our_client::check(&server_process::command(Implementation::Theirs), era),
        )
        .await;
    }
}

#[tokio::test]
async fn our_client_and_their_server_over_http() {
    let endpoint = our_client::endpoint(&their_server::over_http().await);
    for era in ERAS {
        in_time(&format!("{era:?}"), our_client::check(&endpoint, era)).await;
    }
}

#[tokio::test]
async fn their_client_and_our_server_over_a_pipe() {
    for era in ERAS {
        in_time(
            &format!("{era:?}"),
            their_client::check_process(&server_process::command(Implementation::Ours), era),
        )
        .await;
    }
}

#[tokio::test]
async fn their_client_and_our_server_over_http() {
    let url = our_server::over_http().await;
    for era in ERAS {
        in_time(&format!("{era:?}"), their_client::check_url(&url, era)).await;
    }
}
