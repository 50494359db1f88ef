//! Several gateways on one PostgreSQL: what one of them learns the others know, one that is killed is not missed, and a
//! database that goes away for a while takes nothing with it.

mod breakers;
mod killed;
mod outage;
mod puppet;
mod sessions;
mod sources;
mod tools;

use crate::{
    kills::gateway::{Gateway, ask},
    todo::postgres::Postgres,
};
use puppet::Puppet;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Nothing takes longer, even on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// How soon others know what one of them has learnt, on a machine that is busy.
const SOON: Duration = Duration::from_secs(5);

/// A token of another principal than the operator.
const SOMEBODY: &str = "a-token-of-somebody-else";

/// A database, a server behind the gateways, and what each gateway has to itself.
struct Harbour {
    postgres: Postgres,
    puppet: Puppet,
    homes: Vec<TempDir>,
}

impl Harbour {
    async fn new() -> Harbour {
        let puppet = Puppet::start().await;
        let homes = [0, 1].map(|_| TempDir::new().expect("a folder"));
        for home in &homes {
            fs::write(home.path().join("agent.yaml"), puppet.agent_file()).expect("a file");
            let settings = "[breaker]\nfailure_threshold = 3\nrecovery_timeout = 2\n\n\
                [grants]\ninsecure_hosts = [\"127.0.0.1\"]\n\n\
                [tokens.somebody]\nrole = \"caller\"\nvalue = \"${SOMEBODY}\"\n";
            fs::write(home.path().join("wharf.toml"), settings).expect("a file");
        }
        Harbour { postgres: Postgres::start(), puppet, homes: homes.into() }
    }

    /// The gateway of this home, started.
    async fn gateway(&self, home: usize) -> Gateway {
        let (args, variables) = (["--settings", "wharf.toml"], [("SOMEBODY", SOMEBODY)]);
        let home = self.homes[home].path();
        Gateway::start_with(home, &self.postgres.address(), &args, &variables).await
    }
}

/// Calls the puppet's tool: what it is answered with.
async fn call(gateway: &str, arguments: &Value) -> Result<Value, String> {
    let body = json!({ "arguments": arguments }).to_string();
    ask(gateway, "POST", "/api/v1/tools/puppet:echo/call", &body).await
}

/// Waits until something is so, and fails if it is not in time.
async fn until(what: &str, time: Duration, mut is_so: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !is_so().await {
        assert!(start.elapsed() < time, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How often each call is in the journal, by what it is known by.
async fn journal(gateway: &Gateway) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    let mut pages = gateway.journal();
    while let Some(page) = pages.next().await {
        for call in page {
            *all.entry(call["request_id"].as_str().expect("a name").to_owned()).or_default() += 1;
        }
    }
    all
}

/// The password of the database need not stand in an argument, where others on the machine could read it.
#[tokio::test]
async fn a_password_can_come_from_the_environment() {
    let harbour = Harbour::new().await;
    let address = harbour.postgres.address().replace(":pass%20word@", "@");
    let home = harbour.homes[0].path();
    let variables = [("PGPASSWORD", "pass word"), ("SOMEBODY", SOMEBODY)];
    let gateway = Gateway::start_with(home, &address, &["--settings", "wharf.toml"], &variables).await;
    call(&gateway.address, &json!({})).await.expect("it works");
    assert_eq!(journal(&gateway).await.len(), 1);
}
