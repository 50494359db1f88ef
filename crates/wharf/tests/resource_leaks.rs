//! Tests that need a process of their own, because they count its file descriptors and children.
#![cfg(target_os = "linux")]

use std::{fs, time::Duration};
use wharf_mcp::{Exit, Opener, stdio::Command};

#[tokio::test]
async fn closed_servers_leave_no_descriptors_and_no_children() {
    let mut command = Command::new("/bin/sh", "/");
    command.args = vec!["-c".into(), "sleep 985 & read -r line".into()];
    command.env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    command.supervisor = Some(env!("CARGO_BIN_EXE_wharf").into());
    let mut before = None;
    for _ in 0..51 {
        let disconnect = command.open().await.expect("it starts").close(Duration::from_secs(10)).await;
        assert_eq!(disconnect.exit, Some(Exit::Code(1)));
        // The first start also opens descriptors for the async runtime, so later rounds are compared with it.
        let kept = (descriptors(), children());
        assert_eq!(before.get_or_insert_with(|| kept.clone()), &kept);
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("a folder").count()
}

/// Lists the child processes, including zombies.
fn children() -> String {
    let threads = fs::read_dir("/proc/self/task").expect("a folder").flatten();
    threads.filter_map(|it| fs::read_to_string(it.path().join("children")).ok()).collect()
}
