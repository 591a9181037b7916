//! The parts of an address such as `postgres://user:password@host:port/path`.

use crate::error::Error;

/// An address, in its parts. Those that are not there are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url<'a> {
    pub(crate) scheme: &'a str,
    pub(crate) user: &'a str,
    pub(crate) password: &'a str,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    /// All behind the port: the path and the query.
    pub(crate) rest: &'a str,
}

impl<'a> Url<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, Error> {
        Self::parts(text).ok_or(Error::Invalid {
            value: without_password(text),
            expected: "address such as postgres://user:password@127.0.0.1:5432/name, with a port",
        })
    }

    /// The same address at another host and port.
    pub(crate) fn at(&self, host: &str, port: u16) -> String {
        let Self { scheme, user, password, rest, .. } = self;
        let access = match (user.is_empty(), password.is_empty()) {
            (true, _) => String::new(),
            (false, true) => format!("{user}@"),
            (false, false) => format!("{user}:{password}@"),
        };
        format!("{scheme}://{access}{host}:{port}{rest}")
    }

    /// The same address as another user.
    pub(crate) fn with_user(&self, user: &str, password: &str) -> String {
        Url { user, password, ..self.clone() }.at(self.host, self.port)
    }

    /// The same address with another path.
    pub(crate) fn with_path(&self, path: &str) -> String {
        let query = self.rest.find('?').map_or("", |at| &self.rest[at..]);
        Url { rest: &format!("/{path}{query}"), ..self.clone() }.at(self.host, self.port)
    }

    fn parts(text: &'a str) -> Option<Self> {
        let (scheme, behind) = text.split_once("://")?;
        let end = behind.find(['/', '?']).unwrap_or(behind.len());
        let (authority, rest) = behind.split_at(end);
        let (access, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = access.split_once(':').unwrap_or((access, ""));
        let (host, port) = place.rsplit_once(':')?;
        Some(Self { scheme, user, password, host, port: port.parse().ok()?, rest })
    }
}

/// An address as it may be shown, also one that cannot be read: without its user and password, and without its parameters.
pub fn without_password(text: &str) -> String {
    let (place, hidden) = text.split_once('?').map_or((text, ""), |(place, _)| (place, "?.."));
    let shown = match (place.find("://"), place.rfind('@')) {
        (Some(scheme), Some(at)) if scheme + 3 < at => format!("{}..{}", &place[..scheme + 3], &place[at..]),
        (_, Some(at)) => format!("..{}", &place[at..]),
        (_, None) => place.to_owned(),
    };
    shown + hidden
}

/// Bytes that have a meaning in addresses, escaped.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => escaped.push(char::from(byte)),
            other => escaped.extend(['%', hex(other >> 4), hex(other & 15)]),
        }
    }
    escaped
}

fn hex(digit: u8) -> char {
    char::from_digit(u32::from(digit), 16).unwrap_or('0').to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::{Url, escaped};

    #[test]
    fn an_address_is_read_and_moved() {
        let text = "amqp://guest:p%40ss@127.0.0.1:5672/%2f?heartbeat=5";
        let url = Url::parse(text).expect("an address");
        assert_eq!((url.user, url.password, url.host, url.port), ("guest", "p%40ss", "127.0.0.1", 5672));
        assert_eq!(url.at("localhost", 1), "amqp://guest:p%40ss@localhost:1/%2f?heartbeat=5");
        assert_eq!(url.with_path("orders"), "amqp://guest:p%40ss@127.0.0.1:5672/orders?heartbeat=5");
        let bare = Url::parse("http://127.0.0.1:80").expect("an address");
        assert_eq!(bare.at("h", 2), "http://h:2");
    }

    #[test]
    fn a_refused_address_shows_no_password() {
        for (text, shown) in [
            ("postgres://me:secret@host/name", "postgres://..@host/name"),
            ("postgres://host/name?password=secret", "postgres://host/name?.."),
            ("amqp:/me:secret@host:1", "..@host:1"),
            ("me:secret@host:1", "..@host:1"),
        ] {
            let error = Url::parse(text).expect_err("it has no port, or no scheme").to_string();
            assert!(error.contains(shown) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_name_with_a_meaning_is_escaped() {
        assert_eq!(escaped("/"), "%2F");
        assert_eq!(escaped("a b-c"), "a%20b-c");
    }
}
