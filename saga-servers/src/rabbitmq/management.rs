//! A client of RabbitMQ's management interface, just large enough for tests.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::error::Error;
use crate::url::{Url, escaped};

/// A broker under load answers late, and a broker that died never.
const ANSWER_PATIENCE: Duration = Duration::from_secs(20);

/// RabbitMQ's management interface at one address.
///
/// Each call is a request on a connection of its own.
#[derive(Debug, Clone)]
pub struct Management {
    url: String,
}

impl Management {
    /// The interface at an address such as `http://guest:guest@127.0.0.1:15672`.
    ///
    /// # Errors
    /// The address cannot be read.
    pub fn at(url: &str) -> Result<Self, Error> {
        Url::parse(url)?;
        Ok(Self { url: url.trim_end_matches('/').to_owned() })
    }

    /// `GET /api/<path>`, for example `queues/%2F`; names in it are escaped by the caller.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    ///
    /// # Cancel safety
    /// Dropped, nothing changed.
    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        self.call("GET", path, None).await
    }

    /// `PUT /api/<path>`.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    ///
    /// # Cancel safety
    /// Dropped, the change may be made or not.
    pub async fn put(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.call("PUT", path, Some(body)).await
    }

    /// `POST /api/<path>`.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    ///
    /// # Cancel safety
    /// Dropped, the change may be made or not.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Error> {
        self.call("POST", path, Some(body)).await
    }

    /// `DELETE /api/<path>`.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    ///
    /// # Cancel safety
    /// Dropped, the change may be made or not.
    pub async fn delete(&self, path: &str) -> Result<Value, Error> {
        self.call("DELETE", path, None).await
    }

    /// Makes a virtual host, on which the user of the address may do everything.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    ///
    /// # Cancel safety
    /// Dropped, the virtual host may be there or not.
    pub async fn create_vhost(&self, name: &str) -> Result<(), Error> {
        let user = Url::parse(&self.url)?.user.to_owned();
        self.put(&format!("vhosts/{}", escaped(name)), &json!({})).await?;
        let everything = json!({ "configure": ".*", "write": ".*", "read": ".*" });
        self.put(&format!("permissions/{}/{user}", escaped(name)), &everything).await.map(drop)
    }

    /// Removes a virtual host with all that is in it.
    ///
    /// # Errors
    /// The server does not answer, or there is none of this name.
    ///
    /// # Cancel safety
    /// Dropped, the virtual host may be there or not.
    pub async fn delete_vhost(&self, name: &str) -> Result<(), Error> {
        self.delete(&format!("vhosts/{}", escaped(name))).await.map(drop)
    }

    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        let asked = format!("{method} /api/{path}");
        let exchange = self.exchange(method, path, body);
        let answered = tokio::time::timeout(ANSWER_PATIENCE, exchange).await;
        let answer = answered
            .unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()))
            .map_err(Error::system(format!("ask RabbitMQ's management interface, {asked}")))?;
        let (status, body) = read_answer(&answer).ok_or_else(|| Error::Refused {
            asked: asked.clone(),
            answer: format!("no answer of HTTP, but {:?}", answer.chars().take(100).collect::<String>()),
        })?;
        if !(200..300).contains(&status) {
            return Err(Error::Refused { asked, answer: format!("{status} {}", body.trim()) });
        }
        if body.trim().is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_str(body).map_err(|error| Error::Refused { asked, answer: format!("no JSON: {error}") })
    }

    async fn exchange(&self, method: &str, path: &str, body: Option<&Value>) -> std::io::Result<String> {
        let url = Url::parse(&self.url).map_err(std::io::Error::other)?;
        let body = body.map(ToString::to_string).unwrap_or_default();
        let mut request = format!("{method} {}/api/{path} HTTP/1.0\r\nhost: {}\r\n", url.rest, url.host);
        let access = base64(format!("{}:{}", url.user, url.password).as_bytes());
        let _ = write!(
            request,
            "authorization: Basic {access}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut stream = TcpStream::connect((url.host, url.port)).await?;
        stream.write_all(request.as_bytes()).await?;
        // By HTTP/1.0 the answer ends with the connection, and is in one piece.
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }
}

/// The status and the body.
fn read_answer(answer: &str) -> Option<(u16, &str)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some((status, body))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let is_there = digit <= chunk.len();
            text.push(if is_there { char::from(DIGITS[(bits >> (18 - 6 * digit) & 63) as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{base64, read_answer};

    #[test]
    fn access_is_encoded() {
        assert_eq!(base64(b"guest:guest"), "Z3Vlc3Q6Z3Vlc3Q=");
        assert_eq!(base64(b"a"), "YQ==");
        assert_eq!(base64(b"abc"), "YWJj");
        assert_eq!(base64(b""), "");
    }

    #[test]
    fn an_answer_is_read() {
        assert_eq!(read_answer("HTTP/1.1 201 Created\r\nserver: x\r\n\r\n[1]"), Some((201, "[1]")));
        assert_eq!(read_answer("AMQP\0\0\u{9}\u{1}"), None);
    }
}
