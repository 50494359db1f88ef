//! Runs third-party handler code and turns a panic into an error response, so that the caller does not wait forever.

use crate::{Raw, RpcError};
use futures_util::FutureExt;
use std::{future::Future, panic::AssertUnwindSafe};

/// Returns the answer, or an internal error if the code panics. The panic hook has already reported the panic.
pub(crate) async fn catch_panic(
    answering: impl Future<Output = Result<Raw, RpcError>>,
) -> Result<Raw, RpcError> {
    // Unwind-safe: none of our state is inside, and the future is dropped with whatever it left inconsistent.
    let outcome = AssertUnwindSafe(answering).catch_unwind().await;
    outcome.unwrap_or_else(|_| Err(RpcError::new(RpcError::INTERNAL, "internal error: the handler panicked")))
}
