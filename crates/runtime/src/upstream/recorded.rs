//! Recorded servers in place of real ones, and their faults: a recorded fault returns as itself, and a call that is not
//! recorded becomes a fault of its own.
//!
//! The data of the JSON-RPC error says which. It is trusted from recorded servers only.

use crate::fault::{Fault, FaultKind, Stage, sent_word};
use serde_json::{Value, json};
use wharf_config::Source;
use wharf_mcp::{Failure, Opener, RpcError, Sent};

/// Opens recorded servers in place of the real ones. While there are any, no real server is started or contacted.
pub trait RecordedServers: std::fmt::Debug + Send + Sync {
    /// Returns the opener of a recorded server.
    fn opener(&self, source: &str) -> Result<Box<dyn Opener>, Failure>;
}

/// Member of the error's data that holds a recorded fault.
const RECORDED: &str = "wharf/recorded";

/// Member of the error's data that says that a call is not recorded.
const NOT_RECORDED: &str = "wharf/not_recorded";

/// Stages that a recorded fault can have.
const STAGES: [Stage; 4] = [Stage::Open, Stage::Handshake, Stage::Listing, Stage::Call];

const SENT: [Sent; 3] = [Sent::No, Sent::Unknown, Sent::Yes];

/// Returns the `fault` of a line.
pub(crate) fn fault_json(fault: &Fault) -> Value {
    let mut json = json!({ "type": fault.kind.as_str(), "message": fault.cause });
    if let Some(rpc) = &fault.rpc {
        json["rpc"] = json!({ "code": rpc.code, "message": rpc.message });
    }
    if fault.phase != Stage::Call {
        json["stage"] = json!(fault.phase.as_str());
    }
    if fault.sent != usual_sent(fault.phase) {
        json["sent"] = json!(sent_word(fault.sent));
    }
    json
}

/// Returns the error data by which a recorded fault returns as itself.
pub fn fault_data(fault: &Value) -> Value {
    json!({ RECORDED: fault })
}

/// Returns the error data for a call that is not recorded. The cause may have several lines.
pub fn not_recorded_data(cause: &str) -> Value {
    json!({ NOT_RECORDED: cause })
}

/// Reads a fault of a recorded server, if the error has one.
pub(super) fn read_fault(source: &Source, rpc: &RpcError) -> Option<Fault> {
    let data: Value = rpc.data.as_ref()?.decode().ok()?;
    if let Some(cause) = data[NOT_RECORDED].as_str() {
        let hint = "record again with --record, or ignore the field with `record.ignore` in agent.yaml";
        let fault = Fault::local(FaultKind::NotRecorded, Stage::Resolve, cause, Some(hint.to_owned()));
        return Some(Fault::with_source(source, fault));
    }
    let recorded = data.get(RECORDED)?;
    let kind = match recorded["type"].as_str()? {
        "MCPTimeoutError" => FaultKind::Timeout,
        "MCPProtocolError" => FaultKind::Protocol,
        "MCPToolNotFoundError" => FaultKind::ToolNotFound,
        "MCPNotRecordedError" => FaultKind::NotRecorded,
        _ => FaultKind::Connection,
    };
    let stage = recorded["stage"].as_str();
    let stage = STAGES.into_iter().find(|it| Some(it.as_str()) == stage).unwrap_or(Stage::Call);
    let fault = Fault::local(kind, stage, recorded["message"].as_str().unwrap_or_default(), None);
    let rpc = recorded
        .get("rpc")
        .and_then(|it| Some(RpcError::new(it["code"].as_i64()?, it["message"].as_str().unwrap_or_default())));
    let sent = recorded["sent"].as_str();
    let sent = SENT.into_iter().find(|it| Some(sent_word(*it)) == sent).unwrap_or(usual_sent(stage));
    Some(Fault::with_source(source, Fault { rpc, sent, ..fault }))
}

/// Returns whether a request was sent, for a line that does not say it.
fn usual_sent(stage: Stage) -> Sent {
    if stage == Stage::Call { Sent::Unknown } else { Sent::No }
}
