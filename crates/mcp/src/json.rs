//! Raw JSON: the text of one value, validated once and forwarded without decoding.
//!
//! A [`Raw`] is usually a slice of the frame it arrived in, so a small one keeps the whole frame in memory. Use
//! [`Raw::detached`] to copy a value that is kept for long.

pub(crate) mod scan;
pub(crate) mod splice;
pub(crate) mod surrogates;

use crate::id_scan;
use bytes::{BufMut, Bytes, BytesMut};
use scan::{Trust, scan_object};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, MapAccess, Visitor},
    ser::Error as _,
};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// Maximum nesting depth of a message; the JSON library refuses to decode deeper values.
pub const DEPTH_LIMIT: usize = 127;

/// Members of an object in order, with raw values.
#[derive(Debug, Default)]
pub struct Members<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

/// Text of one JSON value.
#[derive(Clone, PartialEq, Eq)]
pub struct Raw(Bytes);

impl Raw {
    /// Validates that `text` is one JSON value.
    pub fn parse(text: impl Into<Bytes>) -> Result<Raw, serde_json::Error> {
        let text = text.into();
        let value: &RawValue = serde_json::from_slice(&text)?;
        Ok(Raw::within(&text, value))
    }

    /// Serializes `value` as JSON.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Raw, serde_json::Error> {
        serde_json::to_vec(value).map(|text| Raw(text.into()))
    }

    /// Builds an object from raw members, in this order.
    pub fn object<'a>(members: impl IntoIterator<Item = (&'a str, Raw)>) -> Raw {
        let members: Vec<(&str, Raw)> = members.into_iter().collect();
        splice::object(members.iter().map(|(name, value)| (*name, value.as_bytes())))
    }

    /// Builds an array from raw values.
    pub fn list(items: impl IntoIterator<Item = Raw>) -> Raw {
        let mut out = BytesMut::new();
        out.put_u8(b'[');
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                out.put_u8(b',');
            }
            out.put_slice(item.as_bytes());
        }
        out.put_u8(b']');
        Raw::spliced(out)
    }

    /// Returns `null`.
    pub fn null() -> Raw {
        Raw(Bytes::from_static(b"null"))
    }

    /// Returns the empty object.
    pub fn empty_object() -> Raw {
        Raw(Bytes::from_static(b"{}"))
    }

    /// Returns the slice of `frame` that `value` was borrowed from.
    pub(crate) fn within(frame: &Bytes, value: &RawValue) -> Raw {
        Raw(frame.slice_ref(value.get().as_bytes()))
    }

    /// Returns this slice of a frame, which is one value.
    pub(crate) fn slice_of(frame: &Bytes, value: &str) -> Raw {
        Raw(frame.slice_ref(value.as_bytes()))
    }

    /// Wraps text that this crate assembled from validated values.
    pub(crate) fn spliced(text: impl Into<Bytes>) -> Raw {
        let text = text.into();
        debug_assert!(serde_json::from_slice::<&RawValue>(&text).is_ok(), "spliced text is not JSON");
        Raw(text)
    }

    /// Returns the text as bytes, which are always UTF-8.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// Decodes the value, borrowing from the text where `T` can.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        // The text is UTF-8, and checking that once is cheaper than having the JSON library check each string of it.
        serde_json::from_str(self.as_str())
    }

    /// Decodes the value; returns the default of `T` if the shape differs.
    pub fn decode_or_default<T: DeserializeOwned + Default>(&self) -> T {
        self.decode().unwrap_or_default()
    }

    /// Returns the members of an object; empty for other values.
    pub fn members(&self) -> Members<'_> {
        self.decode().unwrap_or_default()
    }

    /// Calls `each` with every member of an object, in order. Does nothing for other values.
    pub(crate) fn each_member<'a>(&'a self, mut each: impl FnMut(&str, &'a [u8])) {
        if !self.is_object() {
            return;
        }
        // Only an escape in a name stops a scan, and then `each` must not have seen the names before it.
        if memchr::memchr(b'\\', &self.0).is_some() {
            self.members().0.iter().for_each(|(name, value)| each(name, value.get().as_bytes()));
            return;
        }
        // The text is UTF-8, and a name begins and ends between characters.
        let _ = scan_object(&self.0, Trust::Valid, |name, value| {
            each(std::str::from_utf8(name).unwrap_or_default(), value);
        });
    }

    /// Returns a member of an object; `null` counts as absent.
    pub fn member(&self, name: &str) -> Option<Raw> {
        if !self.is_object() {
            return None;
        }
        let mut found = None;
        let scanned = scan_object(&self.0, Trust::Valid, |key, value| {
            if key == name.as_bytes() {
                found = Some(value);
            }
        });
        if scanned.is_some() {
            return found.filter(|it| *it != b"null").map(|it| Raw(self.0.slice_ref(it)));
        }
        let mut found = serde_json::Deserializer::from_str(self.as_str());
        let value = found.deserialize_map(Find(name)).ok().flatten().filter(|value| value.get() != "null")?;
        Some(Raw::within(&self.0, value))
    }

    /// Returns several members in one pass; `null` counts as absent.
    pub fn pick<const N: usize>(&self, names: [&str; N]) -> [Option<Raw>; N] {
        let mut found = [None; N];
        let scanned = scan_object(&self.0, Trust::Valid, |key, value| {
            if let Some(place) = names.iter().position(|name| name.as_bytes() == key) {
                found[place] = Some(value);
            }
        });
        if scanned.is_some() {
            return found.map(|value| Some(Raw(self.0.slice_ref(value.filter(|it| *it != b"null")?))));
        }
        let mut reader = serde_json::Deserializer::from_str(self.as_str());
        let found = reader.deserialize_map(Pick(names)).unwrap_or([None; N]);
        found.map(|value| Some(Raw::within(&self.0, value.filter(|it| it.get() != "null")?)))
    }

    /// Returns the object with a member set, replacing an existing one.
    #[must_use]
    pub fn with(&self, name: &str, value: &Raw) -> Raw {
        splice::replace(self, name, value.as_bytes())
    }

    /// Returns the object with members in front of its own. The object must not have them yet.
    #[must_use]
    pub fn prepend<'a>(&self, members: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Raw {
        splice::prepend(self, members)
    }

    /// Returns the object without these members.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Raw {
        let members = self.members();
        let others = members.0.iter().filter(|(key, _)| !names.contains(&&**key));
        splice::object(others.map(|(key, value)| (&**key, value.get().as_bytes())))
    }

    /// Copies the value into its own memory.
    pub fn detached(&self) -> Raw {
        Raw(Bytes::copy_from_slice(&self.0))
    }

    /// Returns whether the text contains an escaped lone surrogate, which makes it impossible to decode.
    pub fn has_lone_surrogate(&self) -> bool {
        surrogates::has_lone(&self.0)
    }

    /// Returns whether it nests deeper than [`DEPTH_LIMIT`], which makes it impossible to decode.
    pub fn is_too_deep(&self) -> bool {
        id_scan::deeper_than(&self.0, DEPTH_LIMIT)
    }

    /// Returns whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// Returns the text as shared bytes.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl<T: Into<Raw>> From<Option<T>> for Raw {
    fn from(value: Option<T>) -> Raw {
        value.map_or_else(Raw::null, Into::into)
    }
}

impl From<serde_json::Value> for Raw {
    fn from(value: serde_json::Value) -> Raw {
        Raw(value.to_string().into())
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Raw {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = self.decode().map_err(S::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Raw(String::from(Box::<str>::from(value)).into()))
    }
}

impl<'a> Members<'a> {
    /// Returns the last member of this name; like other JSON libraries, the last duplicate wins.
    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'a>, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Key(key), value)) = map.next_entry()? {
                    members.push((key, value));
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Collect).map(Members)
    }
}

/// Visitor that finds one member without collecting the others. The last duplicate wins.
struct Find<'n>(&'n str);

impl<'de> Visitor<'de> for Find<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some((Key(key), value)) = map.next_entry::<_, &RawValue>()? {
            if key == self.0 {
                found = Some(value);
            }
        }
        Ok(found)
    }
}

/// Visitor that finds several members without collecting the others.
struct Pick<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> Visitor<'de> for Pick<'_, N> {
    type Value = [Option<&'de RawValue>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        while let Some((Key(key), value)) = map.next_entry::<_, &RawValue>()? {
            if let Some(place) = self.0.iter().position(|name| *name == key) {
                found[place] = Some(value);
            }
        }
        Ok(found)
    }
}

/// Member name, borrowed unless it contains escapes.
#[derive(Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
