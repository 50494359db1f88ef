//! The futures that public functions of this crate return.

use crate::Fault;
use std::{pin::Pin, sync::Arc};
use wharf_mcp::Raw;

/// A pending result of the runtime. Boxed, so it is compiled in this crate and not again in each crate that awaits it.
pub type RuntimeFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A pending result of a server, as it sent it.
pub type RawFuture<'a> = RuntimeFuture<'a, Result<Raw, Arc<Fault>>>;
