//! `wharf schema`: prints the JSON Schema of the agent file, for editors, or the OpenAPI document of the gateway.

use crate::{api, exit::Exit, output::Output};

pub(super) fn run(prints_api: bool, output: Output) -> Exit {
    if prints_api {
        output.json(&api::openapi_document());
    } else {
        output.json(&wharf_config::schema());
    }
    Exit::Success
}
