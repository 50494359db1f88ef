//! Compiles the keywords for types, values, numbers, strings, objects and arrays.

use super::{
    super::node::{Bound, Members, Values},
    Dialect, INVALID_KEYWORD, NodeBuilder, Rule, Types, messages,
};
use serde_json::Value;

const BOUNDS: [(&str, Bound); 4] = [
    ("minimum", Bound::AtLeast),
    ("maximum", Bound::AtMost),
    ("exclusiveMinimum", Bound::MoreThan),
    ("exclusiveMaximum", Bound::LessThan),
];

impl<'v> NodeBuilder<'_, 'v> {
    pub(super) fn types(&mut self) -> Result<(), String> {
        let Some(value) = self.keyword("type") else { return Ok(()) };
        let names = match value {
            Value::Array(names) => names.as_slice(),
            one => std::slice::from_ref(one),
        };
        let mut types = Types::NONE;
        for name in names {
            let name = name.as_str().ok_or_else(|| {
                format!("`type` is {} in the schema, which is not a type", messages::shown(name))
            })?;
            match Types::named(name) {
                Some(one) => types = types.with(one),
                // The meaning of names such as `any`, `int` and `float` would be a guess.
                None => {
                    self.unchecked(Types::ANY, INVALID_KEYWORD);
                    return Ok(());
                }
            }
        }
        if types == Types::NONE {
            self.unchecked(Types::ANY, INVALID_KEYWORD);
        } else {
            self.add(Rule::Type(types));
        }
        Ok(())
    }

    pub(super) fn values(&mut self) {
        match self.keyword("enum") {
            Some(Value::Array(all)) if !all.is_empty() => {
                self.add(Rule::Values(Box::new(Values::new(all.clone()))))
            }
            Some(_) => self.unchecked(Types::ANY, INVALID_KEYWORD),
            None => {}
        }
        // Only `const` accepts null as a regular value.
        if let Some(only) = self.schema.get("const") {
            self.add(Rule::Values(Box::new(Values::new(vec![only.clone()]))));
        }
    }

    pub(super) fn numbers(&mut self) {
        for (name, bound) in BOUNDS {
            match self.keyword(name) {
                Some(Value::Number(limit)) => {
                    self.add(Rule::Bound(self.with_exclusive_bound(name, bound), limit.clone()))
                }
                // In draft-04 a boolean modifies `minimum` or `maximum`. See `with_exclusive_bound`.
                Some(Value::Bool(_)) | None => {}
                Some(_) => self.unchecked(Types::NUMBER, INVALID_KEYWORD),
            }
        }
        match self.keyword("multipleOf") {
            Some(Value::Number(of)) if of.as_f64().is_some_and(|it| it > 0.0) => {
                self.add(Rule::MultipleOf(of.clone()))
            }
            Some(_) => self.unchecked(Types::NUMBER, INVALID_KEYWORD),
            None => {}
        }
    }

    /// Returns the bound that `minimum` or `maximum` has: exclusive if `exclusiveMinimum` or `exclusiveMaximum` is
    /// true, as in draft-04.
    fn with_exclusive_bound(&self, name: &str, bound: Bound) -> Bound {
        let is_exclusive = |other: &str| self.keyword(other) == Some(&Value::Bool(true));
        match name {
            "minimum" if is_exclusive("exclusiveMinimum") => Bound::MoreThan,
            "maximum" if is_exclusive("exclusiveMaximum") => Bound::LessThan,
            _ => bound,
        }
    }

    pub(super) fn strings(&mut self) {
        self.count("minLength", Types::STRING, Rule::MinLength);
        self.count("maxLength", Types::STRING, Rule::MaxLength);
        match self.keyword("pattern") {
            Some(Value::String(text)) => {
                let pattern = self.compiler.pattern(text);
                self.add(Rule::Pattern(Box::new(pattern)));
            }
            Some(_) => self.unchecked(Types::STRING, INVALID_KEYWORD),
            None => {}
        }
    }

    pub(super) fn objects(&mut self) -> Result<(), String> {
        self.count("minProperties", Types::OBJECT, Rule::MinProperties);
        self.count("maxProperties", Types::OBJECT, Rule::MaxProperties);
        self.members()?;
        if let Some(names) = self.single("propertyNames")? {
            self.add(Rule::Names(names));
        }
        if self.dialect() != Dialect::Draft07 {
            if let Some(members) = self.map("dependentRequired")? {
                self.dependencies(members.iter())?;
            }
            if let Some(members) = self.map("dependentSchemas")? {
                self.dependencies(members.iter())?;
            }
        }
        if matches!(self.dialect(), Dialect::Draft07 | Dialect::Unspecified)
            && let Some(members) = self.map("dependencies")?
        {
            self.dependencies(members.iter())?;
        }
        Ok(())
    }

    fn members(&mut self) -> Result<(), String> {
        let mut members = Members { required: self.required(), ..Members::default() };
        for (name, value) in self.map("properties")?.into_iter().flatten() {
            members.named.push((name.clone(), self.id(value)?));
        }
        members.named.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (text, value) in self.map("patternProperties")?.into_iter().flatten() {
            let pattern = self.compiler.pattern(text);
            members.patterns.push((pattern, self.id(value)?));
        }
        members.additional = match self.keyword("additionalProperties") {
            None | Some(Value::Bool(true)) => None,
            Some(value) => Some(self.id(value)?),
        };
        let Members { named, patterns, additional, required } = &members;
        if !named.is_empty() || !patterns.is_empty() || additional.is_some() || !required.is_empty() {
            self.add(Rule::Members(Box::new(members)));
        }
        Ok(())
    }

    fn required(&mut self) -> Vec<String> {
        match self.keyword("required") {
            None => Vec::new(),
            Some(value) => names(value).unwrap_or_else(|| {
                // Draft-03 put `required: true` inside the property, and authors still do.
                if !value.is_boolean() {
                    self.unchecked(Types::OBJECT, INVALID_KEYWORD);
                }
                Vec::new()
            }),
        }
    }

    fn dependencies(&mut self, members: impl Iterator<Item = (&'v String, &'v Value)>) -> Result<(), String> {
        let (mut required, mut schemas) = (Vec::new(), Vec::new());
        for (name, value) in members {
            match value {
                Value::Object(_) | Value::Bool(_) => schemas.push((name.clone(), self.id(value)?)),
                _ => match names(value) {
                    Some(names) => required.push((name.clone(), names)),
                    None => self.unchecked(Types::OBJECT, INVALID_KEYWORD),
                },
            }
        }
        if !required.is_empty() {
            self.add(Rule::DependentRequired(required));
        }
        if !schemas.is_empty() {
            self.add(Rule::DependentSchemas(schemas));
        }
        Ok(())
    }

    pub(super) fn arrays(&mut self) -> Result<(), String> {
        self.count("minItems", Types::ARRAY, Rule::MinItems);
        self.count("maxItems", Types::ARRAY, Rule::MaxItems);
        match self.keyword("uniqueItems") {
            Some(Value::Bool(true)) => self.add(Rule::Unique),
            Some(Value::Bool(false)) | None => {}
            Some(_) => self.unchecked(Types::ARRAY, INVALID_KEYWORD),
        }
        self.items()?;
        self.contains()
    }

    fn items(&mut self) -> Result<(), String> {
        let knows_prefix = matches!(self.dialect(), Dialect::Draft2020 | Dialect::Unspecified);
        let mut first = if knows_prefix { self.list("prefixItems")? } else { None };
        let mut rest = match self.keyword("items") {
            Some(Value::Array(_)) => None,
            _ => self.single("items")?,
        };
        if self.keyword("items").is_some_and(Value::is_array) {
            if self.dialect() == Dialect::Draft2020 || first.is_some() {
                self.unchecked(Types::ARRAY, INVALID_KEYWORD);
            } else {
                first = self.list("items")?;
                rest = self.single("additionalItems")?;
            }
        }
        let first = first.unwrap_or_default();
        if !first.is_empty() || rest.is_some() {
            self.add(Rule::Items { first, rest });
        }
        Ok(())
    }

    fn contains(&mut self) -> Result<(), String> {
        let Some(item) = self.single("contains")? else { return Ok(()) };
        let counts = self.dialect() != Dialect::Draft07;
        let limit = |name: &str| self.keyword(name).filter(|_| counts).map(non_negative_integer);
        match (limit("minContains").unwrap_or(Some(1)), limit("maxContains")) {
            (Some(min), None) => self.add(Rule::Contains { item, min, max: None }),
            (Some(min), Some(Some(max))) => self.add(Rule::Contains { item, min, max: Some(max) }),
            // If a limit is malformed, the items cannot be checked.
            _ => self.unchecked(Types::ARRAY, INVALID_KEYWORD),
        }
        Ok(())
    }

    fn count(&mut self, name: &str, types: Types, rule: fn(u64) -> Rule) {
        match self.keyword(name).map(non_negative_integer) {
            Some(Some(count)) => self.add(rule(count)),
            Some(None) => self.unchecked(types, INVALID_KEYWORD),
            None => {}
        }
    }
}

/// Returns a list of strings, or `None` for anything else.
fn names(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Returns a non-negative integer. `2.0` counts as one.
fn non_negative_integer(value: &Value) -> Option<u64> {
    let Value::Number(number) = value else { return None };
    let from_float = || number.as_f64().filter(|it| it.fract() == 0.0 && (0.0..1e15).contains(it));
    number.as_u64().or_else(|| from_float().map(|it| it as u64))
}
