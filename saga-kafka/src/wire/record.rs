use rdkafka::Message as _;
use rdkafka::message::{BorrowedMessage, Headers as _};

use crate::wire::text::short;

/// A record of a topic, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) offset: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) payload: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
    /// In milliseconds since 1970.
    pub(crate) timestamp: Option<i64>,
}

impl Record {
    pub(crate) fn read(message: &BorrowedMessage<'_>) -> Self {
        let header =
            |header: rdkafka::message::Header<'_, &[u8]>| (header.key.to_owned(), header.value.map(<[u8]>::to_vec));
        Self {
            topic: message.topic().to_owned(),
            partition: message.partition(),
            offset: message.offset(),
            key: message.key().map(<[u8]>::to_vec),
            payload: message.payload().map(<[u8]>::to_vec),
            headers: message.headers().map(|headers| headers.iter().map(header).collect()).unwrap_or_default(),
            timestamp: message.timestamp().to_millis(),
        }
    }

    /// The text of the first header of this name that has a value.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, String> {
        let value = self.headers.iter().find_map(|(there, value)| if there == name { value.as_deref() } else { None });
        value.map(std::str::from_utf8).transpose().map_err(|_| format!("the header {} is not UTF-8", short(name)))
    }

    /// The key and the headers, as far as they are text.
    pub(crate) fn shown(&self) -> Vec<(String, String)> {
        let text =
            |name: &str, value: Option<&[u8]>| Some((name.to_owned(), std::str::from_utf8(value?).ok()?.to_owned()));
        let headers = self.headers.iter().filter_map(|(name, value)| text(name, value.as_deref()));
        text("key", self.key.as_deref()).into_iter().chain(headers).collect()
    }
}
