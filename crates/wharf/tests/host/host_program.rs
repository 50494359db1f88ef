//! A host program: connects to every server of some agent files, prints `ready`, and then ends in the given way or
//! waits.

#![expect(clippy::disallowed_methods, reason = "a program reads its own environment")]

use std::{
    collections::BTreeMap,
    env, fs,
    future::pending,
    io::{self, Read},
    path::Path,
    sync::Arc,
    time::Duration,
};
use tokio::{
    runtime,
    task::{JoinSet, spawn_blocking},
};
use wharf_config::{Env, Folder, load, load_settings};
use wharf_mcp::http::HttpClient;
use wharf_runtime::{
    Redactor, Upstream, UpstreamContext, UpstreamSession,
    upstream::{DeclineAll, Installs, ProcessLimit},
};

/// Panics on drop. A second panic during unwinding aborts the process.
struct Twice;

impl Drop for Twice {
    fn drop(&mut self) {
        panic!("and once more");
    }
}

/// Runs the host. `leash` is `supervised`; any other value selects process groups without a supervisor.
pub(super) fn host(ending: &str, leash: &str, files: &[&str]) {
    let runtime = runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let lives = connect_all(leash == "supervised", files).await;
        println!("ready");
        match ending {
            "panics" => panic!("as requested"),
            "panics-twice" => {
                let _second = Twice;
                panic!("as requested");
            }
            "task-panics" => {
                let mut task = JoinSet::new();
                task.spawn(async move {
                    let _owned = lives;
                    panic!("as requested");
                });
                assert!(task.join_next().await.is_some_and(|it| it.is_err()), "it panics");
                fs::write("panicked", "").expect("a file");
                pending().await
            }
            "waits" => pending().await,
            _ => {
                wait_for_eof().await;
                let closing: JoinSet<()> =
                    lives.into_iter().map(|it| async { _ = it.close().await }).collect();
                closing.join_all().await;
            }
        }
    });
}

/// Waits until the other end of stdin closes.
async fn wait_for_eof() {
    _ = spawn_blocking(|| io::stdin().read(&mut [0; 1])).await;
}

async fn connect_all(supervised: bool, files: &[&str]) -> Vec<UpstreamSession> {
    let http = HttpClient::new(Duration::from_secs(30)).expect("a client");
    let mut reaching = JoinSet::new();
    for file in files {
        let (plan, _) = load(fs::read(file).expect("an agent file"), &environment(file));
        let plan = plan.expect("a plan");
        let upstream_context = upstream_context(supervised, http.clone(), Arc::new(Redactor::of(&plan)));
        for source in plan.sources {
            let upstream = Upstream::new(Arc::new(source), upstream_context.clone());
            reaching.spawn(async move { upstream.connect(Arc::new(DeclineAll)).await.expect("it answers") });
        }
    }
    reaching.join_all().await
}

fn upstream_context(supervised: bool, http: HttpClient, redactor: Arc<Redactor>) -> UpstreamContext {
    UpstreamContext {
        scratch: env::current_dir().expect("a folder").join("state/scratch"),
        http,
        credentials: None,
        redactor,
        supervisor: supervised.then(|| env!("CARGO_BIN_EXE_wharf").into()),
        builtins: None,
        processes: ProcessLimit::default(),
        installs: Installs::default(),
        recorded: None,
        faults: None,
    }
}

fn environment(file: &str) -> Env {
    let folder = env::current_dir().expect("a folder");
    let settings = fs::read("state/wharf.toml").or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(Vec::new()),
        _ => Err(error),
    });
    let (settings, _) = load_settings(settings.expect("settings"), "wharf.toml");
    Env {
        file: file.to_owned(),
        files: Arc::new(Folder::new(Path::new(&folder))),
        folder,
        home: env::home_dir(),
        variables: env::vars().collect::<BTreeMap<_, _>>(),
        grants: settings.expect("settings").grants,
        ..Env::bare()
    }
}
