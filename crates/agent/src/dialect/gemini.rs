//! Gemini's `streamGenerateContent`.

mod request;

pub(super) use request::write;

use super::{
    CallFragment, Delta, FinishReason, NativeKind, Usage, decode, delta::count, push_text, reported_error,
    tools::unescape_name,
};
use crate::model::trouble::Trouble;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

#[derive(Debug, Default)]
pub(super) struct GeminiReader {
    pub(super) is_over: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiChunk<'a> {
    error: Option<Value>,
    #[serde(borrow)]
    candidates: Option<Vec<GeminiCandidate<'a>>>,
    prompt_feedback: Option<Value>,
    usage_metadata: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiCandidate<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    content: Option<GeminiContent<'a>>,
    finish_reason: Option<String>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct GeminiContent<'a> {
    #[serde(borrow)]
    parts: Option<Vec<GeminiPart<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
    text: Option<String>,
    thought: Option<bool>,
    thought_signature: Option<Value>,
    #[serde(borrow)]
    function_call: Option<GeminiCall<'a>>,
}

#[derive(Deserialize)]
struct GeminiCall<'a> {
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

impl GeminiReader {
    pub(super) fn read(&mut self, event: &str) -> Result<Vec<Delta>, Trouble> {
        let chunk: GeminiChunk<'_> = decode(event)?;
        if let Some(error) = &chunk.error {
            return Err(reported_error(error));
        }
        let mut out = Vec::new();
        let candidates = chunk.candidates.into_iter().flatten();
        for candidate in candidates.filter(|it| it.index.unwrap_or(0) == 0) {
            let parts = candidate.content.and_then(|content| content.parts);
            parts.into_iter().flatten().for_each(|part| read_part(part, &mut out));
            let reason = candidate.finish_reason.filter(|it| it != "FINISH_REASON_UNSPECIFIED");
            if let Some(word) = reason {
                let reason = finish_reason(&word, candidate.finish_message.as_deref())?;
                self.finish(reason, &mut out);
            }
        }
        // A blocked prompt has no candidates.
        if chunk.prompt_feedback.is_some_and(|feedback| feedback["blockReason"].is_string()) {
            self.finish(FinishReason::Filtered, &mut out);
        }
        out.extend(chunk.usage_metadata.as_ref().and_then(read_usage).map(Delta::Usage));
        Ok(out)
    }

    fn finish(&mut self, reason: FinishReason, out: &mut Vec<Delta>) {
        self.is_over = true;
        out.push(Delta::Finish(reason));
    }
}

fn read_part(part: GeminiPart<'_>, out: &mut Vec<Delta>) {
    if let Some(call) = part.function_call {
        return out.push(Delta::Call(CallFragment {
            is_whole: true,
            index: None,
            id: call.id,
            name: call.name.as_deref().map(unescape_name).map(str::to_owned),
            arguments: call.args.map(|args| args.get().to_owned()).unwrap_or_default(),
            native: part.thought_signature,
        }));
    }
    let is_thought = part.thought == Some(true);
    push_text(out, part.text, if is_thought { Delta::Reasoning } else { Delta::Text });
    let kind = if is_thought { NativeKind::Reasoning } else { NativeKind::Text };
    out.extend(part.thought_signature.map(|signature| Delta::Native(kind, signature)));
}

/// Returns the meaning of a finish reason. A call that the provider could not decode is worth another try.
fn finish_reason(word: &str, message: Option<&str>) -> Result<FinishReason, Trouble> {
    match word {
        "STOP" => Ok(FinishReason::Stop),
        "MAX_TOKENS" => Ok(FinishReason::Length),
        "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII"
        | "IMAGE_SAFETY" => Ok(FinishReason::Filtered),
        _ => Err(Trouble::garbled(format_args!("{word} {}", message.unwrap_or_default()).to_string().trim())),
    }
}

fn read_usage(usage: &Value) -> Option<Usage> {
    let usage = usage.is_object().then_some(usage)?;
    let reasoning = count(usage, &["thoughtsTokenCount"]);
    Some(Usage {
        input: count(usage, &["promptTokenCount"]),
        cached_input: count(usage, &["cachedContentTokenCount"]),
        output: count(usage, &["candidatesTokenCount"]) + reasoning,
        reasoning,
    })
}
