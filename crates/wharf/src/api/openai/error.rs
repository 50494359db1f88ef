//! Errors in the form of OpenAI's API.

use crate::api::{document, problem::Problem};
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use wharf_agent::RunReport;
use wharf_mcp::serve::http::Body;

/// An error response.
#[derive(Debug)]
pub(super) struct OpenAiError {
    status: StatusCode,
    message: String,
    parameter: Option<String>,
    code: Option<String>,
}

impl OpenAiError {
    /// Creates the error of a parameter that cannot be used.
    pub(super) fn parameter(name: &str, message: impl Into<String>) -> OpenAiError {
        let (message, code) = (message.into(), Some("invalid_parameter".to_owned()));
        OpenAiError { status: StatusCode::BAD_REQUEST, message, parameter: Some(name.to_owned()), code }
    }

    /// Creates the error of a model that does not exist.
    pub(super) fn unknown_model(name: &str, known: &str) -> OpenAiError {
        let name = crate::api::problem::shorten(name);
        OpenAiError {
            status: StatusCode::NOT_FOUND,
            message: format!("there is no model '{name}'; the models are {known}"),
            parameter: Some("model".to_owned()),
            code: Some("model_not_found".to_owned()),
        }
    }

    pub(super) fn with_status(self, status: StatusCode) -> OpenAiError {
        OpenAiError { status, ..self }
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let OpenAiError { status, message, parameter, code } = self;
        let error = error_object(status, &message, parameter.as_deref(), code.as_deref());
        document(status, "application/json", json!({ "error": error }).to_string())
    }
}

/// Returns the `error` object of a run that did not finish.
pub(super) fn run_error(report: &RunReport, status: StatusCode) -> Value {
    let error = report.error.as_ref();
    let hint = error.and_then(|it| it.hint()).map_or_else(String::new, |it| format!("; {it}"));
    let message = error.map_or_else(|| "the run was aborted".to_owned(), |it| format!("{it}{hint}"));
    error_object(status, &message, None, error.map(|it| it.error_type()))
}

/// Turns a problem document into OpenAI's form, with the same status and headers.
pub(in crate::api) fn problem_response(problem: Problem) -> Response<Body> {
    let body = problem.body();
    let status = problem.status();
    let text = |key: &str| body[key].as_str();
    let hint = text("hint").map_or_else(String::new, |it| format!("; {it}"));
    let message = format!("{}{hint}", text("detail").unwrap_or_default());
    let code = text("type").filter(|it| *it != "about:blank");
    let error = json!({ "error": error_object(status, &message, None, code) });
    let (mut parts, _) = Response::<Body>::from(problem).into_parts();
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let (_, body) = document(status, "application/json", error.to_string()).into_parts();
    Response::from_parts(parts, body)
}

fn error_object(status: StatusCode, message: &str, parameter: Option<&str>, code: Option<&str>) -> Value {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    json!({ "message": message, "type": kind, "param": parameter, "code": code })
}
