//! One validation pass over a value. A quiet pass stops at the first error; a loud pass records what is wrong and
//! where.
//!
//! When the steps are used up or the nesting is too deep, the rest of the result is unknown. Errors found before that
//! still count.

mod choice;
mod composite;
mod scalar;

use super::{
    BUDGET, Wrong,
    node::{Id, Node, Rule, Verdict},
    same,
    say::{self, Flaw, Kind, Path},
};
use serde_json::Value;

/// Maximum nesting depth of schemas.
const DEPTH: u32 = 200;
/// Maximum number of errors reported.
const NAMED: usize = 10;
/// Cost of recording one error, in steps.
const WORDS: u32 = 5;

const TOO_LONG: &str = "checking takes too many steps";
const TOO_DEEP: &str = "the schema goes too deep, or in circles";
const UNCERTAIN: &str = "a number or a pattern is not certain to be read as the server reads it";

/// State of one pass.
pub(super) struct Run<'s> {
    nodes: &'s [Node],
    left: u32,
    depth: u32,
    why: Option<&'static str>,
    /// Errors found so far. `None` in a quiet pass.
    flaws: Option<Vec<Flaw>>,
}

impl<'s> Run<'s> {
    pub(super) fn quiet(nodes: &'s [Node]) -> Run<'s> {
        Run { nodes, left: BUDGET, depth: 0, why: None, flaws: None }
    }

    pub(super) fn loud(nodes: &'s [Node]) -> Run<'s> {
        Run { flaws: Some(Vec::new()), ..Run::quiet(nodes) }
    }

    pub(super) fn steps(&self) -> u32 {
        BUDGET - self.left
    }

    /// Returns the reason why the result is unknown.
    pub(super) fn why(&self) -> &'static str {
        self.why.unwrap_or(UNCERTAIN)
    }

    pub(super) fn into_wrong(self) -> Vec<Wrong> {
        self.flaws.into_iter().flatten().take(NAMED).map(Flaw::into_wrong).collect()
    }

    /// Checks a value against a schema.
    pub(super) fn node(&mut self, id: Id, value: &Value, at: &Path<'_>) -> Verdict {
        let Some(node) = self.nodes.get(id.0 as usize) else { return self.unknown(UNCERTAIN) };
        if self.depth >= DEPTH {
            return self.unknown(TOO_DEEP);
        }
        self.depth += 1;
        let verdict = self.rules(node, value, at);
        self.depth -= 1;
        verdict
    }

    fn rules(&mut self, node: &'s Node, value: &Value, at: &Path<'_>) -> Verdict {
        if node.nullable && value.is_null() {
            return Verdict::Noted;
        }
        let mut verdict = Verdict::Valid;
        for rule in &node.rules {
            if !self.spend(1) {
                return verdict.max(Verdict::Unknown);
            }
            verdict = verdict.max(self.rule(rule, value, at));
            if verdict == Verdict::Invalid && self.has_heard_enough() {
                break;
            }
        }
        verdict
    }

    fn rule(&mut self, rule: &'s Rule, value: &Value, at: &Path<'_>) -> Verdict {
        match rule {
            Rule::Never => self.wrong(at, Kind::Value, || "is not allowed".to_owned()),
            Rule::Type(types) if types.hold(value) => Verdict::Valid,
            Rule::Type(types) => self.wrong(at, Kind::Type(*types), || say::wrong_type(value, *types)),
            Rule::Values(values) => match values.contain(value, &mut self.left) {
                Some(true) => Verdict::Valid,
                Some(false) => self.wrong(at, Kind::Value, || say::not_among(value, &values.all)),
                None => self.uncertain(),
            },
            Rule::Ref(id) => self.node(*id, value, at),
            Rule::All(_) | Rule::Any(_) | Rule::One(_) | Rule::Not(_) | Rule::If { .. } => {
                self.choice(rule, value, at)
            }
            Rule::DependentSchemas(all) => {
                let Value::Object(members) = value else { return Verdict::Valid };
                self.together(all, |run, (name, id)| match run.has(members, name) {
                    Some(true) => run.node(*id, value, at),
                    Some(false) => Verdict::Valid,
                    None => Verdict::Unknown,
                })
            }
            Rule::Noted(types) if types.hold(value) => Verdict::Noted,
            Rule::Unread(types, why) if types.hold(value) => self.unknown(why),
            Rule::Noted(_) | Rule::Unread(..) => Verdict::Valid,
            rule => match value {
                Value::Number(number) => self.number(rule, number, value, at),
                Value::String(text) => self.string(rule, text, at),
                Value::Array(items) => self.array(rule, items, at),
                Value::Object(members) => self.object(rule, members, at),
                Value::Null | Value::Bool(_) => Verdict::Valid,
            },
        }
    }

    /// Uses up `cost` steps. Returns `false` if not enough are left.
    fn spend(&mut self, cost: u32) -> bool {
        let suffices = same::spend(&mut self.left, cost).is_some();
        if !suffices {
            self.why = Some(TOO_LONG);
        }
        suffices
    }

    /// Returns whether further errors are of no interest.
    fn has_heard_enough(&self) -> bool {
        self.flaws.as_ref().is_none_or(|flaws| flaws.len() >= NAMED)
    }

    fn wrong(&mut self, at: &Path<'_>, kind: Kind, message: impl FnOnce() -> String) -> Verdict {
        if let Some(flaws) = &mut self.flaws
            && flaws.len() < NAMED
        {
            // Recording an error is more expensive than a check, and of several alternatives only one is reported.
            self.left = self.left.saturating_sub(WORDS);
            flaws.push(Flaw::new(at, kind, message()));
        }
        Verdict::Invalid
    }

    fn unless(&mut self, fits: bool, at: &Path<'_>, message: impl FnOnce() -> String) -> Verdict {
        if fits { Verdict::Valid } else { self.wrong(at, Kind::Other, message) }
    }

    fn decided(&mut self, fits: Option<bool>, at: &Path<'_>, message: impl FnOnce() -> String) -> Verdict {
        match fits {
            Some(fits) => self.unless(fits, at, message),
            None => self.uncertain(),
        }
    }

    fn unknown(&mut self, why: &'static str) -> Verdict {
        self.why.get_or_insert(why);
        Verdict::Unknown
    }

    /// Returns an unknown result for a comparison that ran out of steps or cannot be decided.
    fn uncertain(&mut self) -> Verdict {
        self.unknown(if self.left == 0 { TOO_LONG } else { UNCERTAIN })
    }
}
