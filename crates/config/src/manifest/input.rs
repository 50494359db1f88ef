//! Inputs that a manifest declares: named values with defaults and choices.

use super::{flag_of, read_map, text_of, texts_of};
use crate::PORT_PLACEHOLDER;
use crate::node::Node;

/// A value that the user may give.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    /// Fixed value, which may contain `{variables}`.
    pub(crate) value: Option<String>,
    pub(crate) default: Option<String>,
    pub(crate) required: bool,
    pub(crate) secret: bool,
    /// `number`, `boolean` or `filepath`. Anything else means a string.
    pub(crate) format: Option<String>,
    pub(crate) choices: Vec<String>,
    pub(crate) described: bool,
    pub(crate) variables: Vec<(String, Input)>,
}

/// One argument of a command line.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    /// Flag before the value. `None` for a positional argument.
    pub(crate) flag: Option<String>,
    /// Name of the value, for a positional argument.
    pub(crate) hint: Option<String>,
    pub(crate) input: Input,
}

/// An environment variable or a header.
#[derive(Clone, Debug)]
pub(crate) struct KeyValue {
    pub(crate) name: String,
    pub(crate) input: Input,
}

impl Input {
    pub(super) fn read(node: &Node) -> Result<Input, String> {
        // Variables cannot contain variables, so there is no recursion.
        let variables = read_map(node, &["variables"], Input::plain)?;
        Ok(Input { variables, ..Input::plain(node)? })
    }

    fn plain(node: &Node) -> Result<Input, String> {
        Ok(Input {
            value: text_of(node, &["value"])?.filter(|it| !it.is_empty()),
            default: text_of(node, &["default"])?,
            required: flag_of(node, &["isRequired", "is_required", "required"]),
            secret: flag_of(node, &["isSecret", "is_secret", "secret"]),
            format: text_of(node, &["format"])?,
            choices: texts_of(node, &["choices"])?,
            described: text_of(node, &["description"])?.is_some(),
            variables: Vec::new(),
        })
    }

    /// Returns why a value is invalid, if it is. Does not repeat the value.
    pub(super) fn invalid_reason(&self, value: &str) -> Option<String> {
        // The placeholder is replaced by the port when the server starts.
        if value == PORT_PLACEHOLDER {
            return None;
        }
        let number = || value.parse::<f64>().is_ok_and(f64::is_finite);
        match self.format.as_deref() {
            _ if !self.choices.is_empty() && !self.choices.iter().any(|it| it == value) => {
                Some(format!("is not one of {}", self.choices.join(", ")))
            }
            Some("number") if !number() => Some("is not a number".to_owned()),
            Some("boolean") if !matches!(value, "true" | "false") => {
                Some("is neither true nor false".to_owned())
            }
            _ if value.contains('\0') => Some("contains a NUL byte".to_owned()),
            _ => None,
        }
    }
}

impl Argument {
    pub(super) fn read(node: &Node) -> Result<Argument, String> {
        let kind = text_of(node, &["type"])?;
        let flag = text_of(node, &["name"])?.filter(|it| !it.is_empty());
        let flag = match (kind.as_deref(), flag) {
            (Some("named"), None) => return Err("a named argument has no 'name'".to_owned()),
            (Some("positional"), _) => None,
            (_, flag) => flag,
        };
        Ok(Argument { flag, hint: text_of(node, &["valueHint", "value_hint"])?, input: Input::read(node)? })
    }

    /// Returns the name under which the value is given.
    pub(super) fn id(&self) -> &str {
        let flag = self.flag.as_deref().map(|it| it.trim_start_matches('-'));
        flag.or(self.hint.as_deref()).unwrap_or("argument")
    }

    /// Returns whether this is a flag without a value.
    pub(super) fn is_bare(&self) -> bool {
        let Input { value, default, required, choices, described, variables, .. } = &self.input;
        let takes_value = *required || *described || !choices.is_empty() || !variables.is_empty();
        self.flag.is_some() && value.is_none() && default.is_none() && self.hint.is_none() && !takes_value
    }
}

impl KeyValue {
    pub(super) fn read(node: &Node) -> Result<KeyValue, String> {
        let name = text_of(node, &["name"])?.ok_or("a variable or a header has no 'name'")?;
        Ok(KeyValue { name, input: Input::read(node)? })
    }
}
