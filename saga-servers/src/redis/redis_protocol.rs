//! One command to a Redis server, without a client.

use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::error::Error;

const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// Sends `words` on a connection of its own, behind the command `login`, and returns the answer as text.
pub(crate) async fn command(port: u16, login: Option<Vec<u8>>, words: &[&str]) -> Result<String, Error> {
    let asked = format!("the command {} to Redis", words.first().unwrap_or(&""));
    let exchange = async {
        let mut stream = BufReader::new(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?);
        if let Some(login) = login {
            stream.write_all(&login).await?;
            if let Err(refused) = Box::pin(answer(&mut stream)).await? {
                return Ok(Err(refused));
            }
        }
        stream.write_all(&encoded(words)).await?;
        Box::pin(answer(&mut stream)).await
    };
    let answered = tokio::time::timeout(ANSWER_PATIENCE, exchange).await;
    let answered = answered.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
    let answer = answered.map_err(Error::system(format!("send {asked}")))?;
    answer.map_err(|answer| Error::Refused { asked, answer })
}

/// A command as Redis reads it.
pub(crate) fn encoded(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes());
    }
    bytes
}

/// Reads one answer, or the error that Redis says.
async fn answer<R: AsyncBufRead + Unpin>(from: &mut R) -> io::Result<Result<String, String>> {
    let mut line = String::new();
    from.read_line(&mut line).await?;
    let Some((kind, text)) = line.trim_end().split_at_checked(1) else {
        return Err(io::ErrorKind::UnexpectedEof.into());
    };
    let length = || text.parse::<i64>().map_err(io::Error::other);
    match kind {
        "+" | ":" => Ok(Ok(text.to_owned())),
        "-" => Ok(Err(text.to_owned())),
        "$" => {
            let Ok(length) = usize::try_from(length()?) else { return Ok(Ok(String::new())) };
            let mut bytes = vec![0; length + 2];
            from.read_exact(&mut bytes).await?;
            Ok(Ok(String::from_utf8_lossy(&bytes[..length]).into_owned()))
        }
        "*" => {
            let mut lines = Vec::new();
            for _ in 0..length()? {
                match Box::pin(answer(from)).await? {
                    Ok(line) => lines.push(line),
                    refused => return Ok(refused),
                }
            }
            Ok(Ok(lines.join("\n")))
        }
        other => Err(io::Error::other(format!("an answer of Redis begins with {other:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::{answer, encoded};

    #[tokio::test]
    async fn answers_of_each_kind_are_read() {
        let read = async |mut bytes: &[u8]| answer(&mut bytes).await.expect("an answer");
        assert_eq!(read(b"+OK\r\n").await, Ok("OK".to_owned()));
        assert_eq!(read(b"$-1\r\n").await, Ok(String::new()));
        assert_eq!(read(b"*2\r\n$1\r\na\r\n:7\r\n").await, Ok("a\n7".to_owned()));
        assert_eq!(read(b"-ERR no\r\n").await, Err("ERR no".to_owned()));
    }

    #[test]
    fn a_command_is_an_array_of_words() {
        assert_eq!(encoded(&["GET", ""]), b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n");
    }
}
