//! A response as it is kept: status, headers, body, and the saga that it tells of.

use axum::body::{Body, Bytes};
use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// The format of what is kept.
const FORMAT: u8 = 1;

pub(super) const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What belongs to one connection or to one client, and not to the response.
const NOT_KEPT: [HeaderName; 6] =
    [header::SET_COOKIE, header::CONNECTION, header::TRANSFER_ENCODING, header::DATE, header::TRAILER, header::UPGRADE];

/// What becomes of a response with this status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is kept, with what the handler wrote.
    Keep,
    /// It is kept, and what the handler wrote is undone.
    KeepRefusal,
    /// Neither is kept.
    Forget,
}

impl Fate {
    pub(super) fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            200..=399 => Self::Keep,
            // The client is to try again, perhaps as another one, or when something else has changed.
            401 | 403 | 404 | 408 | 409 | 425 | 429 => Self::Forget,
            400..=499 => Self::KeepRefusal,
            _ => Self::Forget,
        }
    }
}

/// A response that is kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kept {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The key of the saga that the response tells of.
    pub(super) saga: Option<String>,
}

impl Kept {
    pub(super) fn new(status: StatusCode, headers: &HeaderMap, body: Bytes, saga: Option<String>) -> Self {
        let mut headers = headers.clone();
        for name in NOT_KEPT {
            headers.remove(name);
        }
        Self { status, headers, body, saga }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![FORMAT];
        bytes.extend(self.status.as_u16().to_be_bytes());
        put(&mut bytes, self.saga.as_deref().unwrap_or_default().as_bytes());
        bytes.extend((self.headers.len() as u32).to_be_bytes());
        for (name, value) in &self.headers {
            put(&mut bytes, name.as_str().as_bytes());
            put(&mut bytes, value.as_bytes());
        }
        bytes.extend(&self.body);
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` if it is nothing of that kind.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[FORMAT], bytes) = bytes.split_first_chunk()? else { return None };
        let (status, mut bytes) = bytes.split_first_chunk()?;
        let status = StatusCode::from_u16(u16::from_be_bytes(*status)).ok()?;
        let saga = String::from_utf8(take(&mut bytes)?.to_vec()).ok()?;
        let (count, rest) = bytes.split_first_chunk()?;
        bytes = rest;
        let mut headers = HeaderMap::new();
        for _ in 0..u32::from_be_bytes(*count) {
            let name = HeaderName::from_bytes(take(&mut bytes)?).ok()?;
            headers.append(name, HeaderValue::from_bytes(take(&mut bytes)?).ok()?);
        }
        let saga = Some(saga).filter(|saga| !saga.is_empty());
        Some(Self { status, headers, body: Bytes::copy_from_slice(bytes), saga })
    }

    /// The response again.
    pub(super) fn replay(self) -> Response {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
        response
    }
}

fn put(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u32).to_be_bytes());
    bytes.extend(part);
}

fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (part, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    *bytes = rest;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_comes_back_as_it_was_without_cookies() {
        let mut headers = HeaderMap::new();
        headers.append("x-part", HeaderValue::from_static("1"));
        headers.append("x-part", HeaderValue::from_bytes(b"\xff").unwrap());
        let expected = headers.clone();
        headers.append("set-cookie", HeaderValue::from_static("session=1"));
        let body = Bytes::from_static(b"\0\xffbody");
        let kept = Kept::new(StatusCode::CREATED, &headers, body, Some("A-1001".to_owned()));
        assert_eq!(kept.headers, expected);
        let bytes = kept.encode();
        assert_eq!(Kept::decode(&bytes), Some(kept));
        let end_of_headers = bytes.len() - 6;
        for length in 0..end_of_headers {
            assert_eq!(Kept::decode(&bytes[..length]), None, "{length}");
        }
    }

    #[test]
    fn statuses_are_kept_as_listed() {
        let fate = |status| Fate::of(StatusCode::from_u16(status).unwrap());
        for status in [200, 201, 202, 204, 301, 303, 304] {
            assert_eq!(fate(status), Fate::Keep, "{status}");
        }
        for status in [400, 402, 405, 406, 410, 412, 413, 415, 422, 451] {
            assert_eq!(fate(status), Fate::KeepRefusal, "{status}");
        }
        for status in [100, 401, 403, 404, 408, 409, 425, 429, 500, 502, 503, 504] {
            assert_eq!(fate(status), Fate::Forget, "{status}");
        }
    }
}
