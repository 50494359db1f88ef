//! Converts between UTF-8 and the encoding of a server's pipes.

use bytes::{BufMut, BytesMut};
use encoding_rs::{Decoder, Encoding, UTF_8, UTF_16BE, UTF_16LE};

/// Character encoding, named by a WHATWG label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charset(&'static Encoding);

/// Decodes a server's output to UTF-8, chunk by chunk.
#[derive(Debug)]
pub(crate) struct Transcoder(Option<Decoder>);

impl Charset {
    /// Default encoding.
    pub const UTF_8: Charset = Charset(UTF_8);

    /// Looks up an encoding by label, such as `shift_jis` or `utf-16le`.
    pub fn named(label: &str) -> Option<Charset> {
        Encoding::for_label_no_replacement(label.as_bytes()).map(Charset)
    }

    /// Returns the canonical name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    pub(crate) fn is_utf8(self) -> bool {
        self == Charset::UTF_8
    }

    pub(crate) fn decoder(self) -> Transcoder {
        Transcoder((!self.is_utf8()).then(|| self.0.new_decoder()))
    }

    /// Appends `json` in this encoding. Unmappable characters become `\u` escapes: in JSON they occur only in
    /// strings.
    pub(crate) fn encode(self, json: &[u8], out: &mut BytesMut) {
        let text = String::from_utf8_lossy(json);
        match self.0 {
            wide if wide == UTF_16LE => text.encode_utf16().for_each(|unit| out.put_u16_le(unit)),
            wide if wide == UTF_16BE => text.encode_utf16().for_each(|unit| out.put_u16(unit)),
            _ => self.encode_or_escape(&text, out),
        }
    }

    fn encode_or_escape(self, text: &str, out: &mut BytesMut) {
        let mut units = [0_u16; 2];
        for character in text.chars() {
            let mut utf8 = [0; 4];
            let (bytes, _, unmappable) = self.0.encode(character.encode_utf8(&mut utf8));
            if unmappable {
                for unit in character.encode_utf16(&mut units) {
                    out.put_slice(format!("\\u{unit:04x}").as_bytes());
                }
            } else {
                out.put_slice(&bytes);
            }
        }
    }
}

impl Transcoder {
    /// Returns whether the input is UTF-8 and needs no decoding.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Appends `chunk` as UTF-8; an incomplete character is kept until its remaining bytes arrive.
    pub(crate) fn decode(&mut self, chunk: &[u8], out: &mut BytesMut) {
        let Some(decoder) = &mut self.0 else {
            return out.put_slice(chunk);
        };
        let mut text =
            String::with_capacity(decoder.max_utf8_buffer_length(chunk.len()).unwrap_or(chunk.len() * 3));
        let _ = decoder.decode_to_string(chunk, &mut text, false);
        out.put_slice(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_survives_the_round_trip() {
        for (label, text) in [
            ("shift_jis", r#"{"t":"日本語"}"#),
            ("windows-1252", r#"{"t":"déjà"}"#),
            ("utf-16le", r#"{"t":"日本 déjà"}"#),
            ("utf-16be", r#"{"t":"x"}"#),
            ("gb18030", r#"{"t":"中文 🦀"}"#),
        ] {
            let charset = Charset::named(label).unwrap();
            let (mut encoded, mut decoded) = (BytesMut::new(), BytesMut::new());
            charset.encode(text.as_bytes(), &mut encoded);
            let mut decoder = charset.decoder();
            encoded.chunks(1).for_each(|byte| decoder.decode(byte, &mut decoded));
            assert_eq!(decoded, text.as_bytes(), "{label}");
        }
    }

    #[test]
    fn unmappable_characters_are_escaped() {
        let mut out = BytesMut::new();
        Charset::named("latin1").unwrap().encode("\"é🦀\"".as_bytes(), &mut out);
        assert_eq!(&out[..], b"\"\xe9\\ud83e\\udd80\"");
    }
}
