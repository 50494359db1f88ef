//! Runs third-party handler code and turns a panic into an error response, so that the caller does not wait forever.

use crate::{Raw, RpcError};
use futures_util::FutureExt;
use std::{future::Future, panic::AssertUnwindSafe};

/// Returns the answer, or an internal error if the code panics. The panic hook has already reported the panic.
pub(crate) async fn answer(making: impl Future<Output = Result<Raw, RpcError>>) -> Result<Raw, RpcError> {
    // Unwind-safe: none of our state is inside, and the future is dropped with whatever it left inconsistent.
    let made = AssertUnwindSafe(making).catch_unwind().await;
    made.unwrap_or_else(|_| Err(RpcError::new(RpcError::INTERNAL, "the answer could not be made")))
}
