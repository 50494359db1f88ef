//! Defines the stages of the shutdown, which calls and receivers of events watch.

/// Stages of the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownStage {
    /// Not shutting down.
    Open,
    /// New calls are rejected; calls in flight may finish.
    Draining,
    /// Calls still in flight are aborted.
    Over,
    /// All tasks have ended; no further events will follow.
    Gone,
}
