//! Shares the helpers that start third-party servers with the integration tests.

#[path = "../it/servers/background.rs"]
pub(super) mod background;
#[path = "../it/servers/place.rs"]
#[expect(dead_code, reason = "other tests need more of it")]
pub(super) mod place;
