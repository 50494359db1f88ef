//! Rows for servers over the HTTP+SSE transport of 2024-11-05.

use super::{
    Class::{Connection, Ok, Protocol, Timeout, ToolError},
    Due, Next, Peer, Row, row,
};
use crate::options::{Era, Transport};

const fn sse(modes: &'static str, class: super::Class) -> Row {
    row(Transport::Sse, Era::Legacy, modes, class)
}

pub(super) const ROWS: &[Row] = &[
    sse("refused", Connection).at(Peer::Missing).next(Next::Same),
    sse("sse_no_endpoint", Timeout).by(Due::Connect(2)).next(Next::Same),
    sse("sse_endpoint_cross_origin", Protocol).next(Next::Same),
    sse("sse_two_endpoints", Ok),
    sse("sse_not_a_stream", Connection).next(Next::Same),
    sse("e401_at_start", Connection).next(Next::Same),
    sse("e404_at_start", Connection).next(Next::Same),
    sse("rst_accept", Connection).next(Next::Same),
    sse("accept_silent", Timeout).by(Due::Connect(2)).next(Next::Same),
    sse("init_silent", Timeout).by(Due::Connect(4)),
    sse("init_bad_version", Protocol),
    sse("sse_post_500", Connection),
    sse("sse_post_stall", Timeout).by(Due::Request(1)),
    sse("sse_stream_eof", Connection),
    sse("rst", Connection),
    sse("exec_then_rst", Connection),
    sse("sse_stream_event_1g", Protocol).by(Due::Within(20)),
    sse("oversize_response", Protocol).with(&["--size", "17825792"]),
    sse("sse_stream_junk", Ok),
    sse("bom", Ok),
    sse("id_as_string", Ok),
    sse("deep_nesting", Protocol),
    sse("invalid_utf8", Protocol),
    sse("trailing_garbage", Protocol),
    sse("both_result_error", Protocol),
    sse("neither", Protocol),
    sse("missing_jsonrpc", Ok),
    sse("result_null", Protocol),
    sse("batch_array", Protocol),
    sse("unknown_id", Timeout).by(Due::Request(1)),
    sse("duplicate_response", Ok),
    sse("null_id_error", Protocol),
    sse("silent", Timeout).by(Due::Request(1)),
    sse("late_after_timeout", Timeout).by(Due::Request(1)).with(&["--delay", "2500"]),
    sse("notif_flood_then_reply", Ok).by(Due::Within(20)).with(&["--size", "20000"]),
    sse("cursor_same", Protocol).next(Next::Same),
    sse("list_50mb", Protocol).by(Due::Within(20)),
    sse("is_error", ToolError),
    sse("rpc_32603", Protocol),
    sse("unknown_block", Ok),
];
