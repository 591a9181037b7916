//! The body of a message: what SQS does not carry as it is, is carried as base64.

use aws_smithy_types::base64;

use crate::text::{is_carried, short};

/// How a payload stands in a body, as the attribute says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// As it is.
    Text,
    Base64,
    /// There is none: SQS has no empty bodies.
    Empty,
}

/// What stands for an empty body.
const NOTHING: &str = "-";

impl Encoding {
    /// The value of the attribute; none for text.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Text => None,
            Self::Base64 => Some("base64"),
            Self::Empty => Some("empty"),
        }
    }
}

/// The body of a payload.
pub(crate) fn encode(payload: Vec<u8>) -> (Encoding, String) {
    if payload.is_empty() {
        return (Encoding::Empty, NOTHING.to_owned());
    }
    match String::from_utf8(payload) {
        Ok(text) if text.chars().all(is_carried) => (Encoding::Text, text),
        Ok(text) => (Encoding::Base64, base64::encode(text)),
        Err(bytes) => (Encoding::Base64, base64::encode(bytes.into_bytes())),
    }
}

/// The payload of a body with this attribute.
///
/// # Errors
/// Says what is wrong.
pub(crate) fn decode(encoding: Option<&str>, body: &str) -> Result<Vec<u8>, String> {
    match encoding {
        None => Ok(body.as_bytes().to_vec()),
        Some("empty") => Ok(Vec::new()),
        Some("base64") => base64::decode(body).map_err(|_| "the body is not base64, and says that it is".to_owned()),
        Some(other) => Err(format!("the body has the encoding {:?}, which is none of base64 and empty", short(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_payload_arrives_as_it_was_sent() {
        for (payload, encoding) in [
            (&b"{\"a\":1}\n\t\r"[..], Encoding::Text),
            ("Größe ✓ \u{10ffff}".as_bytes(), Encoding::Text),
            (b"", Encoding::Empty),
            (b"-", Encoding::Text),
            (b"\0", Encoding::Base64),
            ("\u{ffff}".as_bytes(), Encoding::Base64),
            (&[0xff, 0xfe], Encoding::Base64),
        ] {
            let (chosen, body) = encode(payload.to_vec());
            assert_eq!(chosen, encoding, "{payload:?}");
            assert!(!body.is_empty() && body.chars().all(is_carried), "{body:?}");
            assert_eq!(decode(encoding.name(), &body).as_deref(), Ok(payload));
        }
    }

    #[test]
    fn a_foreign_body_is_refused_with_the_reason() {
        assert!(decode(Some("base64"), "%").unwrap_err().contains("not base64"));
        assert!(decode(Some("gzip"), "x").unwrap_err().contains("\"gzip\""));
    }
}
