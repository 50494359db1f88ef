//! Tests tokens that are bound to a key: proofs, nonces, and the key of a renewed token.

use crate::{
    fake_dpop::ProofCheck,
    fake_oauth::FakeOAuth,
    oauth::{ConsentingUser, Pause, config, connect},
};
use std::{collections::HashSet, sync::Arc};
use wharf_mcp::{
    Request,
    http::HttpClient,
    oauth::{Config, FileStore, MemoryStore, OAuth, TokenStore},
    session::Connected,
    sse,
};

fn oauth(fake: &FakeOAuth, dpop: bool, store: Arc<dyn TokenStore>) -> OAuth {
    let user = ConsentingUser(Pause::None);
    OAuth::new(Config { dpop, ..config(fake, Some(user)) }, store)
}

/// Signs in at servers that require DPoP with these checks.
async fn signed_in(tokens: ProofCheck, server: ProofCheck) -> (FakeOAuth, Connected, Arc<dyn TokenStore>) {
    let fake = FakeOAuth::start().await;
    fake.state().dpop = Some((tokens, server));
    let store: Arc<dyn TokenStore> = Arc::new(MemoryStore::default());
    let connected = connect(&fake, &oauth(&fake, true, store.clone())).await;
    (fake, connected, store)
}

/// Returns the public keys that the token endpoint and the MCP server have seen.
fn keys(fake: &FakeOAuth) -> HashSet<String> {
    let mut state = fake.state();
    let (tokens, server) = state.dpop.as_mut().unwrap();
    tokens.keys.union(&server.keys).cloned().collect()
}

const SIGNED_IN: &str =
    "server/discover with nothing, register, authorize, authorization_code, server/discover with t1";

#[tokio::test]
async fn every_request_carries_a_proof_of_the_same_key() {
    let (fake, connected, _) = signed_in(ProofCheck::default(), ProofCheck::default()).await;
    assert_eq!(fake.log(), SIGNED_IN);
    connected.session.request(Request::new("x")).await.unwrap();
    connected.session.request(Request::new("x")).await.unwrap();
    assert_eq!(fake.log(), "x with t1, x with t1");
    assert_eq!(keys(&fake).len(), 1);
}

#[tokio::test]
async fn a_server_that_accepts_only_bound_tokens_gets_them_unconfigured() {
    let fake = FakeOAuth::start().await;
    fake.state().dpop = Some(Default::default());
    connect(&fake, &oauth(&fake, false, Arc::new(MemoryStore::default()))).await;
    assert_eq!(fake.log(), SIGNED_IN);
}

#[tokio::test]
async fn both_servers_may_require_a_nonce() {
    let (fake, connected, _) = signed_in(ProofCheck::with_nonce(), ProofCheck::with_nonce()).await;
    assert_eq!(
        fake.log(),
        "server/discover with nothing, register, authorize, use_dpop_nonce, authorization_code, \
         use_dpop_nonce, server/discover with t1"
    );
    connected.session.request(Request::new("x")).await.unwrap();
    assert_eq!(fake.log(), "x with t1", "the nonce is remembered");
    fake.state().dpop.as_mut().unwrap().1.nonce = Some(7);
    connected.session.request(Request::new("x")).await.unwrap();
    assert_eq!(fake.log(), "use_dpop_nonce, x with t1", "an expired nonce is replaced");
}

#[tokio::test]
async fn the_nonce_of_a_successful_response_is_used_next() {
    let rotating = || ProofCheck { rotates: true, ..ProofCheck::with_nonce() };
    let (fake, connected, _) = signed_in(rotating(), rotating()).await;
    fake.log();
    for _ in 0..3 {
        connected.session.request(Request::new("x")).await.unwrap();
    }
    assert_eq!(fake.log(), "x with t1, x with t1, x with t1");
    fake.state().good.clear();
    connected.session.request(Request::new("x")).await.unwrap();
    assert_eq!(fake.log(), "x with t1, refresh_token r1, x with t2");
}

#[tokio::test]
async fn a_renewed_token_and_another_process_keep_the_key() {
    let fake = FakeOAuth::start().await;
    fake.state().dpop = Some(Default::default());
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FileStore::new(folder.path().join("tokens.json")));
    let connected = connect(&fake, &oauth(&fake, true, store.clone())).await;
    fake.state().good.clear();
    connected.session.request(Request::new("x")).await.unwrap();
    connect(&fake, &oauth(&fake, true, store.clone())).await;
    assert!(fake.log().ends_with("x with t1, refresh_token r1, x with t2, server/discover with t2"));
    assert_eq!(keys(&fake).len(), 1);
    let grant = store.load().unwrap().unwrap();
    let key = grant.dpop_key.clone().unwrap();
    assert!(!format!("{grant:?}").contains(&key));
}

#[tokio::test]
async fn a_rejected_proof_is_reported_and_not_repeated() {
    let (fake, connected, _) = signed_in(ProofCheck::default(), ProofCheck::default()).await;
    fake.log();
    fake.state().dpop.as_mut().unwrap().1.rejects = true;
    let failure = connected.session.request(Request::new("x")).await.unwrap_err();
    assert_eq!(fake.log(), "invalid_dpop_proof");
    assert_eq!(failure.status, Some(401));
    assert!(
        failure.to_string().contains("the server rejected our DPoP proof: invalid_dpop_proof"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_configured_binding_refuses_bearer_tokens() {
    let fake = FakeOAuth::start().await;
    let store: Arc<dyn TokenStore> = Arc::new(MemoryStore::default());
    connect(&fake, &oauth(&fake, false, store.clone())).await;
    fake.log();
    // The server issues bearer tokens only. The stored one is not sent either.
    let failure = oauth(&fake, true, store).login(None).await.unwrap_err();
    assert_eq!(
        failure.to_string(),
        "could not sign in: the authorization server issued a token that is not bound to our key (DPoP)"
    );
    assert!(!fake.log().contains("with t1"));
}

#[tokio::test]
async fn sse_requests_carry_proofs_of_their_own_method_and_url() {
    let (fake, connected, store) = signed_in(ProofCheck::with_nonce(), ProofCheck::with_nonce()).await;
    drop(connected);
    fake.log();
    let client = HttpClient::new(std::time::Duration::from_secs(2)).unwrap();
    let mut endpoint = sse::SseEndpoint::new(fake.url("/sse?key=1"), client);
    endpoint.authorizer = Some(Arc::new(oauth(&fake, true, store)));
    wharf_mcp::Opener::open(&endpoint).await.unwrap();
    assert_eq!(fake.log(), "use_dpop_nonce, stream with t1");
}
