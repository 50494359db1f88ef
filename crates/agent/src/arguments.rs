//! Arguments of a tool call: the model's own text, checked but never repaired.

/// Maximum size of the arguments of one call, in bytes.
pub const MAX_ARGUMENT_BYTES: usize = 1 << 20;
/// Maximum nesting depth of the arguments of one call.
pub const MAX_ARGUMENT_DEPTH: usize = 128;

/// Reason why the arguments of a call are unusable. Its text is for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// The text exceeds [`MAX_ARGUMENT_BYTES`].
    #[error("the arguments are longer than {MAX_ARGUMENT_BYTES} bytes")]
    TooLong,
    /// The text exceeds [`MAX_ARGUMENT_DEPTH`].
    #[error("the arguments are nested deeper than {MAX_ARGUMENT_DEPTH} levels")]
    TooDeep,
    /// The text is not one JSON object.
    #[error("the arguments are not one JSON object")]
    NotAnObject,
}

/// Checks the text of a call's arguments and returns the text of the object.
///
/// An empty text is `{}`. An object inside a JSON string is extracted once, because some servers encode twice.
pub fn check_arguments(text: &str) -> Result<&str, ArgumentsError> {
    let text = text.trim();
    if text.len() > MAX_ARGUMENT_BYTES {
        return Err(ArgumentsError::TooLong);
    }
    if text.is_empty() {
        return Ok("{}");
    }
    let mut scan = ObjectScan::default();
    scan.push(text);
    if scan.max_depth > MAX_ARGUMENT_DEPTH {
        return Err(ArgumentsError::TooDeep);
    }
    // `RawValue` is checked without recursion, so that depth costs no stack.
    let is_json = serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
    if is_json && text.starts_with('{') { Ok(text) } else { Err(ArgumentsError::NotAnObject) }
}

/// Returns the text of the object, extracted from a JSON string if the server encoded it twice.
pub(crate) fn unwrap_string(text: String) -> String {
    if !text.trim_start().starts_with('"') {
        return text;
    }
    match serde_json::from_str::<String>(&text) {
        Ok(inner) if inner.trim_start().starts_with('{') => inner,
        _ => text,
    }
}

/// Tracks where the outermost object of a growing text ends, in constant time per byte.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectScan {
    depth: usize,
    max_depth: usize,
    in_string: bool,
    escaped: bool,
    has_ended: bool,
}

impl ObjectScan {
    pub(crate) fn push(&mut self, text: &str) {
        for byte in text.bytes() {
            self.push_byte(byte);
        }
    }

    /// Returns whether an object has begun and ended.
    pub(crate) fn is_whole(&self) -> bool {
        self.has_ended
    }

    fn push_byte(&mut self, byte: u8) {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => {
                self.depth += 1;
                self.max_depth = self.max_depth.max(self.depth);
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.has_ended |= self.depth == 0;
            }
            _ => {}
        }
    }
}
