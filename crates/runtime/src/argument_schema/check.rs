//! One validation pass over a value. A quiet pass stops at the first error; a loud pass records what is wrong and
//! where.
//!
//! When the steps are used up or the nesting is too deep, the rest of the result is unknown. Errors found before that
//! still count.

mod choice;
mod composite;
mod scalar;

use super::{
    ArgumentError, STEP_BUDGET, equal,
    messages::{self, ValidationError, ValidationErrorKind, ValuePath},
    node::{Id, Rule, SchemaNode, Validity},
};
use serde_json::Value;

/// Maximum nesting depth of schemas.
const MAX_DEPTH: u32 = 200;
/// Maximum number of errors reported.
const MAX_ERRORS: usize = 10;
/// Cost of recording one error, in steps.
const ERROR_COST: u32 = 5;

const TOO_MANY_STEPS: &str = "validation takes too many steps";
const TOO_DEEP: &str = "the schema is nested too deeply or refers to itself";
const UNCERTAIN: &str = "the server may interpret a number or a pattern differently";

/// State of one pass.
pub(super) struct Validator<'s> {
    nodes: &'s [SchemaNode],
    left: u32,
    depth: u32,
    why: Option<&'static str>,
    /// Errors found so far. `None` in a quiet pass.
    errors: Option<Vec<ValidationError>>,
}

impl<'s> Validator<'s> {
    pub(super) fn fast(nodes: &'s [SchemaNode]) -> Validator<'s> {
        Validator { nodes, left: STEP_BUDGET, depth: 0, why: None, errors: None }
    }

    pub(super) fn collecting(nodes: &'s [SchemaNode]) -> Validator<'s> {
        Validator { errors: Some(Vec::new()), ..Validator::fast(nodes) }
    }

    pub(super) fn steps(&self) -> u32 {
        STEP_BUDGET - self.left
    }

    /// Returns the reason why the result is unknown.
    pub(super) fn why(&self) -> &'static str {
        self.why.unwrap_or(UNCERTAIN)
    }

    pub(super) fn into_argument_error(self) -> Vec<ArgumentError> {
        self.errors.into_iter().flatten().take(MAX_ERRORS).map(ValidationError::into_argument_error).collect()
    }

    /// Checks a value against a schema.
    pub(super) fn node(&mut self, id: Id, value: &Value, at: &ValuePath<'_>) -> Validity {
        let Some(node) = self.nodes.get(id.0 as usize) else { return self.unknown(UNCERTAIN) };
        if self.depth >= MAX_DEPTH {
            return self.unknown(TOO_DEEP);
        }
        self.depth += 1;
        let verdict = self.rules(node, value, at);
        self.depth -= 1;
        verdict
    }

    fn rules(&mut self, node: &'s SchemaNode, value: &Value, at: &ValuePath<'_>) -> Validity {
        if node.nullable && value.is_null() {
            return Validity::Annotated;
        }
        let mut verdict = Validity::Valid;
        for rule in &node.rules {
            if !self.spend(1) {
                return verdict.max(Validity::Unknown);
            }
            verdict = verdict.max(self.rule(rule, value, at));
            if verdict == Validity::Invalid && self.can_stop() {
                break;
            }
        }
        verdict
    }

    fn rule(&mut self, rule: &'s Rule, value: &Value, at: &ValuePath<'_>) -> Validity {
        match rule {
            Rule::Never => self.fail(at, ValidationErrorKind::Value, || "is not allowed".to_owned()),
            Rule::Type(types) if types.hold(value) => Validity::Valid,
            Rule::Type(types) => {
                self.fail(at, ValidationErrorKind::Type(*types), || messages::wrong_type(value, *types))
            }
            Rule::Values(values) => match values.contain(value, &mut self.left) {
                Some(true) => Validity::Valid,
                Some(false) => {
                    self.fail(at, ValidationErrorKind::Value, || messages::not_among(value, &values.all))
                }
                None => self.uncertain(),
            },
            Rule::Ref(id) => self.node(*id, value, at),
            Rule::All(_) | Rule::Any(_) | Rule::One(_) | Rule::Not(_) => self.choice(rule, value, at),
            Rule::Annotated(types) if types.hold(value) => Validity::Annotated,
            Rule::Unchecked(types, why) if types.hold(value) => self.unknown(why),
            Rule::Annotated(_) | Rule::Unchecked(..) => Validity::Valid,
            rule => match value {
                Value::Number(number) => self.number(rule, number, value, at),
                Value::String(text) => self.string(rule, text, at),
                Value::Array(items) => self.array(rule, items, at),
                Value::Object(members) => self.object(rule, members, at),
                Value::Null | Value::Bool(_) => Validity::Valid,
            },
        }
    }

    /// Uses up `cost` steps. Returns `false` if not enough are left.
    fn spend(&mut self, cost: u32) -> bool {
        let suffices = equal::spend(&mut self.left, cost).is_some();
        if !suffices {
            self.why = Some(TOO_MANY_STEPS);
        }
        suffices
    }

    /// Returns whether further errors are of no interest.
    fn can_stop(&self) -> bool {
        self.errors.as_ref().is_none_or(|errors| errors.len() >= MAX_ERRORS)
    }

    fn fail(
        &mut self,
        at: &ValuePath<'_>,
        kind: ValidationErrorKind,
        message: impl FnOnce() -> String,
    ) -> Validity {
        if let Some(errors) = &mut self.errors
            && errors.len() < MAX_ERRORS
        {
            // Recording an error is more expensive than a check, and of several alternatives only one is reported.
            self.left = self.left.saturating_sub(ERROR_COST);
            errors.push(ValidationError::new(at, kind, message()));
        }
        Validity::Invalid
    }

    fn fail_unless(&mut self, fits: bool, at: &ValuePath<'_>, message: impl FnOnce() -> String) -> Validity {
        if fits { Validity::Valid } else { self.fail(at, ValidationErrorKind::Other, message) }
    }

    fn fail_unless_certain(
        &mut self,
        fits: Option<bool>,
        at: &ValuePath<'_>,
        message: impl FnOnce() -> String,
    ) -> Validity {
        match fits {
            Some(fits) => self.fail_unless(fits, at, message),
            None => self.uncertain(),
        }
    }

    fn unknown(&mut self, why: &'static str) -> Validity {
        self.why.get_or_insert(why);
        Validity::Unknown
    }

    /// Returns an unknown result for a comparison that ran out of steps or cannot be decided.
    fn uncertain(&mut self) -> Validity {
        self.unknown(if self.left == 0 { TOO_MANY_STEPS } else { UNCERTAIN })
    }
}
