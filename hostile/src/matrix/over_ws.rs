//! Rows for servers over WebSocket.

use super::{
    Class::{Connection, Ok, Protocol, Timeout, ToolError},
    Due, Next, Peer, Row, row,
};
use crate::options::{
    Era::{self, Dual, Legacy, Modern},
    Transport,
};

const fn ws(era: Era, modes: &'static str, class: super::Class) -> Row {
    row(Transport::Ws, era, modes, class)
}

pub(super) const ROWS: &[Row] = &[
    ws(Dual, "refused", Connection).at(Peer::Missing).next(Next::Same),
    ws(Dual, "ws_no_upgrade", Connection).next(Next::Same),
    ws(Dual, "ws_bad_accept", Connection).next(Next::Same),
    ws(Dual, "ws_upgrade_1g", Connection).by(Due::Within(20)).next(Next::Same),
    ws(Dual, "e401_at_start", Connection).next(Next::Same),
    ws(Dual, "accept_silent", Timeout).by(Due::Connect(2)).next(Next::Same),
    ws(Dual, "rst_accept", Connection).next(Next::Same),
    ws(Legacy, "init_silent", Timeout).by(Due::Connect(4)),
    ws(Legacy, "init_bad_version", Protocol),
    ws(Modern, "discover_foreign", Protocol),
    ws(Legacy, "ws_oversize", Protocol).by(Due::Within(20)),
    ws(Modern, "ws_oversize", Protocol).by(Due::Within(20)),
    ws(Legacy, "ws_length_lie", Protocol),
    ws(Legacy, "ws_frag_flood", Protocol).by(Due::Within(20)),
    ws(Legacy, "ws_frag_answer", Ok),
    ws(Legacy, "ws_bad_utf8", Protocol),
    ws(Legacy, "ws_masked", Protocol),
    ws(Legacy, "ws_reserved_bits", Protocol),
    ws(Legacy, "ws_unknown_opcode", Protocol),
    ws(Legacy, "ws_ping_flood", Ok).by(Due::Within(20)),
    ws(Legacy, "ws_close_1011", Connection),
    ws(Modern, "ws_close_1011", Connection),
    ws(Legacy, "ws_eof", Connection),
    ws(Legacy, "rst", Connection),
    ws(Legacy, "exec_then_rst", Connection),
    ws(Modern, "exec_then_rst", Connection),
    ws(Legacy, "ws_binary_json", Ok),
    ws(Legacy, "oversize_response", Protocol).with(&["--size", "17825792"]),
    ws(Legacy, "silent", Timeout).by(Due::Request(1)),
    ws(Modern, "silent", Timeout).by(Due::Request(1)),
    ws(Legacy, "stops_reading", Timeout).by(Due::Request(1)).next(Next::Same),
    ws(Legacy, "unknown_id", Timeout).by(Due::Request(1)),
    ws(Legacy, "deep_nesting", Protocol),
    ws(Legacy, "trailing_garbage", Protocol),
    ws(Legacy, "both_result_error", Protocol),
    ws(Legacy, "neither", Protocol),
    ws(Modern, "neither", Protocol),
    ws(Legacy, "missing_jsonrpc", Ok),
    ws(Legacy, "result_null", Protocol),
    ws(Legacy, "pretty_printed", Ok),
    ws(Legacy, "bom", Ok),
    ws(Legacy, "duplicate_response", Ok),
    ws(Legacy, "batch_array", Protocol),
    ws(Legacy, "notif_flood_then_reply", Ok).by(Due::Within(20)).with(&["--size", "20000"]),
    ws(Legacy, "cursor_infinite", Protocol).by(Due::Within(20)).next(Next::Same),
    ws(Legacy, "is_error", ToolError),
    ws(Legacy, "unknown_block", Ok),
];
