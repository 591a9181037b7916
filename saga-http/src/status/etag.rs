//! The revision of a saga as an entity tag.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};

use crate::Problem;

/// The tag of a revision. It is weak: what has no revision of its own, such as the number of failed attempts, may differ.
pub(super) fn etag(revision: u64) -> HeaderValue {
    // A number in quotes is a legal value.
    HeaderValue::try_from(format!("W/\"{revision}\"")).unwrap_or(HeaderValue::from_static("W/\"\""))
}

/// The header `If-None-Match`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum IfNoneMatch {
    Any,
    Tags(Vec<String>),
}

impl IfNoneMatch {
    /// Reads all headers of that name; `None` if there is none.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let mut tags = Vec::new();
        let mut values = headers.get_all(header::IF_NONE_MATCH).iter().peekable();
        if values.peek().is_none() {
            return Ok(None);
        }
        for value in values {
            let refused = || {
                let detail = "If-None-Match is not a list of entity tags; send the ETag of the last answer as it is, for \
                              example W/\"12\"";
                Problem::new(StatusCode::BAD_REQUEST, detail)
            };
            let text = value.to_str().map_err(|_| refused())?.trim();
            if text == "*" {
                return Ok(Some(Self::Any));
            }
            tags.append(&mut read_tags(text).ok_or_else(refused)?);
        }
        Ok(Some(Self::Tags(tags)))
    }

    /// Whether the client knows this revision.
    pub(super) fn has(&self, revision: u64) -> bool {
        match self {
            Self::Any => true,
            Self::Tags(tags) => tags.iter().any(|tag| *tag == revision.to_string()),
        }
    }
}

/// What is between the quotes of each tag.
fn read_tags(mut text: &str) -> Option<Vec<String>> {
    let mut tags = Vec::new();
    loop {
        let quoted = text.strip_prefix("W/").unwrap_or(text).strip_prefix('"')?;
        let (tag, after) = quoted.split_once('"')?;
        tags.push(tag.to_owned());
        let after = after.trim_start();
        if after.is_empty() {
            return Some(tags);
        }
        text = after.strip_prefix(',')?.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&str]) -> Result<Option<IfNoneMatch>, Problem> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::IF_NONE_MATCH, HeaderValue::from_str(value).unwrap());
        }
        IfNoneMatch::of(&headers)
    }

    #[test]
    fn tags_are_compared_weakly() {
        let knows = |values: &[&str], revision| read(values).unwrap().unwrap().has(revision);
        assert!(knows(&["W/\"12\""], 12));
        assert!(knows(&["\"12\""], 12));
        assert!(knows(&["\"a,b\", W/\"12\""], 12));
        assert!(knows(&["\"11\"", "\"12\""], 12));
        assert!(knows(&["*"], 12));
        assert!(!knows(&["\"12-gzip\""], 12));
        assert!(!knows(&["\"012\""], 12));
        assert_eq!(read(&[]), Ok(None));
    }

    #[test]
    fn what_is_no_tag_is_refused() {
        for value in ["12", "\"12", "W/12", "\"12\" \"13\"", "\"12\",", "", "\"12\"x"] {
            assert!(read(&[value]).is_err(), "{value}");
        }
    }
}
