//! What tells one request from another under the same key.

use axum::extract::OriginalUri;
use http::header;
use http::request::Parts;
use sha2::{Digest as _, Sha256};

use super::canonical_json::canonical;

/// The SHA-256 of method, path, query, content type and body. Each part is preceded by its length, so that no two requests
/// have the same parts together.
pub(super) fn of(parts: &Parts, body: &[u8], canonical_json: bool) -> [u8; 32] {
    // The path as the client sent it: a nested router sees only the rest.
    let uri = parts.extensions.get::<OriginalUri>().map_or(&parts.uri, |original| &original.0);
    let content_type = parts.headers.get(header::CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
    let canonical = if canonical_json && is_json(content_type) { canonical(body) } else { None };
    let mut hash = Sha256::new_with_prefix("request-1");
    let query = uri.query().map_or(String::new(), |query| format!("?{query}"));
    let all = [parts.method.as_str().as_bytes(), uri.path().as_bytes(), query.as_bytes(), content_type];
    for part in all.into_iter().chain([canonical.as_deref().map_or(body, str::as_bytes)]) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn is_json(content_type: &[u8]) -> bool {
    let text = String::from_utf8_lossy(content_type).to_ascii_lowercase();
    let media_type = text.split(';').next().unwrap_or_default().trim();
    media_type == "application/json" || (media_type.starts_with("application/") && media_type.ends_with("+json"))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn of_request(method: &str, uri: &str, content_type: &str, body: &str, canonical: bool) -> [u8; 32] {
        let request = Request::builder().method(method).uri(uri).header("content-type", content_type).body(()).unwrap();
        of(&request.into_parts().0, body.as_bytes(), canonical)
    }

    #[test]
    fn each_part_of_a_request_counts() {
        let first = of_request("POST", "/a?x=1", "application/json", "{}", false);
        assert_eq!(first, of_request("POST", "/a?x=1", "application/json", "{}", false));
        for other in [
            of_request("PATCH", "/a?x=1", "application/json", "{}", false),
            of_request("POST", "/b?x=1", "application/json", "{}", false),
            of_request("POST", "/a?x=2", "application/json", "{}", false),
            of_request("POST", "/a", "application/json", "{}", false),
            of_request("POST", "/a?x=1", "text/plain", "{}", false),
            of_request("POST", "/a?x=1", "application/json", "{ }", false),
        ] {
            assert_ne!(first, other);
        }
        assert_ne!(of_request("POST", "/a?", "t", "", false), of_request("POST", "/a", "t", "", false));
    }

    #[test]
    fn json_is_compared_by_its_content_if_that_is_wanted() {
        let json = |body| of_request("POST", "/a", "application/json; charset=utf-8", body, true);
        assert_eq!(json(r#"{"a": [1, {"b": null}], "c": "x"}"#), json(r#"{"c":"x","a":[1,{"b":null}]}"#));
        assert_ne!(json(r#"{"a": 1}"#), json(r#"{"a": 2}"#));
        assert_ne!(json(r#"[["a"],[]]"#), json(r#"[["a",[]]]"#));
        assert_ne!(json("{"), json("{ "));
        // What a parser may read as the same.
        assert_ne!(json("[9007199254740993.0]"), json("[9007199254740992.0]"));
        assert_ne!(json(r#"{"a": 1, "a": 2}"#), json(r#"{"a": 2}"#));
        let text = |body| of_request("POST", "/a", "text/plain", body, true);
        assert_ne!(text("{}"), text("{ }"));
    }
}
