//! Configuration of trace export: `[telemetry]` in wharf.toml, otherwise the standard `OTEL_` variables.

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use std::fmt;
use url::Url;
use wharf_config::{TelemetrySettings, parse_http_url};

/// The path at which collectors accept traces.
const TRACES_PATH: &str = "v1/traces";

/// Configuration of the exporter.
#[derive(Clone)]
pub(crate) struct TelemetryConfig {
    pub(super) endpoint: Url,
    pub(super) headers: HeaderMap,
    /// Resource attributes, among them `service.name`.
    pub(super) resource: Vec<(String, String)>,
    pub(super) ratio: f64,
}

impl TelemetryConfig {
    /// Resolves the configuration. Returns `None` if no endpoint is configured or traces are switched off, and a message if the configuration is
    /// invalid.
    pub(crate) fn resolve(
        settings: &TelemetrySettings,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<TelemetryConfig>, String> {
        let variable = |name: &str| variable(name).filter(|it| !it.trim().is_empty());
        let is_set_to =
            |name: &str, word: &str| variable(name).is_some_and(|it| it.eq_ignore_ascii_case(word));
        if is_set_to("OTEL_SDK_DISABLED", "true") || is_set_to("OTEL_TRACES_EXPORTER", "none") {
            return Ok(None);
        }
        let endpoint = match &settings.endpoint {
            Some(endpoint) => Some(with_traces_path(endpoint.expose(), "the endpoint in [telemetry]")?),
            None => endpoint_from_environment(&variable)?,
        };
        let Some(endpoint) = endpoint else { return Ok(None) };
        let headers = match settings.headers.is_empty() {
            true => parse_pairs(otlp_variable(&variable, "HEADERS").as_deref().unwrap_or_default()),
            false => {
                settings.headers.iter().map(|(name, it)| (name.clone(), it.expose().to_owned())).collect()
            }
        };
        let mut resource = parse_pairs(&variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
        let named = settings.service_name.clone().or_else(|| variable("OTEL_SERVICE_NAME"));
        set_service_name(&mut resource, named);
        let ratio = settings.sample_ratio.unwrap_or_else(|| sample_ratio(&variable));
        Ok(Some(TelemetryConfig { endpoint, headers: header_map(&headers)?, resource, ratio }))
    }

    /// The collector's origin, without path and credentials.
    pub(super) fn origin(&self) -> String {
        self.endpoint.origin().ascii_serialization()
    }
}

fn endpoint_from_environment(variable: &impl Fn(&str) -> Option<String>) -> Result<Option<Url>, String> {
    let traces = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let all = variable("OTEL_EXPORTER_OTLP_ENDPOINT");
    if traces.is_none() && all.is_none() {
        return Ok(None);
    }
    if otlp_variable(variable, "PROTOCOL").is_some_and(|it| it.eq_ignore_ascii_case("grpc")) {
        return Err("OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`, but wharf sends OTLP over HTTP; \
                    use the collector's HTTP port, usually 4318, and set it to `http/json`"
            .to_owned());
    }
    match (traces, all) {
        (Some(traces), _) => parse(&traces, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(Some),
        (None, all) => with_traces_path(&all.unwrap_or_default(), "OTEL_EXPORTER_OTLP_ENDPOINT").map(Some),
    }
}

/// Reads the variable for traces, otherwise the one for all signals.
fn otlp_variable(variable: &impl Fn(&str) -> Option<String>, what: &str) -> Option<String> {
    variable(&format!("OTEL_EXPORTER_OTLP_TRACES_{what}"))
        .or_else(|| variable(&format!("OTEL_EXPORTER_OTLP_{what}")))
}

fn parse(text: &str, where_from: &str) -> Result<Url, String> {
    parse_http_url(text.trim()).ok_or_else(|| format!("{where_from} is not a URL with http:// or https://"))
}

fn with_traces_path(text: &str, where_from: &str) -> Result<Url, String> {
    let mut url = parse(text, where_from)?;
    let path = url.path().trim_end_matches('/');
    if !path.ends_with(TRACES_PATH) {
        let path = format!("{path}/{TRACES_PATH}");
        url.set_path(&path);
    }
    Ok(url)
}

/// Parses `name=value,name=value` with percent-encoded values.
fn parse_pairs(text: &str) -> Vec<(String, String)> {
    let pair = |it: &str| {
        let (name, value) = it.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8_lossy().into_owned();
        Some((name.trim().to_owned(), value))
    };
    text.split(',').filter_map(pair).filter(|(name, _)| !name.is_empty()).collect()
}

fn header_map(pairs: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let (Ok(key), Ok(mut value)) = (HeaderName::try_from(name.as_str()), HeaderValue::try_from(value))
        else {
            return Err(format!("invalid header `{}` for traces", name.escape_debug()));
        };
        value.set_sensitive(true);
        headers.append(key, value);
    }
    Ok(headers)
}

fn set_service_name(resource: &mut Vec<(String, String)>, named: Option<String>) {
    const NAME: &str = "service.name";
    if let Some(named) = named {
        resource.retain(|(key, _)| key != NAME);
        resource.push((NAME.to_owned(), named));
    } else if !resource.iter().any(|(key, _)| key == NAME) {
        resource.push((NAME.to_owned(), "wharf".to_owned()));
    }
}

fn sample_ratio(variable: &impl Fn(&str) -> Option<String>) -> f64 {
    let sampler = variable("OTEL_TRACES_SAMPLER").unwrap_or_default();
    match sampler.trim_start_matches("parentbased_") {
        "always_off" => 0.0,
        "traceidratio" => {
            let ratio = variable("OTEL_TRACES_SAMPLER_ARG").and_then(|it| it.trim().parse().ok());
            ratio.filter(|it| (0.0..=1.0).contains(it)).unwrap_or(1.0)
        }
        _ => 1.0,
    }
}

// Omits the full URL and the headers, because they may contain secrets.
impl fmt::Debug for TelemetryConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("origin", &self.origin())
            .field("ratio", &self.ratio)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_runtime::MaskedString;

    fn check(endpoint: Option<&str>, variables: &[(&str, &str)], expected: &str) {
        let settings =
            TelemetrySettings { endpoint: endpoint.map(MaskedString::plain), ..TelemetrySettings::default() };
        let variable =
            |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, it)| (*it).to_owned());
        let found = match TelemetryConfig::resolve(&settings, variable) {
            Ok(None) => "off".to_owned(),
            Ok(Some(it)) => {
                let headers: Vec<String> = it
                    .headers
                    .iter()
                    .map(|(name, it)| format!("{name}={}", it.to_str().unwrap_or("?")))
                    .collect();
                let resource: Vec<String> =
                    it.resource.iter().map(|(name, it)| format!("{name}={it}")).collect();
                format!("{} [{}] [{}] {}", it.endpoint, headers.join(","), resource.join(","), it.ratio)
            }
            Err(error) => error,
        };
        assert_eq!(found, expected, "{endpoint:?} {variables:?}");
    }

    #[test]
    fn settings_win_over_variables() {
        check(None, &[], "off");
        check(Some("http://a:4318"), &[], "http://a:4318/v1/traces [] [service.name=wharf] 1");
        check(Some("http://a/x/"), &[], "http://a/x/v1/traces [] [service.name=wharf] 1");
        check(Some("http://a/v1/traces"), &[], "http://a/v1/traces [] [service.name=wharf] 1");
        check(Some("http://a"), &[("OTEL_SDK_DISABLED", "true")], "off");
        check(
            None,
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://b"), ("OTEL_EXPORTER_OTLP_HEADERS", "key=a%20b, x=1")],
            "https://b/v1/traces [key=a b,x=1] [service.name=wharf] 1",
        );
        check(
            None,
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://b"),
                ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c/take"),
                ("OTEL_SERVICE_NAME", "gate"),
                ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other,host.name=h"),
                ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
                ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
            ],
            "http://c/take [] [host.name=h,service.name=gate] 0.25",
        );
        check(None, &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://b"), ("OTEL_TRACES_EXPORTER", "none")], "off");
        check(Some("http://a"), &[("OTEL_TRACES_EXPORTER", "none")], "off");
        check(
            Some("http://a"),
            &[("OTEL_TRACES_EXPORTER", "otlp")],
            "http://a/v1/traces [] [service.name=wharf] 1",
        );
        check(
            None,
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "b:4317")],
            "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL with http:// or https://",
        );
        check(
            None,
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://b"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
            "OTEL_EXPORTER_OTLP_PROTOCOL is `grpc`, but wharf sends OTLP over HTTP; use the collector's HTTP \
             port, usually 4318, and set it to `http/json`",
        );
        check(
            Some("http://a"),
            &[("OTEL_EXPORTER_OTLP_HEADERS", "bad name=hunter2")],
            "invalid header `bad name` for traces",
        );
    }

    #[test]
    fn debug_output_has_no_secrets() {
        let settings = TelemetrySettings {
            endpoint: Some(MaskedString::plain("http://me:hunter2@a/?key=hunter3")),
            headers: vec![("key".to_owned(), MaskedString::plain("hunter4"))],
            ..TelemetrySettings::default()
        };
        let config =
            TelemetryConfig::resolve(&settings, |_| None).expect("it makes sense").expect("it is on");
        assert!(!format!("{config:?}").contains("hunter"));
    }
}
