use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Book, Dice, Hold, Journal, Manners, Reply, Weather,
    carrier::{self, Terms},
    gateway,
    journal::{Call, Event},
};
use crate::print::say;

/// How long a call is held at most while it waits for its undo.
const HOLD_MAX: Duration = Duration::from_mins(4);
/// How often a call that is held looks whether its undo has come.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a call that waited for its undo waits on.
const HOLD_BEHIND_UNDO: Duration = Duration::from_millis(500);

/// The gateway and the carrier, with their book and the dice that decide what befalls a call.
#[derive(Debug, Clone)]
pub struct Services {
    pub(super) book: Book,
    dice: Dice,
    manners: Manners,
}

impl Services {
    /// Services that write into this book.
    pub fn new(book: Book, dice: Dice) -> Self {
        Self { book, dice, manners: Manners::default() }
    }

    /// The same services with these manners.
    #[must_use]
    pub fn with_manners(self, manners: Manners) -> Self {
        Self { manners, ..self }
    }

    /// Answers one call.
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
        let counted = self.on_book({
            let (path, key, journal) = (path.clone(), key.clone(), self.manners.journal);
            move |book| book.count_call(service, &path, &key, journal)
        });
        let nth = match counted.await {
            Ok(nth) => nth,
            Err(reply) => return reply,
        };
        let weather = self.dice.weather(&key, nth);
        match weather {
            Weather::BreaksBefore => {
                self.note(path, key, nth, Event::Answered(503)).await;
                return Reply::error(503, "the service is not at home");
            }
            Weather::Slow(time) => tokio::time::sleep(time).await,
            Weather::Fair | Weather::BreaksAfter => {}
        }
        self.hold(&path, &key, nth).await;
        let working = {
            let (services, path, key) = (self.clone(), path.clone(), key.clone());
            blocking(move || services.look_up_or_do(service, Call { path: &path, key: &key, nth }, &body))
        };
        let reply = match working.await {
            Ok(reply) | Err(reply) => reply,
        };
        let reply = if weather == Weather::BreaksAfter { Reply::error(500, "the service broke down") } else { reply };
        self.note(path, key, nth, Event::Answered(reply.status)).await;
        reply
    }

    /// Keeps a call waiting, where its key is one of those.
    async fn hold(&self, path: &str, key: &str, nth: u32) {
        let is_undo = path == "/refunds" || path == "/cancellations";
        let hold = self.dice.hold(key, nth, self.manners.held_per_mille);
        if hold == Hold::No || (is_undo && hold == Hold::PastUndo) {
            return;
        }
        self.note(path.to_owned(), key.to_owned(), nth, Event::Held).await;
        match hold {
            Hold::No => {}
            Hold::For(time) => tokio::time::sleep(time).await,
            Hold::PastUndo => {
                let undone = async {
                    let is_undone = async || {
                        let key = key.to_owned();
                        self.on_book(move |book| book.is_undone(&key)).await
                    };
                    while !matches!(is_undone().await, Ok(true)) {
                        tokio::time::sleep(LOOK_EVERY).await;
                    }
                    tokio::time::sleep(HOLD_BEHIND_UNDO).await;
                };
                // The undo may never come, for instance where no process is left to send it.
                let _ = tokio::time::timeout(HOLD_MAX, undone).await;
            }
        }
    }

    /// A journal that cannot be written stops no call.
    async fn note(&self, path: String, key: String, nth: u32, event: Event) {
        if self.manners.journal == Journal::Calls {
            let noted = self.on_book(move |book| book.note(Call { path: &path, key: &key, nth }, event));
            if let Err(reply) = noted.await {
                say(format_args!("the journal of the services outside: {}", reply.body));
            }
        }
    }

    async fn on_book<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Book) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Reply> {
        let book = self.book.clone();
        blocking(move || work(&book)).await
    }

    fn look_up_or_do(&self, service: &str, call: Call<'_>, body: &Value) -> rusqlite::Result<Reply> {
        let Call { path, key, .. } = call;
        // The path belongs to the request: a key that was used for a charge is not one for a refund.
        let request = format!("{path} {body}");
        let noted = (self.manners.journal == Journal::Calls).then_some(call);
        let late = self.manners.late_calls;
        let book = &self.book;
        let done = match path {
            "/charges" => read(body).map(|charge| {
                let declined = self.dice.declines(key);
                book.once(service, key, &request, noted, |tx| gateway::charge(tx, key, &charge, declined, late))
            }),
            "/refunds" => {
                read(body).map(|refund| book.once(service, key, &request, noted, |tx| gateway::refund(tx, &refund)))
            }
            "/shipments" => read(body).map(|parcel| {
                let terms = if self.dice.turns_away(key) {
                    Terms::TurnedAway
                } else {
                    Terms::Taken { price_percent: self.dice.price_percent(key) }
                };
                book.once(service, key, &request, noted, |tx| carrier::book(tx, key, &parcel, terms, late))
            }),
            "/cancellations" => read(body)
                .map(|cancelled| book.once(service, key, &request, noted, |tx| carrier::cancel(tx, &cancelled))),
            _ => Err(Reply::error(404, "there is nothing at this path")),
        };
        done.unwrap_or_else(Ok)
    }

    /// What the book says that was done so far.
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
