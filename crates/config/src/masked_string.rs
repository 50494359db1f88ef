//! Defines a configuration string with a form that is safe to print.
//!
//! A value from a variable or an env file is a secret. Such a text has two forms: the value, which only
//! [`MaskedString::expose`] returns, and the form as written in the file (`Bearer ${TOKEN}`), which is used for printing.
//! There is no `Display` and no `Serialize`, so a secret cannot be printed by accident.

use std::fmt;

/// A configured string: plain, or secret with a printable form.
#[derive(Clone, PartialEq, Eq)]
pub struct MaskedString {
    value: String,
    /// The printable form; `None` if the value itself may be printed.
    shown: Option<String>,
    /// Name and value of each secret variable in the value.
    variables: Vec<(String, String)>,
}

impl MaskedString {
    /// Creates a text that may be printed as it is.
    pub fn plain(value: impl Into<String>) -> MaskedString {
        MaskedString { value: value.into(), shown: None, variables: Vec::new() }
    }

    /// Creates a secret text. `shown` is printed in its place.
    pub fn secret(value: impl Into<String>, shown: impl Into<String>) -> MaskedString {
        MaskedString { value: value.into(), shown: Some(shown.into()), variables: Vec::new() }
    }

    /// Adds the secret variables in the value, each with its name. Their values are secret by themselves, too.
    #[must_use]
    pub(crate) fn with_variables(self, variables: Vec<(String, String)>) -> MaskedString {
        MaskedString { variables, ..self }
    }

    /// Returns the value. For use only, never for printing.
    pub fn expose(&self) -> &str {
        &self.value
    }

    /// Returns the printable form.
    pub fn shown(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.value)
    }

    /// Returns name and value of each secret variable in the value, as far as they are known. For use only, never for
    /// printing.
    pub fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// Returns whether any part of the value is from a variable or an env file.
    pub fn is_secret(&self) -> bool {
        self.shown.is_some()
    }

    /// Returns whether the value is empty or white space.
    pub fn is_blank(&self) -> bool {
        self.value.trim().is_empty()
    }

    /// Applies the same change to both forms.
    pub fn map(&self, change: impl Fn(&str) -> String) -> MaskedString {
        let (value, shown) = (change(&self.value), self.shown.as_deref().map(change));
        MaskedString { value, shown, variables: self.variables.clone() }
    }
}

impl fmt::Debug for MaskedString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.shown(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_the_written_form() {
        let token = MaskedString::secret("Bearer hunter2", "Bearer ${TOKEN}");
        assert_eq!(format!("{token:?}"), r#""Bearer ${TOKEN}""#);
        assert_eq!(token.expose(), "Bearer hunter2");
    }
}
