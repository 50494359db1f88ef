//! Compiles a schema into nodes.
//!
//! Subschemas are processed from a work list instead of recursively, and a subschema that is referred to many times
//! is compiled once. A keyword that is rare or malformed is skipped. Only a clear mistake, such as a `type` that is a
//! number, is an error.

mod keywords;

use super::{
    messages,
    node::{Id, Rule, SchemaNode, Types},
    pattern::Pattern,
    references::{self, Dialect},
};
use serde_json::{Map, Value};
use std::collections::HashMap;
use wharf_mcp::Raw;

/// Maximum size of a schema, in bytes.
const MAX_SCHEMA_BYTES: usize = 1024 * 1024;
/// Maximum number of subschemas.
const MAX_NODES: usize = 20_000;
/// Maximum number of patterns that are compiled. Compiling them is the expensive part.
const MAX_PATTERNS: usize = 100;

pub(super) const INVALID_KEYWORD: &str = "the schema has a keyword with an unsupported value";
const UNSUPPORTED_DIALECT: &str = "the schema uses an unsupported dialect";
const UNRESOLVED_REFERENCE: &str = "the schema has a `$ref` that is not local or has no target";
const UNSUPPORTED_KEYWORD: &str = "the schema has a keyword that is not checked";

/// Keywords that are not checked, with the types that they apply to.
const UNSUPPORTED_KEYWORDS: [(&str, Types); 10] = [
    ("$dynamicRef", Types::ANY),
    ("$recursiveRef", Types::ANY),
    ("contains", Types::ARRAY),
    ("dependencies", Types::OBJECT),
    ("dependentRequired", Types::OBJECT),
    ("dependentSchemas", Types::OBJECT),
    ("if", Types::ANY),
    ("prefixItems", Types::ARRAY),
    ("unevaluatedItems", Types::ARRAY),
    ("unevaluatedProperties", Types::OBJECT),
];

/// Compiles a schema. The error tells why it cannot be used.
pub(super) fn schema(raw: &Raw) -> Result<Vec<SchemaNode>, String> {
    let length = raw.as_bytes().len();
    if !raw.is_object() {
        return Err("the schema is not an object".to_owned());
    }
    if length > MAX_SCHEMA_BYTES {
        return Err(format!("the schema is too large: {length} bytes (limit {MAX_SCHEMA_BYTES})"));
    }
    let root: Value = raw.decode().map_err(|error| match error.to_string() {
        text if text.starts_with("recursion limit") => "the schema is nested too deeply".to_owned(),
        _ => "the schema has a number that is too large".to_owned(),
    })?;
    Compiler::new(&root).run()
}

struct Compiler<'v> {
    root: &'v Value,
    dialect: Dialect,
    ids: HashMap<*const Value, Id>,
    to_do: Vec<(Id, &'v Value)>,
    nodes: Vec<SchemaNode>,
    patterns: usize,
}

/// The schema being compiled, with the rules found so far.
struct NodeBuilder<'c, 'v> {
    compiler: &'c mut Compiler<'v>,
    value: &'v Value,
    schema: &'v Map<String, Value>,
    node: SchemaNode,
}

impl<'v> Compiler<'v> {
    fn new(root: &'v Value) -> Compiler<'v> {
        let (dialect, ids) = (Dialect::of(root), HashMap::new());
        Compiler { root, dialect, ids, to_do: Vec::new(), nodes: Vec::new(), patterns: 0 }
    }

    fn run(mut self) -> Result<Vec<SchemaNode>, String> {
        self.id(self.root)?;
        while let Some((Id(at), value)) = self.to_do.pop() {
            self.nodes[at as usize] = self.node(value)?;
        }
        Ok(self.nodes)
    }

    /// Returns the index of a subschema, and adds it to the work list if it is new.
    fn id(&mut self, value: &'v Value) -> Result<Id, String> {
        if let Some(id) = self.ids.get(&std::ptr::from_ref(value)) {
            return Ok(*id);
        }
        if self.nodes.len() >= MAX_NODES {
            return Err(format!("the schema is too large: it has more than {MAX_NODES} parts"));
        }
        let id = u32::try_from(self.nodes.len()).map(Id).map_err(|error| error.to_string())?;
        self.ids.insert(value, id);
        self.nodes.push(SchemaNode::default());
        self.to_do.push((id, value));
        Ok(id)
    }

    fn node(&mut self, value: &'v Value) -> Result<SchemaNode, String> {
        let schema = match value {
            Value::Bool(true) => return Ok(SchemaNode::default()),
            Value::Bool(false) => return Ok(SchemaNode { rules: vec![Rule::Never], nullable: false }),
            Value::Object(schema) => schema,
            other => {
                return Err(format!("the schema has {} where a schema is expected", messages::shown(other)));
            }
        };
        let mut builder = NodeBuilder { compiler: self, value, schema, node: SchemaNode::default() };
        builder.read()?;
        Ok(builder.node)
    }

    fn pattern(&mut self, text: &str) -> Pattern {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS { Pattern::unchecked(text) } else { Pattern::new(text) }
    }
}

impl<'v> NodeBuilder<'_, 'v> {
    fn read(&mut self) -> Result<(), String> {
        let dialect = self.compiler.dialect;
        let is_other = self.keyword("$schema").is_some() && Dialect::of(self.value) != dialect;
        if dialect == Dialect::Unsupported || is_other {
            self.unchecked(Types::ANY, UNSUPPORTED_DIALECT);
            return Ok(());
        }
        if references::has_own_base(self.value) && !std::ptr::eq(self.value, self.compiler.root) {
            self.unchecked(Types::ANY, UNSUPPORTED_KEYWORD);
            return Ok(());
        }
        // Before 2019-09, `$ref` disables all keywords beside it.
        if dialect == Dialect::Draft07 && self.schema.contains_key("$ref") {
            return self.reference();
        }
        // Cheap rules come first, because they may save the expensive ones.
        self.node.nullable = self.schema.get("nullable") == Some(&Value::Bool(true));
        self.types()?;
        self.values();
        self.numbers();
        self.strings();
        self.objects()?;
        self.arrays()?;
        self.annotations();
        self.choices()?;
        self.reference()
    }

    /// Returns the value of a keyword. Null counts as absent, because some languages serialize an absent list that
    /// way.
    fn keyword(&self, name: &str) -> Option<&'v Value> {
        self.schema.get(name).filter(|value| !value.is_null())
    }

    fn add(&mut self, rule: Rule) {
        self.node.rules.push(rule);
    }

    fn unchecked(&mut self, types: Types, why: &'static str) {
        self.add(Rule::Unchecked(types, why));
    }

    fn id(&mut self, value: &'v Value) -> Result<Id, String> {
        self.compiler.id(value)
    }

    fn single(&mut self, name: &str) -> Result<Option<Id>, String> {
        self.keyword(name).map(|value| self.id(value)).transpose()
    }

    fn list(&mut self, name: &str) -> Result<Option<Vec<Id>>, String> {
        match self.keyword(name) {
            None => Ok(None),
            Some(Value::Array(items)) => {
                items.iter().map(|item| self.id(item)).collect::<Result<_, _>>().map(Some)
            }
            Some(_) => {
                self.unchecked(Types::ANY, INVALID_KEYWORD);
                Ok(None)
            }
        }
    }

    /// Returns the members of an object keyword. An empty array counts as absent, because some languages serialize an
    /// empty map that way.
    fn map(&mut self, name: &str) -> Result<Option<&'v Map<String, Value>>, String> {
        match self.keyword(name) {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(members)),
            Some(Value::Array(items)) if items.is_empty() => Ok(None),
            Some(other) => Err(format!(
                "`{name}` is {} in the schema, but an object is expected",
                messages::shown(other)
            )),
        }
    }

    fn reference(&mut self) -> Result<(), String> {
        match self.keyword("$ref") {
            Some(Value::String(reference)) => match references::resolve(self.compiler.root, reference) {
                Some(target) => {
                    let id = self.id(target)?;
                    self.add(Rule::Ref(id));
                }
                None => self.unchecked(Types::ANY, UNRESOLVED_REFERENCE),
            },
            Some(_) => self.unchecked(Types::ANY, INVALID_KEYWORD),
            None => {}
        }
        Ok(())
    }

    fn choices(&mut self) -> Result<(), String> {
        if let Some(all) = self.list("allOf")? {
            self.add(Rule::All(all));
        }
        if let Some(any) = self.list("anyOf")? {
            self.add(Rule::Any(any));
        }
        if let Some(one) = self.list("oneOf")? {
            self.add(Rule::One(one));
        }
        if let Some(not) = self.single("not")? {
            self.add(Rule::Not(not));
        }
        Ok(())
    }

    fn annotations(&mut self) {
        if self.keyword("format").is_some() {
            self.add(Rule::Annotated(Types::STRING.with(Types::NUMBER)));
        }
        for (name, types) in UNSUPPORTED_KEYWORDS {
            if self.keyword(name).is_some() {
                self.unchecked(types, UNSUPPORTED_KEYWORD);
            }
        }
    }
}
