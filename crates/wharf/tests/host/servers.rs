//! Shares the helpers that start third-party servers with the integration tests.

#[path = "../it/servers/background.rs"]
pub(super) mod background;
#[path = "../it/servers/workspace.rs"]
#[expect(dead_code, reason = "other tests use the rest of it")]
pub(super) mod workspace;
