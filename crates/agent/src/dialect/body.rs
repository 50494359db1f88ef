//! Writes the JSON object of a request, key by key.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Map, Value};

/// Request body under construction. Keys of `model.extra` are added last and never replace ours.
pub(super) struct BodyWriter {
    out: Vec<u8>,
    extra: Map<String, Value>,
}

impl BodyWriter {
    pub(super) fn new(extra: &Map<String, Value>) -> BodyWriter {
        BodyWriter { out: vec![b'{'], extra: extra.clone() }
    }

    /// Writes a key.
    pub(super) fn put(&mut self, key: &str, value: &impl Serialize) {
        self.extra.shift_remove(key);
        self.write(key, value);
    }

    /// Writes a key if it has a value.
    pub(super) fn put_some(&mut self, key: &str, value: &Option<impl Serialize>) {
        if let Some(value) = value {
            self.put(key, value);
        }
    }

    /// Writes an object if it is not empty, together with the keys that `model.extra` adds to it.
    pub(super) fn put_object(&mut self, key: &str, mut object: Map<String, Value>) {
        if let Some(Value::Object(extra)) = self.extra.shift_remove(key) {
            for (name, value) in extra {
                object.entry(name).or_insert(value);
            }
        }
        if !object.is_empty() {
            self.write(key, &object);
        }
    }

    pub(super) fn finish(mut self) -> Bytes {
        for (key, value) in std::mem::take(&mut self.extra) {
            self.write(&key, &value);
        }
        self.out.push(b'}');
        Bytes::from(self.out)
    }

    fn write(&mut self, key: &str, value: &impl Serialize) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        append(&mut self.out, key);
        self.out.push(b':');
        append(&mut self.out, value);
    }
}

/// Appends a value as JSON. Our values have string keys and a `Vec` never fails to write, so an error cannot occur.
fn append<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let begin = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(begin);
        out.extend_from_slice(b"null");
    }
}

/// Builds an object from the options that are set.
pub(super) fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}
