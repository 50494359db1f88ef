//! Server process for the pipe tests: this test binary, started again as a server.

use super::{our_server, their_server};
use wharf_mcp::stdio::Command;

/// Environment variable of the child that selects the server implementation.
const VARIABLE: &str = "WHARF_TEST_FAR_END";

/// Server implementation: ours or the SDK's.
#[derive(Clone, Copy)]
pub(crate) enum Implementation {
    Ours,
    Theirs,
}

#[expect(clippy::disallowed_methods, reason = "a test starts itself as its server")]
pub(crate) fn command(implementation: Implementation) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap(), "/");
    command.args = ["--exact", "interop::server_process::server_process_entry_point", "--nocapture"]
        .into_iter()
        .map(Into::into)
        .collect();
    let implementation = match implementation {
        Implementation::Ours => "ours",
        Implementation::Theirs => "theirs",
    };
    command.env = vec![(VARIABLE.into(), implementation.into())];
    command
}

/// Entry point of the server child; as a test it does nothing. The test harness's own output is noise on stdout that
/// both clients must tolerate.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "this is the program that reads its environment")]
async fn server_process_entry_point() {
    match std::env::var(VARIABLE).as_deref() {
        Ok("ours") => our_server::over_pipe().await,
        Ok("theirs") => their_server::over_pipe().await,
        _ => {}
    }
}
