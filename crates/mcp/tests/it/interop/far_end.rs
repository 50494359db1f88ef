//! The server at the far end of a pipe: this very program, started again to serve instead of to test.

use super::{our_server, their_server};
use wharf_mcp::stdio::Command;

/// Set in the child, to whose server it is to be.
const VARIABLE: &str = "WHARF_TEST_FAR_END";

/// Whose server is at the far end.
#[derive(Clone, Copy)]
pub(crate) enum Whose {
    Ours,
    Theirs,
}

#[expect(clippy::disallowed_methods, reason = "a test starts itself as its server")]
pub(crate) fn command(whose: Whose) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap(), "/");
    command.args =
        ["--exact", "interop::far_end::serves", "--nocapture"].into_iter().map(Into::into).collect();
    let whose = match whose {
        Whose::Ours => "ours",
        Whose::Theirs => "theirs",
    };
    command.env = vec![(VARIABLE.into(), whose.into())];
    command
}

/// No test but the child's `main`; among the tests it has nothing to do. What the test harness itself prints is noise
/// that either client has to bear.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "this is the program that reads its environment")]
async fn serves() {
    match std::env::var(VARIABLE).as_deref() {
        Ok("ours") => our_server::over_pipe().await,
        Ok("theirs") => their_server::over_pipe().await,
        _ => {}
    }
}
