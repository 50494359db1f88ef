//! Checks combinations of schemas: `allOf`, `anyOf`, `oneOf`, `not` and conditions.

use super::{
    super::{
        messages::{self, ValidationError, ValidationErrorKind, ValuePath},
        node::{Id, Rule, Types, Validity},
    },
    Validator,
};
use serde_json::Value;
use std::mem;

impl<'s> Validator<'s> {
    pub(super) fn choice(&mut self, rule: &'s Rule, value: &Value, at: &ValuePath<'_>) -> Validity {
        match rule {
            Rule::All(ids) => self.check_all(ids, |validator, id| validator.node(*id, value, at)),
            Rule::Any(ids) => self.any(ids, value, at),
            Rule::One(ids) => self.one(ids, value, at),
            Rule::Not(id) => match self.check_separately(*id, value, at).0 {
                Validity::Valid => self.fail(at, ValidationErrorKind::Other, || {
                    "matches a schema that is not allowed".to_owned()
                }),
                Validity::Annotated | Validity::Unknown => self.uncertain(),
                Validity::Invalid => Validity::Valid,
            },
            _ => Validity::Valid,
        }
    }

    /// Checks a value and returns its errors separately. The caller decides whether they count.
    fn check_separately(
        &mut self,
        id: Id,
        value: &Value,
        at: &ValuePath<'_>,
    ) -> (Validity, Vec<ValidationError>) {
        let before = self.errors.as_mut().map(mem::take);
        let verdict = self.node(id, value, at);
        let found = mem::replace(&mut self.errors, before);
        (verdict, found.unwrap_or_default())
    }

    fn any(&mut self, ids: &'s [Id], value: &Value, at: &ValuePath<'_>) -> Validity {
        let (mut best, mut attempts) = (Validity::Invalid, Vec::new());
        for id in ids {
            if !self.spend(1) {
                return best.min(Validity::Unknown);
            }
            let (verdict, errors) = self.check_separately(*id, value, at);
            best = best.min(verdict);
            if best == Validity::Valid {
                return best;
            }
            if self.errors.is_some() {
                attempts.push(errors);
            }
        }
        if best == Validity::Invalid {
            self.explain(attempts, value, at);
        }
        best
    }

    /// Checks `oneOf`. Rejects the value only if the result of every alternative is certain.
    fn one(&mut self, ids: &'s [Id], value: &Value, at: &ValuePath<'_>) -> Validity {
        let (mut fitting, mut open, mut attempts, mut worst) = (0, 0, Vec::new(), Validity::Valid);
        for id in ids {
            if !self.spend(1) {
                return Validity::Unknown;
            }
            let (verdict, errors) = self.check_separately(*id, value, at);
            match verdict {
                Validity::Valid => fitting += 1,
                Validity::Annotated | Validity::Unknown => {
                    open += 1;
                    worst = worst.max(verdict);
                }
                Validity::Invalid if self.errors.is_some() => attempts.push(errors),
                Validity::Invalid => {}
            }
        }
        match (worst, fitting) {
            (Validity::Valid, 1) => Validity::Valid,
            (Validity::Valid, 0) => {
                self.explain(attempts, value, at);
                Validity::Invalid
            }
            (Validity::Valid, _) => self.fail(at, ValidationErrorKind::Other, || {
                format!("matches {fitting} of the alternatives, but exactly one is allowed")
            }),
            (Validity::Annotated, 0) if open == 1 => Validity::Annotated,
            _ => self.uncertain(),
        }
    }

    /// Records the errors of the closest alternative.
    fn explain(&mut self, attempts: Vec<Vec<ValidationError>>, value: &Value, at: &ValuePath<'_>) {
        let Some(errors) = &mut self.errors else { return };
        let expected = |errors: &Vec<ValidationError>| match errors.as_slice() {
            [only] => only.expected(at.depth),
            _ => None,
        };
        let types: Option<Vec<Types>> = attempts.iter().map(expected).collect();
        if let Some(types) = types.filter(|types| !types.is_empty()) {
            let types = types.into_iter().fold(Types::NONE, Types::with);
            errors.push(ValidationError::new(
                at,
                ValidationErrorKind::Type(types),
                messages::wrong_type(value, types),
            ));
            return;
        }
        let weight =
            |errors: &Vec<ValidationError>| errors.iter().map(|error| error.weight(at.depth)).sum::<usize>();
        let closest = attempts.into_iter().filter(|it| !it.is_empty()).min_by_key(weight);
        match closest {
            Some(closest) => errors.extend(closest),
            None => errors.push(ValidationError::new(
                at,
                ValidationErrorKind::Other,
                "matches none of the allowed alternatives".to_owned(),
            )),
        }
    }
}
