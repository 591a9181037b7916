//! The broker's management interface, as far as the tests need it.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Broker;

impl Broker {
    /// Sends a request, and answers what the broker answered.
    pub(crate) async fn manage(&self, method: &str, path: &str, body: &str) -> String {
        let rest = self.management_url.strip_prefix("http://").expect("a management URL begins with http://");
        let (user, host) = rest.rsplit_once('@').expect("a management URL names a user");
        let host = host.trim_end_matches('/');
        let mut stream = TcpStream::connect(host).await.expect("the management interface is there");
        let request = format!(
            "{method} /api/{path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            base64(user.as_bytes()),
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with("HTTP/1.1 2"), "{method} {path}: {answer}");
        answer
    }
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = (0..3).fold(0_u32, |group, at| (group << 8) | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let index = (group >> (18 - 6 * at)) & 63;
            text.push(if at <= chunk.len() { char::from(ALPHABET[index as usize]) } else { '=' });
        }
    }
    text
}
