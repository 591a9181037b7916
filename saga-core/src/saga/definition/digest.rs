//! What must not change under one version of a definition.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::machine::Shape;

/// The digest of a shape: what must not change under one version of a definition.
///
/// The rule is versioned by the text in front, so that a later rule is another digest and not a silent mismatch.
pub(in crate::saga) fn digest(shape: &Shape) -> [u8; 32] {
    #[derive(Serialize)]
    struct Digested<'a> {
        rule: &'static str,
        shape: &'a Shape,
    }
    let digested = Digested { rule: "saga-shape-1", shape };
    // Names and enums always encode, so the bytes are never the empty default.
    Sha256::digest(serde_json::to_vec(&digested).unwrap_or_default()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Effect, StepShape, UndoShape};

    /// Sagas that are under way carry the digest, so what it is made of never changes under one rule.
    #[test]
    fn the_digest_is_of_this_text() {
        let check = |effect, undo, pivot, text: &str| {
            let shape = Shape { steps: vec![StepShape::new("charge-card", effect, undo)], pivot };
            let expected: [u8; 32] = Sha256::digest(text).into();
            assert_eq!(digest(&shape), expected, "{text}");
        };
        check(
            Effect::Transactional,
            UndoShape::NeedsOutput,
            None,
            r#"{"rule":"saga-shape-1","shape":{"steps":[{"name":"charge-card","effect":"transactional","undo":"needs-output"}],"pivot":null}}"#,
        );
        check(
            Effect::External,
            UndoShape::Missing,
            Some(0),
            r#"{"rule":"saga-shape-1","shape":{"steps":[{"name":"charge-card","effect":"external","undo":"missing"}],"pivot":0}}"#,
        );
        check(
            Effect::Remote { service: "payments" },
            UndoShape::TakesUnknown,
            None,
            r#"{"rule":"saga-shape-1","shape":{"steps":[{"name":"charge-card","effect":{"remote":{"service":"payments"}},"undo":"takes-unknown"}],"pivot":null}}"#,
        );
    }
}
