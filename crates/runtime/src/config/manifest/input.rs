//! What a manifest asks for: values with a name, a default, a few choices.

use super::{each_pair, flag_of, text_of, texts_of};
use crate::config::node::Node;
use wharf_mcp::sse::PORT;

/// A value that may be given.
#[derive(Clone, Debug, Default)]
pub(in crate::config) struct Input {
    /// Fixed, but for the `{variables}` in it.
    pub(in crate::config) value: Option<String>,
    pub(in crate::config) default: Option<String>,
    pub(in crate::config) required: bool,
    pub(in crate::config) secret: bool,
    /// `number`, `boolean`, `filepath`; anything else is a string.
    pub(in crate::config) format: Option<String>,
    pub(in crate::config) choices: Vec<String>,
    pub(in crate::config) described: bool,
    pub(in crate::config) variables: Vec<(String, Input)>,
}

/// One argument of a command line.
#[derive(Clone, Debug)]
pub(in crate::config) struct Argument {
    /// The flag before the value; without it, the value stands alone.
    pub(in crate::config) flag: Option<String>,
    /// What the value is called where it has to be given.
    pub(in crate::config) hint: Option<String>,
    pub(in crate::config) input: Input,
}

/// An environment variable or a header.
#[derive(Clone, Debug)]
pub(in crate::config) struct KeyValue {
    pub(in crate::config) name: String,
    pub(in crate::config) input: Input,
}

impl Input {
    pub(super) fn read(node: &Node) -> Result<Input, String> {
        // Variables have none of their own, so this ends.
        let variables = each_pair(node, &["variables"], Input::plain)?;
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

    /// Why a value does not fit, if it does not. The value itself is not repeated.
    pub(super) fn objection(&self, value: &str) -> Option<String> {
        // The port of a server that is given one is filled in when it is started.
        if value == PORT {
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

    /// What its value is called where it has to be given.
    pub(super) fn id(&self) -> &str {
        let flag = self.flag.as_deref().map(|it| it.trim_start_matches('-'));
        flag.or(self.hint.as_deref()).unwrap_or("argument")
    }

    /// Whether it is a flag that never has a value.
    pub(super) fn is_bare(&self) -> bool {
        let Input { value, default, required, choices, described, variables, .. } = &self.input;
        let wants = *required || *described || !choices.is_empty() || !variables.is_empty();
        self.flag.is_some() && value.is_none() && default.is_none() && self.hint.is_none() && !wants
    }
}

impl KeyValue {
    pub(super) fn read(node: &Node) -> Result<KeyValue, String> {
        let name = text_of(node, &["name"])?.ok_or("a variable or a header has no 'name'")?;
        Ok(KeyValue { name, input: Input::read(node)? })
    }
}
