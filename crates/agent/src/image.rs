//! Checks images before they become part of a conversation. One that the provider refuses would spoil every later request of
//! the conversation.

/// Media types of images that every provider accepts.
const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Maximum length of a media type in an error, in characters.
const MAX_SHOWN_CHARS: usize = 100;

/// Checks that every provider accepts an image of this media type with this data. The error is for people.
pub fn check_image(media_type: &str, base64: &str) -> Result<(), String> {
    if !IMAGE_TYPES.contains(&media_type) {
        let shown: String = media_type.chars().take(MAX_SHOWN_CHARS).collect();
        let accepted = IMAGE_TYPES.join(", ");
        return Err(format!(
            "the model cannot be shown data of the type '{shown}'; the types are {accepted}"
        ));
    }
    match is_base64(base64) {
        true => Ok(()),
        false => {
            Err(format!("the data of an image of the type '{media_type}' has to be base64 with padding"))
        }
    }
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let is_padded = text.len().is_multiple_of(4) && text.len() - digits.len() <= 2;
    let is_digit = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/');
    is_padded && !digits.is_empty() && digits.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_types_and_data_that_every_provider_accepts_pass() {
        for (media_type, base64, is_accepted) in [
            ("image/png", "QUJD", true),
            ("image/jpeg", "QUI=", true),
            ("image/gif", "Q+/=", true),
            ("image/webp", "QQ==", true),
            ("image/svg+xml", "QUJD", false),
            ("image/PNG", "QUJD", false),
            ("text/plain", "QUJD", false),
            ("", "QUJD", false),
            ("image/png", "", false),
            ("image/png", "====", false),
            ("image/png", "Q===", false),
            ("image/png", "QUI", false),
            ("image/png", "QU\nJ", false),
            ("image/png", "QU=D", false),
            ("image/png", "plain text!", false),
        ] {
            let checked = check_image(media_type, base64);
            assert_eq!(checked.is_ok(), is_accepted, "{media_type} {base64:?}: {checked:?}");
        }
        let long = check_image(&"a".repeat(10_000), "QUJD").expect_err("no image");
        assert!(long.len() < 300, "{long}");
        let refused = check_image("image/svg+xml", "QUJD").expect_err("no image");
        assert!(refused.contains("'image/svg+xml'") && refused.contains("image/webp"), "{refused}");
    }
}
