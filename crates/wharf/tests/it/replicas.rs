//! Tests several gateways on one PostgreSQL: they share state, survive the death of one of them, and lose nothing
//! when the database is unavailable for a while.

mod breakers;
mod console_sessions;
mod first_use;
mod killed;
mod outage;
mod puppet;
mod sessions;
mod sources;
mod tasks;
mod tools;

use crate::{
    kills::gateway::{Gateway, ask},
    todo::postgres::Postgres,
};
use puppet::Puppet;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use std::{
    collections::BTreeMap,
    fs,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Timeout for each step, long enough for a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time until a change reaches the other gateways, on a busy machine.
const PROPAGATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Token of a principal other than the operator.
const OTHER_TOKEN: &str = "a-token-of-somebody-else";

/// A database, a server behind the gateways, and the home folder of each gateway.
struct Cluster {
    postgres: Postgres,
    puppet: Puppet,
    homes: Vec<TempDir>,
}

impl Cluster {
    async fn new() -> Cluster {
        let puppet = Puppet::start().await;
        let homes = [0, 1].map(|_| TempDir::new().expect("a folder"));
        for home in &homes {
            fs::write(home.path().join("agent.yaml"), puppet.agent_file()).expect("a file");
            let settings = "[breaker]\nfailure_threshold = 3\nrecovery_timeout = 2\n\n\
                [grants]\ninsecure_hosts = [\"127.0.0.1\"]\n\n\
                [tokens.somebody]\nrole = \"caller\"\nvalue = \"${SOMEBODY}\"\n";
            fs::write(home.path().join("wharf.toml"), settings).expect("a file");
        }
        Cluster { postgres: Postgres::start(), puppet, homes: homes.into() }
    }

    /// Runs a statement in the database.
    async fn execute(&self, statement: &'static str) {
        let mut connection = PgConnection::connect(&self.postgres.address()).await.expect("a connection");
        sqlx::query(statement).execute(&mut connection).await.expect("it runs");
    }

    /// Counts the credentials of this kind.
    async fn count_credentials(&self, kind: &str) -> i64 {
        let mut connection = PgConnection::connect(&self.postgres.address()).await.expect("a connection");
        let query = sqlx::query_scalar("SELECT count(*) FROM console_credentials WHERE kind = $1");
        query.bind(kind).fetch_one(&mut connection).await.expect("a number")
    }

    /// Starts the gateway with this home folder.
    async fn gateway(&self, home: usize) -> Gateway {
        let (args, variables) = (["--settings", "wharf.toml"], [("SOMEBODY", OTHER_TOKEN)]);
        let home = self.homes[home].path();
        Gateway::start_with(home, &self.postgres.address(), &args, &variables).await
    }
}

/// Calls the test server's tool and returns the response.
async fn call(gateway: &str, arguments: &Value) -> Result<Value, String> {
    let body = json!({ "arguments": arguments }).to_string();
    ask(gateway, "POST", "/api/v1/tools/puppet:echo/call", &body).await
}

/// Waits until a condition is true, and fails after the timeout.
async fn until(what: &str, time: Duration, mut is_so: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !is_so().await {
        assert!(start.elapsed() < time, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Returns how often each call is in the journal, by id.
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

/// The database password can come from the environment instead of the arguments, which other users can read.
#[tokio::test]
async fn a_password_can_come_from_the_environment() {
    let cluster = Cluster::new().await;
    let address = cluster.postgres.address().replace(":pass%20word@", "@");
    let home = cluster.homes[0].path();
    let variables = [("PGPASSWORD", "pass word"), ("SOMEBODY", OTHER_TOKEN)];
    let gateway = Gateway::start_with(home, &address, &["--settings", "wharf.toml"], &variables).await;
    call(&gateway.address, &json!({})).await.expect("it works");
    assert_eq!(journal(&gateway).await.len(), 1);
}
