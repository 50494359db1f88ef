//! Calls with values of their own: starts a registered plugin for one call, with the caller's values for its variables.
//!
//! Such a server is used by no other call. Its failures are the caller's, so they move no circuit breaker.

use super::call::CompletedCall;
use crate::{
    api::{ApiState, body, problem::Problem},
    registry::CallValuesError,
};
use http::StatusCode;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use wharf_config::{Lifecycle, Plan, Source};
use wharf_mcp::{Raw, session::List};
use wharf_runtime::{Call, Redactor, Runtime, RuntimeOptions, UpstreamContext};

/// Maximum number of values, and maximum length of one, in bytes.
const MAX_VALUES: usize = 64;
const MAX_VALUE_BYTES: usize = 64 << 10;

/// Returns the source with the values in `env` of the body, or `None` if there are none.
pub(super) fn source(shared: &ApiState, tool: &str, body: &Raw) -> Result<Option<Box<Source>>, Problem> {
    let Some(values) = body.member("env") else { return Ok(None) };
    let fits = |it: &BTreeMap<String, String>| {
        it.len() <= MAX_VALUES && it.values().all(|it| it.len() <= MAX_VALUE_BYTES && !it.contains('\0'))
    };
    let values = values.decode::<BTreeMap<String, String>>().ok().filter(fits);
    let values = values.ok_or_else(|| {
        body::malformed(format!("`env` is an object of at most {MAX_VALUES} strings of 64 KiB"))
    })?;
    let name = tool.split_once(':').map_or(tool, |(source, _)| source);
    let source = shared.registry.source_with(name, values).map_err(problem)?;
    Ok(Some(Box::new(source)))
}

/// Starts the source, makes the call and stops the source. Continues if the caller disconnects, so that the call is
/// recorded.
pub(super) async fn run(
    shared: &Arc<ApiState>,
    source: Source,
    call: Call,
) -> Result<CompletedCall, Problem> {
    let own = shared.clone();
    let work = async move {
        // One session for the list of tools and for the call.
        let source =
            Source { lifecycle: Lifecycle::Singleton, load_tools: true, load_prompts: false, ..source };
        let plan = Plan { sources: vec![source], ..(*own.registry.registered().file).clone() };
        let redactor = Arc::new(Redactor::of(&plan));
        let context = UpstreamContext { redactor, ..own.upstream_context.clone() };
        let options = RuntimeOptions { lists: vec![List::Tools], ..RuntimeOptions::default() };
        let runtime = Runtime::start(&plan, &context, options);
        runtime.handle().set_disabled_tools(own.handle.disabled_tools());
        let record = runtime.handle().call(call).await;
        // The caller does not wait for the process to end.
        own.detached_tasks.spawn(runtime.shutdown(Duration::ZERO));
        CompletedCall::record(&own, record).await
    };
    let gone = || Problem::new(StatusCode::SERVICE_UNAVAILABLE, "wharf is shutting down");
    shared.detached_tasks.run(work).await.ok_or_else(gone)
}

fn problem(error: CallValuesError) -> Problem {
    match error {
        CallValuesError::NotReady(fault) => Problem::of(&fault, None),
        CallValuesError::Invalid(what) => body::malformed(what),
    }
}
