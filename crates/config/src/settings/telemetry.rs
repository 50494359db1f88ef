//! Loads `[telemetry]` of wharf.toml: the export of traces.

use crate::{
    MaskedString,
    diagnostic::Diagnostics,
    raw::{Field, RawTelemetry},
    read::Reader,
    url::parse_http_url,
};

/// Settings for traces. The environment may provide values that are not set here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TelemetrySettings {
    /// Base URL of the collector. `/v1/traces` is appended.
    pub endpoint: Option<MaskedString>,
    /// Headers to send to the collector, often an API key.
    pub headers: Vec<(String, MaskedString)>,
    /// Service name to report.
    pub service_name: Option<String>,
    /// Fraction of the traces started here that are sampled, from 0 to 1.
    pub sample_ratio: Option<f64>,
}

pub(super) fn telemetry(field: Option<Field>, diagnostics: &mut Diagnostics) -> Option<TelemetrySettings> {
    let Some(field) = field else { return Some(TelemetrySettings::default()) };
    let raw = RawTelemetry::read(field.node, diagnostics)?;
    let RawTelemetry { endpoint, headers, service_name, sample_ratio } = raw;
    let mut reader = Reader { class: "ConfigError", diagnostics };
    let endpoint = reader.text("endpoint", endpoint);
    let headers = reader.text_map("headers", headers).unwrap_or_default();
    let service_name = reader.text("service_name", service_name);
    let sample_ratio = reader.number("sample_ratio", sample_ratio, 0.0, 1.0);
    if let Some(endpoint) = endpoint.as_ref().filter(|it| parse_http_url(it.value.expose()).is_none()) {
        reader.diagnostics.invalid_collector_url(endpoint.at);
    }
    let hidden = |text: &MaskedString| MaskedString::secret(text.expose(), "***");
    Some(TelemetrySettings {
        endpoint: endpoint.map(|it| it.value),
        headers: headers.into_iter().map(|(name, it)| (name.value, hidden(&it.value))).collect(),
        service_name: service_name.map(|it| it.value.expose().to_owned()),
        sample_ratio,
    })
}
