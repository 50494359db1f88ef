//! Answers made by somebody else's code, which may panic: whoever asked is told so, instead of waiting for ever.

use crate::{Raw, RpcError};
use futures_util::FutureExt;
use std::{future::Future, panic::AssertUnwindSafe};

/// The answer, or an internal error if making it panics. What the panic was about, its hook has said already.
pub(crate) async fn answer(making: impl Future<Output = Result<Raw, RpcError>>) -> Result<Raw, RpcError> {
    // Nothing of ours is inside: what was left half done goes with the future.
    let made = AssertUnwindSafe(making).catch_unwind().await;
    made.unwrap_or_else(|_| Err(RpcError::new(RpcError::INTERNAL, "the answer could not be made")))
}
