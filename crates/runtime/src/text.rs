//! A string of the configuration that knows which form of it may be shown.
//!
//! What came from a variable or an env file is a secret. Such a text keeps two forms: the value, which only
//! [`Text::expose`] gives out, and the form as written (`Bearer ${TOKEN}`), which everything that prints uses.
//! There is no `Display` and no `Serialize`, so a value cannot reach a sink by accident.

use std::fmt;

/// A configured string: plain, or secret with a form that may be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Text {
    value: String,
    /// `None`: the value itself may be shown.
    shown: Option<String>,
}

impl Text {
    /// A text that was written in the file and may be shown as it is.
    pub fn plain(value: impl Into<String>) -> Text {
        Text { value: value.into(), shown: None }
    }

    /// A text whose value must not be shown; `shown` stands for it.
    pub fn secret(value: impl Into<String>, shown: impl Into<String>) -> Text {
        Text { value: value.into(), shown: Some(shown.into()) }
    }

    /// The value. Only for what uses it, never for what prints it.
    pub fn expose(&self) -> &str {
        &self.value
    }

    /// The form that may be printed.
    pub fn shown(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.value)
    }

    /// Whether the value came, in whole or in part, from a variable or an env file.
    pub fn is_secret(&self) -> bool {
        self.shown.is_some()
    }

    /// Whether there is nothing in it but white space.
    pub fn is_blank(&self) -> bool {
        self.value.trim().is_empty()
    }

    /// The same text with both forms changed in the same way.
    pub fn map(&self, change: impl Fn(&str) -> String) -> Text {
        Text { value: change(&self.value), shown: self.shown.as_deref().map(change) }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_written_form() {
        let token = Text::secret("Bearer hunter2", "Bearer ${TOKEN}");
        assert_eq!(format!("{token:?}"), r#""Bearer ${TOKEN}""#);
        assert_eq!(token.expose(), "Bearer hunter2");
    }
}
