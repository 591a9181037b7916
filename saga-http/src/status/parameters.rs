//! The query parameters of a route, each given once at most and none that the route does not have.

use std::collections::BTreeMap;

use axum::extract::Query;
use axum::http::StatusCode;
use axum::http::request::Parts;

use crate::Problem;

/// How many entries a page has if the client does not say.
const LIMIT_DEFAULT: usize = 100;

/// The most entries of a page.
const LIMIT_MAX: usize = 500;

/// The query parameters of a request.
pub(super) struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Reads the parameters of a route that has these.
    pub(super) fn of(parts: &Parts, known: &[&str]) -> Result<Self, Problem> {
        let unreadable = |error| refused(format!("the query cannot be read: {error}"));
        let Query(pairs): Query<Vec<(String, String)>> = Query::try_from_uri(&parts.uri).map_err(unreadable)?;
        let mut read = BTreeMap::new();
        for (name, value) in pairs {
            if !known.contains(&name.as_str()) {
                return Err(refused(format!("`{name}` is no parameter of this route; {}", listed(known))));
            }
            if read.insert(name.clone(), value).is_some() {
                return Err(refused(format!("`{name}` is given more than once; send one")));
            }
        }
        Ok(Self(read))
    }

    /// The text of a parameter.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// One of the values that the parameter may have.
    pub(super) fn one_of<T>(
        &self,
        name: &str,
        values: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let value = read(text).ok_or_else(|| refused(format!("`{name}` is `{text}`; it is one of {values}")))?;
        Ok(Some(value))
    }

    /// The parameter `after`: the page begins behind the entry of this id.
    pub(super) fn after(&self) -> Result<Option<i64>, Problem> {
        let Some(text) = self.text("after") else { return Ok(None) };
        let wrong = |_| refused(format!("`after` is `{text}`; it is the `next` of the page before"));
        text.parse().map(Some).map_err(wrong)
    }

    /// The parameter `limit`: how many entries the page has at most.
    pub(super) fn limit(&self) -> Result<usize, Problem> {
        let Some(text) = self.text("limit") else { return Ok(LIMIT_DEFAULT) };
        let limit = text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
        limit.ok_or_else(|| refused(format!("`limit` is `{text}`; it is a number from 1 to {LIMIT_MAX}")))
    }
}

fn listed(known: &[&str]) -> String {
    if known.is_empty() {
        return "it has none".to_owned();
    }
    format!("it has `{}`", known.join("`, `"))
}

fn refused(detail: String) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, detail)
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn read(uri: &str) -> Result<Parameters, Problem> {
        let (parts, ()) = Request::builder().uri(uri).body(()).unwrap().into_parts();
        Parameters::of(&parts, &["status", "after", "limit"])
    }

    #[test]
    fn each_mistake_is_named() {
        let said = |uri: &str| match read(uri) {
            Err(problem) => problem.to_string(),
            Ok(read) => match (read.after(), read.limit()) {
                (Err(problem), _) | (_, Err(problem)) => problem.to_string(),
                _ => String::new(),
            },
        };
        let check = |uri: &str, expected: &str| assert!(said(uri).contains(expected), "{uri}: {}", said(uri));
        check("/sagas?state=running", "`state` is no parameter of this route; it has `status`, `after`, `limit`");
        check("/sagas?status=a&status=b", "`status` is given more than once");
        check("/sagas?after=x", "`after` is `x`");
        check("/sagas?after=99999999999999999999", "`after` is");
        check("/sagas?limit=0", "`limit` is `0`; it is a number from 1 to 500");
        check("/sagas?limit=501", "`limit` is `501`");
        check("/sagas?limit=-1", "`limit` is `-1`");
        assert_eq!(said("/sagas?status=running&after=7&limit=500"), "");
        assert_eq!(said("/sagas"), "");
    }

    #[test]
    fn what_is_escaped_is_read() {
        assert_eq!(read("/sagas?status=a%20b%26c").unwrap().text("status"), Some("a b&c"));
    }
}
