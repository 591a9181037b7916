use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Book, Dice, Reply, Weather, carrier, gateway};

/// The gateway and the carrier, with their book and the dice that decide what befalls a call.
#[derive(Debug, Clone)]
pub struct Services {
    book: Book,
    dice: Dice,
}

impl Services {
    /// Services that write into this book.
    pub fn new(book: Book, dice: Dice) -> Self {
        Self { book, dice }
    }

    /// Answers one call.
    ///
    /// # Cancel safety
    ///
    /// A caller that goes away does not stop what it asked for, as with any service in another house.
    pub async fn answer(&self, path: &str, key: &str, body: Value) -> Reply {
        let (services, path, key) = (self.clone(), path.to_owned(), key.to_owned());
        let working = tokio::spawn(async move { services.work(path, key, body).await });
        match working.await {
            Ok(reply) => reply,
            Err(error) => Reply::error(500, &format!("the service broke down: {error}")),
        }
    }

    async fn work(self, path: String, key: String, body: Value) -> Reply {
        let service = if path == "/charges" || path == "/refunds" { "gateway" } else { "carrier" };
        let nth = {
            let (book, key) = (self.book.clone(), key.clone());
            match blocking(move || book.count_call(service, &key)).await {
                Ok(nth) => nth,
                Err(reply) => return reply,
            }
        };
        let weather = self.dice.weather(&key, nth);
        match weather {
            Weather::BreaksBefore => return Reply::error(503, "the service is not at home"),
            Weather::Slow(time) => tokio::time::sleep(time).await,
            Weather::Fair | Weather::BreaksAfter => {}
        }
        let reply = match blocking(move || self.look_up_or_do(service, &path, &key, &body)).await {
            Ok(reply) | Err(reply) => reply,
        };
        if weather == Weather::BreaksAfter { Reply::error(500, "the service broke down") } else { reply }
    }

    fn look_up_or_do(&self, service: &str, path: &str, key: &str, body: &Value) -> rusqlite::Result<Reply> {
        // The path belongs to the request: a key that was used for a charge is not one for a refund.
        let request = format!("{path} {body}");
        let done = match path {
            "/charges" => read(body).map(|charge| {
                let declined = self.dice.declines(key);
                self.book.once(service, key, &request, |tx| gateway::charge(tx, key, &charge, declined))
            }),
            "/refunds" => {
                read(body).map(|refund| self.book.once(service, key, &request, |tx| gateway::refund(tx, &refund)))
            }
            "/shipments" => read(body).map(|parcel| {
                let (away, percent) = (self.dice.turns_away(key), self.dice.price_percent(key));
                self.book.once(service, key, &request, |tx| carrier::book(tx, key, &parcel, away, percent))
            }),
            "/cancellations" => {
                read(body).map(|cancelled| self.book.once(service, key, &request, |tx| carrier::cancel(tx, &cancelled)))
            }
            _ => Err(Reply::error(404, "there is nothing at this path")),
        };
        done.unwrap_or_else(Ok)
    }

    /// What the book says that was done so far.
    ///
    /// # Errors
    ///
    /// When the book cannot be read.
    pub fn tally(&self) -> rusqlite::Result<super::Tally> {
        self.book.write(|tx| super::Tally::of(tx))
    }
}

fn read<T: DeserializeOwned>(body: &Value) -> Result<T, Reply> {
    T::deserialize(body).map_err(|error| Reply::error(400, &format!("the request cannot be read: {error}")))
}

/// Does what blocks on a thread of its own; a book that cannot be written is a service that is not at home.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> rusqlite::Result<T> + Send + 'static) -> Result<T, Reply> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(Reply::error(503, &format!("the book cannot be written: {error}"))),
        Err(error) => Err(Reply::error(500, &format!("the service broke down: {error}"))),
    }
}
