//! Reads arbitrary bytes as a recording.
//!
//! A recording that can be read is written in a form that is read as the same recording, and written again to the same
//! bytes. A player answers every recorded call, in order.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wharf_runtime::cassette::{Cassette, CassettePlayer, Exhausted};

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(cassette) = Cassette::parse(text) else { return };
    let text = cassette.to_text();
    let again = Cassette::parse(&text).expect("what was written can be read");
    assert_eq!(again.to_text(), text);
    let player = CassettePlayer::new(again.clone(), Exhausted::Miss);
    for call in &again.calls {
        assert!(player.play(&call.source, &call.tool, &call.arguments).is_ok());
    }
});
